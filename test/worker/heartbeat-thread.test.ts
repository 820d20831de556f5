import { type ChildProcess, fork } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { entityKey } from "../../src/core/entity.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { Requests } from "../../src/inbox/requests.ts";
import { contentHash } from "../../src/json/hash.ts";
import type { Store } from "../../src/store/contract.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { type BeatenTask, HeartbeatThread } from "../../src/worker/heartbeat-thread.ts";
import { type LeaseKeeping, Worker } from "../../src/worker/worker.ts";
import type { Service } from "../../scripts/services/service.ts";
import { redisService } from "../support/services.ts";
import { node, workflow } from "../support/workflows.ts";

/** Much shorter than the handler blocks. */
const LEASE = { leaseMs: 600, heartbeatMs: 150, startReportMs: 100, pollMs: 100, graceMs: 1_000 };
const BLOCK_MS = 2_500;

let redis: Service;
let prefix: string;
let engine: ChildProcess;
let store: Store;
let requests: Requests;
const workers: Worker[] = [];

beforeAll(async () => {
  redis = await redisService();
});
afterAll(() => redis.stop());

beforeEach(async () => {
  prefix = `busy-${nodeHost.id()}`;
  store = await openRedis({ url: redis.url, prefix, partitions: 1, host: nodeHost });
  const main = fileURLToPath(new URL("./engine-process.ts", import.meta.url));
  engine = fork(main, [redis.url, prefix], { execArgv: [] });
  requests = new Requests(store, nodeHost);
  requests.start();
});
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop();
  requests.stop();
  engine.kill();
  await store.close();
});

/** Two tasks at once: one waits, while the other lets nothing else run in this process. */
const busyOrIdle: Handler = async ({ nodeId }) => {
  if (nodeId === "idle") await nodeHost.sleep(BLOCK_MS);
  else {
    await nodeHost.sleep(50);
    const untilMs = performance.now() + BLOCK_MS;
    while (performance.now() < untilMs);
  }
  return nodeId;
};

interface Run {
  readonly lost?: string[];
  readonly silences?: boolean[];
  readonly nodes?: readonly string[];
  readonly leaseMs?: number;
}

async function run(
  leases: LeaseKeeping,
  { lost = [], silences = [], nodes = ["idle", "busy"], leaseMs = LEASE.leaseMs }: Run = {},
): Promise<readonly ExecutionEvent[]> {
  const worker = new Worker({
    store,
    host: nodeHost,
    handlers: new Map([["step", busyOrIdle]]),
    queues: ["step"],
    settings: { ...LEASE, leaseMs },
    leases,
    observer: {
      heartbeatThreadLost: (reason) => lost.push(reason),
      heartbeatThreadSilent: (isSilent) => silences.push(isSilent),
    },
  });
  worker.start();
  workers.push(worker);
  const text = JSON.stringify(workflow(nodes.map((id) => node(id))));
  const definition = contentHash(text);
  await store.records.put([{ scope: "definition", hash: definition, text }]);
  const id = nodeHost.id();
  const entity = entityKey("execution", id);
  const body = { kind: "start" as const, workflow: "test", definition, input: { json: null }, bodyHash: "b" };
  await requests.send({ to: entity, by: "test", id, body });
  for (;;) {
    const [loaded] = await store.journal.load([{ partition: 0, entity, aboveVersion: 0 }]);
    const events = loaded!.records.flatMap((record) => JSON.parse(record.text) as ExecutionEvent[]);
    if (events.some(({ kind }) => kind === "executionEnded")) return events;
    await nodeHost.sleep(50);
  }
}

function thread(module: URL): LeaseKeeping {
  return { kind: "thread", source: { module: module.href, options: { url: redis.url, prefix } } };
}

test("while a handler blocks the event loop for four leases, a thread keeps them, and nothing runs twice", async () => {
  const events = await run(thread(new URL("./redis-heartbeats.ts", import.meta.url)));
  const kinds = events.map(({ kind }) => kind);
  expect(kinds).not.toContain("deliveryLost");
  expect(events.find(({ kind }) => kind === "executionEnded")).toMatchObject({ status: "completed" });
  // The thread reported the start as well: the owner's deadline counts from then, whatever the handler does.
  expect(events.filter((event) => event.kind === "taskStarted" && event.node === "busy")).toHaveLength(1);
});

test("a thread whose store is away when it begins connects later, and keeps the leases all the same", async () => {
  const lost: string[] = [];
  const events = await run(thread(new URL("./late-heartbeats.ts", import.meta.url)), { lost });
  expect(lost).toEqual([]);
  expect(events.map(({ kind }) => kind)).not.toContain("deliveryLost");
});

test("without it the tasks are given to others, though the worker lives", async () => {
  const events = await run({ kind: "loop" });
  expect(events.map(({ kind }) => kind)).toContain("deliveryLost");
});

test("what has been reported as begun is not reported once more", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "millrace-beats-")), "begun");
  const source = { module: new URL("./noted-heartbeats.ts", import.meta.url).href, options: { file } };
  const settings = { leaseMs: 5_000, heartbeatMs: 100, startReportMs: 300 };
  const beats = new HeartbeatThread({
    source,
    host: nodeHost,
    worker: "w",
    settings,
    gone: () => {},
    failed: () => {},
  });
  beats.add(named("told", "untold"));
  beats.reported(["told"]);
  await expect.poll(() => existsSync(file) && readFileSync(file, "utf8"), { timeout: 20_000 }).toBe("untold\n");
  await beats.close();
});

/** A thread that writes down for whom it beats, five times a second. */
function noting(): {
  readonly beats: HeartbeatThread;
  readonly lines: () => readonly string[];
  readonly gone: string[];
} {
  const file = join(mkdtempSync(join(tmpdir(), "millrace-beats-")), "beats");
  const source = { module: new URL("./noted-beats.ts", import.meta.url).href, options: { file } };
  const settings = { leaseMs: 5_000, heartbeatMs: 0, startReportMs: 200 };
  const gone: string[] = [];
  const options = {
    source,
    host: nodeHost,
    worker: "w",
    settings,
    failed: () => {},
    gone: (token: string) => gone.push(token),
  };
  const lines = (): readonly string[] => (existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n") : []);
  return { beats: new HeartbeatThread(options), lines, gone };
}

function named(...tokens: readonly string[]): readonly BeatenTask[] {
  return tokens.map((token) => ({ ref: token, token, entity: "execution/x", partition: 0 }));
}

test("of tasks that were taken together those are kept that are not over", async () => {
  const { beats, lines } = noting();
  beats.add(named("a", "b", "c"));
  beats.add(named("d", "e"));
  await expect.poll(() => lines().at(-1), { timeout: 20_000 }).toBe("a b c d e");
  for (const token of ["a", "c", "d", "e"]) beats.remove(token);
  // What is over by itself is told when its lot is not among the latest any more.
  for (let i = 0; i < 10; i++) {
    beats.add(named(`short-${i}`));
    beats.remove(`short-${i}`);
  }
  beats.add(named("f"));
  await expect.poll(() => lines().at(-1), { timeout: 20_000 }).toBe("b f");
  await beats.close();
});

test("many that are over are told though no task comes after them", async () => {
  const { beats, lines } = noting();
  const short = Array.from({ length: 1_000 }, (_, i) => `short-${i}`);
  beats.add(named("long", ...short));
  for (const token of short) beats.remove(token);
  await expect.poll(() => lines().at(-1), { timeout: 20_000 }).toBe("long");
  await beats.close();
});

test("one that comes again while others of its lot are kept is kept once", async () => {
  const { beats, lines } = noting();
  beats.add(named("a", "again"));
  beats.remove("again");
  beats.add(named("again"));
  beats.add(named("b"));
  beats.add(named("b"));
  await expect.poll(() => lines().at(-1), { timeout: 20_000 }).toBe("a again b");
  beats.remove("again");
  beats.remove("b");
  beats.add(named("c"));
  await expect.poll(() => lines().at(-1), { timeout: 20_000 }).toBe("a c");
  await beats.close();
});

test("one that is lost is told, and not kept any more", async () => {
  const { beats, lines, gone } = noting();
  beats.add(named("a", "lost-1"));
  await expect.poll(() => lines().at(-1), { timeout: 20_000 }).toBe("a");
  await expect.poll(() => gone, { timeout: 20_000 }).toEqual(["lost-1"]);
  await beats.close();
});

test("a thread that lives and never reaches the store is told of, and the event loop beats instead", async () => {
  const silences: boolean[] = [];
  const refused = thread(new URL("./refused-heartbeats.ts", import.meta.url));
  const events = await run(refused, { silences, nodes: ["idle"], leaseMs: 1_500 });
  expect(events.map(({ kind }) => kind)).not.toContain("deliveryLost");
  expect(events.filter(({ kind }) => kind === "taskStarted")).toHaveLength(1);
  expect(silences[0]).toBe(true);
});

test("a thread that cannot connect is reported, and the event loop beats instead", async () => {
  const lost: string[] = [];
  const events = await run(thread(new URL("./no-such-module.ts", import.meta.url)), { lost });
  expect(lost).toHaveLength(1);
  expect(lost[0]).toContain("no-such-module.ts");
  expect(events.at(-1)).toMatchObject({ kind: "executionEnded" });
});
