import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startKafkaBroker } from "../../scripts/services/kafka.ts";
import { startRedis } from "../../scripts/services/redis.ts";
import { cleanUp, folder, getJson, postJson, serve, start } from "../cli/program.ts";

afterAll(cleanUp);

const HANDLERS = `import { appendFileSync } from "node:fs";
export const handlers = {
  note: async ({ n }) => {
    appendFileSync("notes", n + "\\n");
    await new Promise((resolve) => setTimeout(resolve, 50));
    return n;
  },
};
`;

test("a broker that is killed and comes back keeps nothing back for good", async ({ skip }) => {
  const broker = await startKafkaBroker();
  if ("missing" in broker) return skip(broker.missing);
  const redis = await startRedis({ shared: false });
  const cwd = folder({ "handlers.mjs": HANDLERS });
  const env = { MILLRACE_BUS: broker.url, MILLRACE_BUS_QUEUES: "note" };
  try {
    const server = await serve(redis.url, ["--roles", "api,engine"], { cwd, env });
    const worker = start(["worker", "--bus", broker.url, "--handlers", "handlers.mjs", "--queues", "note"], { cwd });
    await worker.says(/"started"/);
    const items = Array.from({ length: 900 }, (_, n) => n);
    const config = { items, max_concurrency: 100, handler: "note", config: { n: "{{ item }}" } };
    const definition = { name: "outage", nodes: [{ id: "m", handler: "map", config }] };
    const { execution_id: id } = await postJson<{ execution_id: string }>(
      `${server.url}/v1/workflow?start=true`,
      definition,
    );
    const notes = (): readonly number[] => {
      const file = join(cwd, "notes");
      return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map(Number) : [];
    };
    await expect.poll(() => notes().length).toBeGreaterThan(20);
    await broker.end("SIGKILL");
    const readiness = (): Promise<{ status: string; parts: Record<string, string> }> =>
      getJson(`${server.url}/health/ready`);
    // All may have been sent by then: who has something to send notices at once.
    const one = { name: "one more", nodes: [{ id: "o", handler: "note", config: { n: 0 } }] };
    await postJson(`${server.url}/v1/workflow?start=true`, one);
    // The server serves without it, and says what is wrong.
    await expect.poll(async () => (await readiness()).parts["bus"], { timeout: 60_000 }).not.toBe("ok");
    expect((await readiness()).status).toBe("ok");
    const measured = async (): Promise<string> => (await fetch(`${server.url}/metrics`)).text();
    expect(await measured()).toMatch(/^millrace_bus_up 0$/m);
    await broker.begin();
    const status = async (): Promise<string> =>
      (await getJson<{ status: string }>(`${server.url}/v1/executions/${id}`)).status;
    await expect.poll(status, { timeout: 120_000 }).toBe("COMPLETED");
    expect(new Set(notes())).toEqual(new Set(items));
    await expect.poll(async () => (await readiness()).parts["bus"], { timeout: 60_000 }).toBe("ok");
    const now = await measured();
    expect(now).toMatch(/^millrace_bus_up 1$/m);
    expect(now).toMatch(
      /^millrace_bus_messages_total\{topic="millrace.task.dispatch.note",way="sent"\} (9|1[0-2])\d\d$/m,
    );
    expect(now).toMatch(/^millrace_bus_messages_total\{topic="millrace.task.complete",way="handled"\} \d+$/m);

    // Nothing is left to do: a server notices all the same, soon, and so do those who ask it.
    await broker.end("SIGKILL");
    const bus = async (): Promise<string | undefined> => (await readiness()).parts["bus"];
    await expect.poll(bus, { timeout: 10_000 }).toContain("ECONNREFUSED");
    expect(await measured()).toMatch(/^millrace_bus_up 0$/m);
    const looked = await start(["doctor", "--store", redis.url, "--url", server.url], { cwd }).ended;
    expect(looked.stdout).toMatch(/✗ server +of its bus it says: .*ECONNREFUSED/);
    await broker.begin();
    await expect.poll(bus, { timeout: 10_000 }).toBe("ok");
    expect(await measured()).toMatch(/^millrace_bus_up 1$/m);

    // Neither waits for a broker that may never come back.
    await broker.end("SIGKILL");
    worker.child.kill("SIGTERM");
    expect((await worker.ended).code).toBe(0);
    expect((await server.stop()).code).toBe(0);

    // One that is started meanwhile serves too, and joins when it can.
    const next = await serve(redis.url, ["--roles", "api,engine"], { cwd, env });
    const part = async (): Promise<string | undefined> =>
      (await getJson<{ parts: Record<string, string> }>(`${next.url}/health/ready`)).parts["bus"];
    await expect.poll(part).toContain("ECONNREFUSED");
    await broker.begin();
    await expect.poll(part, { timeout: 60_000 }).toBe("ok");
    expect((await next.stop()).code).toBe(0);
  } finally {
    await redis.stop();
    await broker.stop();
  }
});
