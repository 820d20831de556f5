import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPostgresServer } from "../../scripts/services/postgres.ts";
import { startOwnRedis } from "../../scripts/services/redis.ts";
import type { MortalService } from "../../scripts/services/service.ts";
import { cleanUp, folder, getJson, postJson, type Program, serve, type Serving, start } from "../cli/program.ts";

/**
 * The scenarios that the source documents tell of, by real processes on real stores: a chain, fan-out and fan-in, parents
 * that end at the same moment, one engine and one worker, two of each, and the death of each part.
 */
const STORES: readonly (readonly [kind: string, start: () => Promise<MortalService>, shot: NodeJS.Signals])[] = [
  ["Redis", startOwnRedis, "SIGKILL"],
  ["Postgres", startPostgresServer, "SIGQUIT"],
];

/** Every call is a line in a ledger. `meet` waits until so many of its kind have begun, wherever they run. */
const HANDLERS = `
import { appendFileSync, existsSync, readFileSync } from "node:fs";
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const note = (kind, context) =>
  appendFileSync("ledger", JSON.stringify({
    kind, execution: context.executionId, node: context.nodeId, key: context.idempotencyKey, who: process.env.WHO,
  }) + "\\n");
const noted = (run) => async (config, context) => {
  note("begun", context);
  const output = await run(config, context);
  note("done", context);
  return output;
};
export const handlers = {
  append: noted(({ path, id }) => ({ path: path + id })),
  slow: noted(async ({ ms, until }) => {
    while (until !== null && !existsSync(until)) await sleep(20);
    await sleep(ms);
    return process.env.WHO;
  }),
  join: noted(({ paths }) => ({ paths })),
  meet: noted(async ({ count }, { executionId, nodeId }) => {
    for (;;) {
      // The last line may be half written.
      const begun = readFileSync("ledger", "utf8").split("\\n").slice(0, -1).map((line) => JSON.parse(line));
      const met = begun.filter((one) => one.kind === "begun" && one.execution === executionId && /^m/.test(one.node));
      if (new Set(met.map((one) => one.node)).size >= count) return { path: nodeId };
      await sleep(5);
    }
  }),
};
`;

interface Shown {
  readonly status: string;
  readonly output: unknown;
  readonly nodes: Readonly<Record<string, { attempt: number; deliveries: number; output: unknown }>>;
}

interface Line {
  readonly kind: "begun" | "done";
  readonly execution: string;
  readonly node: string;
  readonly who: string;
}

const CHAIN = {
  name: "chain",
  nodes: ["A", "B", "C"].map((id, i, all) => ({
    id,
    handler: "append",
    config: { id, path: i === 0 ? "" : `{{ ${all[i - 1]}.path }}` },
    dependencies: i === 0 ? [] : [all[i - 1]!],
  })),
};

/** A → so many at the same time → D. */
const fan = (name: string, count: number): object => {
  const middle = Array.from({ length: count }, (_, i) => `m${i}`);
  return {
    name,
    nodes: [
      { id: "A", handler: "append", config: { id: "A", path: "" } },
      ...middle.map((id) => ({ id, handler: "meet", config: { count }, dependencies: ["A"], timeout_seconds: 60 })),
      {
        id: "D",
        handler: "join",
        config: { paths: middle.map((id) => `{{ ${id}.path }}`) },
        dependencies: middle,
      },
    ],
  };
};

const SLOW = {
  name: "slow",
  nodes: [
    {
      id: "s",
      handler: "slow",
      config: { ms: "{{ input.ms }}", until: "{{ input.until }}" },
      retry: { max_attempts: 1 },
    },
    { id: "after", handler: "join", config: { paths: "{{ s.output }}" }, dependencies: ["s"] },
  ],
};

const UNTIL = { timeout: 90_000, interval: 100 };

afterAll(cleanUp);

describe.each(STORES)("the scenarios of the source documents on %s", (_kind, startStore, shot) => {
  const here = folder({ "handlers.mjs": HANDLERS, ledger: "" });
  let store: MortalService;
  const servers: Serving[] = [];
  const workers: Program[] = [];

  const addServer = async (): Promise<Serving> => {
    const server = await serve(store.url, ["--roles", "api,engine", "--allow-missing-handlers"], { cwd: here });
    servers.push(server);
    return server;
  };
  const addWorker = async (who: string): Promise<Program> => {
    const program = start(["worker", "--store", store.url, "--handlers", "handlers.mjs", "--concurrency", "8"], {
      cwd: here,
      env: { WHO: who, WORKER_HEARTBEAT_INTERVAL: "0.5", WORKER_HEARTBEAT_TIMEOUT: "6" },
    });
    await program.says(/"started"/);
    workers.push(program);
    return program;
  };
  const run = async (definition: object, input: object = {}, by: Serving = servers.at(-1)!): Promise<string> => {
    const body = { definition, input_params: input };
    const answer = await postJson<{ execution_id?: string }>(`${by.url}/v1/workflow?start=true`, body);
    expect(answer, JSON.stringify(answer)).toHaveProperty("execution_id");
    return answer.execution_id!;
  };
  const shown = (id: string): Promise<Shown> => getJson(`${servers.at(-1)!.url}/v1/executions/${id}`);
  const ended = async (id: string): Promise<Shown> => {
    await expect.poll(async () => (await shown(id)).status, UNTIL).toMatch(/COMPLETED|FAILED|CANCELLED|PARTIAL/);
    return shown(id);
  };
  const ledger = (execution: string, kind: Line["kind"]): readonly Line[] =>
    readFileSync(join(here, "ledger"), "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line.execution === execution && line.kind === kind);
  /** Nodes in the order in which their tasks went out. */
  const dispatches = async (id: string): Promise<readonly string[]> => {
    type Events = { readonly items: readonly { readonly type: string; readonly node_id?: string }[] };
    const { items } = await getJson<Events>(`${servers.at(-1)!.url}/v1/executions/${id}/events?limit=500`);
    return items.filter(({ type }) => type === "task_dispatched").map((event) => event.node_id!);
  };

  beforeAll(async () => {
    store = await startStore();
    await addServer();
    await addWorker("first");
  });
  afterAll(async () => {
    for (const { program } of servers) program.child.kill("SIGKILL");
    for (const { child } of workers) child.kill("SIGKILL");
    await store.stop();
  });

  test("one engine and one worker: a chain runs in strict order, and each node gets what the one before gave", async () => {
    const id = await run(CHAIN);
    expect(await ended(id)).toMatchObject({ status: "COMPLETED", output: { C: { path: "ABC" } } });
    expect(await dispatches(id)).toEqual(["A", "B", "C"]);
    const nodes = readFileSync(join(here, "ledger"), "utf8")
      .split("\n")
      .slice(0, -1)
      .filter((line) => line.includes(id))
      .map((line) => JSON.parse(line) as Line);
    expect(nodes.map(({ kind, node }) => `${node} ${kind}`)).toEqual(
      ["A", "B", "C"].flatMap((node) => [`${node} begun`, `${node} done`]),
    );
  });

  test("two engines and two workers: branches run at the same time, on both workers, and the join gets all of them", async () => {
    await addServer();
    await addWorker("second");
    // More branches than one worker has room for, and none ends before all have begun.
    const id = await run(fan("fan", 12), {}, servers[0]);
    const view = await ended(id);
    expect(view).toMatchObject({ status: "COMPLETED", nodes: { D: { attempt: 1, deliveries: 1 } } });
    expect(view.output).toEqual({ D: { paths: Array.from({ length: 12 }, (_, i) => `m${i}`) } });
    expect(new Set(ledger(id, "done").map(({ who }) => who))).toEqual(new Set(["first", "second"]));
    expect((await dispatches(id)).filter((node) => node === "D")).toHaveLength(1);
    // Whoever is asked tells the same.
    const views = await Promise.all(servers.map(({ url }) => getJson<Shown>(`${url}/v1/executions/${id}`)));
    expect(views[0]).toEqual(views[1]);
  });

  test("parents that end at the same moment on different workers: the child starts once, 30 times out of 30", async () => {
    const definition = fan("meeting", 4);
    const started = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        // So many at a time that those of one execution always find room together.
        await sleep(150 * i);
        return run(definition, {}, servers[i % 2]);
      }),
    );
    for (const id of started) {
      expect(await ended(id)).toMatchObject({ status: "COMPLETED" });
      expect((await dispatches(id)).toSorted()).toEqual(["A", "D", "m0", "m1", "m2", "m3"]);
      expect(ledger(id, "begun").filter(({ node }) => node === "D")).toHaveLength(1);
    }
  });

  test("a worker crashes: another does its task as the same attempt, under the same key", async () => {
    const [first] = workers;
    const ids = await Promise.all(Array.from({ length: 8 }, () => run(SLOW, { ms: 0, until: "worker shot" })));
    const begunBy = (who: string): readonly string[] =>
      ids.filter((id) => ledger(id, "begun").some((line) => line.who === who && line.node === "s"));
    await expect.poll(() => begunBy("first").length + begunBy("second").length, UNTIL).toBe(8);
    const orphans = begunBy("first");
    first!.child.kill("SIGKILL");
    await first!.ended;
    writeFileSync(join(here, "worker shot"), "");
    for (const id of ids) {
      const { status, nodes } = await ended(id);
      expect(status).toBe("COMPLETED");
      const deliveries = orphans.includes(id) ? 2 : 1;
      expect(nodes["s"]).toMatchObject({ attempt: 1, deliveries, output: "second" });
    }
    await addWorker("first");
  });

  test("an orchestrator crashes: the other goes on with its executions, and no task runs again", async () => {
    const ids = await Promise.all(Array.from({ length: 12 }, () => run(SLOW, { ms: 500, until: "engine shot" })));
    await expect.poll(() => ids.every((id) => ledger(id, "begun").length > 0), UNTIL).toBe(true);
    await servers.shift()!.kill();
    writeFileSync(join(here, "engine shot"), "");
    for (const id of ids) {
      expect(await ended(id)).toMatchObject({
        status: "COMPLETED",
        nodes: { s: { attempt: 1, deliveries: 1 }, after: { attempt: 1, deliveries: 1 } },
      });
      expect(ledger(id, "begun").map(({ node }) => node)).toEqual(["s", "after"]);
      expect(await dispatches(id)).toEqual(["s", "after"]);
    }
  });

  test("the store is shot and starts again: what was accepted is there, and everything ends", async () => {
    const before = await run(CHAIN);
    await ended(before);
    const ids = await Promise.all(Array.from({ length: 12 }, (_, i) => run(SLOW, { ms: 500 + 200 * i, until: null })));
    await expect.poll(() => ids.every((id) => ledger(id, "begun").length > 0), UNTIL).toBe(true);
    await store.end(shot);
    await store.begin();
    for (const id of ids) {
      const { status, nodes } = await ended(id);
      expect(status).toBe("COMPLETED");
      expect(nodes["s"]!.attempt).toBe(1);
      // Each was dispatched once for each delivery that the journal knows.
      const sent = (await dispatches(id)).filter((node) => node === "after");
      expect(sent).toHaveLength(nodes["after"]!.deliveries);
    }
    expect(await shown(before)).toMatchObject({ status: "COMPLETED", output: { C: { path: "ABC" } } });
    expect(await ended(await run(CHAIN))).toMatchObject({ status: "COMPLETED" });
  });
});
