import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { postgresService, redisService } from "../support/services.ts";
import { cleanUp, folder, getJson, millrace, postJson, type Program, serve, start } from "./program.ts";

afterAll(cleanUp);

interface Shown {
  readonly status: string;
  readonly nodes: Readonly<
    Record<string, { readonly attempt: number; readonly deliveries: number; readonly output: unknown }>
  >;
}

/** `who` says by whom it was done, unless it is the one by whom it never is. */
const HANDLERS = `export const handlers = {
  "who": async (config) => {
    if (config.not === process.env.WHO) await new Promise(() => undefined);
    return process.env.WHO;
  },
};
`;

const STORES: readonly (readonly [kind: string, service: () => Promise<Service>])[] = [
  ["Postgres", postgresService],
  ["Redis", redisService],
];

describe.each(STORES)("processes that share a store on %s", (kind, service) => {
  const here = folder({ "handlers.mjs": HANDLERS });
  let given: Service;
  beforeAll(async () => {
    given = await service();
  });
  afterAll(() => given.stop());

  const worker = async (who: string, store: string): Promise<Program> => {
    const program = start(["worker", "--store", store, "--handlers", "handlers.mjs"], {
      cwd: here,
      env: { WHO: who, WORKER_HEARTBEAT_INTERVAL: "0.5", WORKER_HEARTBEAT_TIMEOUT: "5" },
    });
    await program.says(/"started"/);
    return program;
  };

  test("a worker does what an engine elsewhere hands out, and another takes over when it is killed", async () => {
    const store = given.url;
    const server = await serve(store, ["--roles", "api,engine"], { cwd: here });
    const definition = {
      name: `fleet-${kind}`,
      nodes: [{ id: "a", handler: "who", config: { not: "{{ input.not }}" }, retry: { max_attempts: 1 } }],
    };
    const run = async (not: string): Promise<string> => {
      const url = `${server.url}/v1/workflow?start=true&allow_missing_handlers=true`;
      return (await postJson<{ execution_id: string }>(url, { definition, input_params: { not } })).execution_id;
    };
    const shown = (id: string): Promise<Shown> => getJson(`${server.url}/v1/executions/${id}`);
    const first = await worker("first", store);
    const quick = await run("nobody");
    await expect.poll(async () => (await shown(quick)).status).toBe("COMPLETED");
    expect((await shown(quick)).nodes["a"]!.output).toBe("first");

    const long = await run("first");
    await expect
      .poll(
        async () =>
          (await getJson<{ items: { status: string }[] }>(`${server.url}/v1/executions/${long}/nodes?status=RUNNING`))
            .items.length,
      )
      .toBe(1);
    first.child.kill("SIGKILL");
    await first.ended;
    const second = await worker("second", store);
    await expect.poll(async () => (await shown(long)).status, { timeout: 60_000 }).toBe("COMPLETED");
    expect((await shown(long)).nodes["a"]).toMatchObject({ attempt: 1, deliveries: 2, output: "second" });
    expect((await millrace(["workers"], { env: { MILLRACE_URL: server.url } })).stdout).toContain("who");

    second.child.kill("SIGTERM");
    expect((await second.ended).code).toBe(0);
    await server.stop();
  });
});
