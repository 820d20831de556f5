import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { startPostgresServer } from "../../scripts/services/postgres.ts";
import type { MortalService } from "../../scripts/services/service.ts";
import { entityKey, partitionOf } from "../../src/core/entity.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { messageText } from "../../src/core/message.ts";
import { openPostgres, type PostgresOptions } from "../../src/drivers/postgres/postgres-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { contentHash } from "../../src/json/hash.ts";
import { acquire, type Owner } from "../../src/store/conformance/owner.ts";
import {
  appendTexts,
  ENTITY,
  inboxTexts,
  lease,
  record,
  settlement,
  task,
} from "../../src/store/conformance/things.ts";
import type { CommitBatch, Outgoing, Store } from "../../src/store/contract.ts";
import { Worker } from "../../src/worker/worker.ts";
import { type Mischief, PostgresProxy } from "../support/postgres-proxy.ts";
import { node, workflow } from "../support/workflows.ts";

// A server of its own: it is killed.
let server: MortalService;
const open: Store[] = [];
const unhandled: unknown[] = [];
const note = (error: unknown): void => void unhandled.push(error);

beforeAll(async () => {
  server = await startPostgresServer();
  process.on("uncaughtException", note);
  process.on("unhandledRejection", note);
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  expect(unhandled).toEqual([]);
});
afterAll(async () => {
  process.off("uncaughtException", note);
  process.off("unhandledRejection", note);
  await server.stop();
});

async function openStore(more: Partial<PostgresOptions> = {}): Promise<Store> {
  const schema = `test_${nodeHost.id()}`;
  const store = await openPostgres({ url: server.url, schema, host: nodeHost, partitions: 4, ...more });
  open.push(store);
  return store;
}

async function sql<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
  const client = new Client({ connectionString: server.url });
  await client.connect();
  try {
    return (await client.query<Row>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}

/** Resolves as soon as it does not reject any more. */
async function eventually<Result>(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await call();
    } catch {
      await sleep(50);
    }
  }
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(20);
}

const UNAVAILABLE = { name: "StoreError", code: "STORE_UNAVAILABLE" };

/** A connection that holds a lock on a table of a schema until it is let go. */
async function lockTable(table: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: server.url });
  client.on("error", () => {});
  await client.connect();
  await client.query(`begin; lock table ${table} in access exclusive mode`);
  return async () => {
    await client.query("rollback").catch(() => {});
    await client.end().catch(() => {});
  };
}

const waiting = (): Promise<readonly { pid: number }[]> =>
  sql<{ pid: number }>("select pid from pg_stat_activity where wait_event_type = 'Lock'");

describe("a session that the server ends", () => {
  test("while it is idle harms nobody, and hints are listened for again", async () => {
    const schema = `test_${nodeHost.id()}`;
    const store = await openStore({ schema });
    await appendTexts(store, ['"a"']);
    const listeners = (): Promise<readonly { pid: number }[]> =>
      sql(
        "select pid from pg_stat_activity where query ~* '^(listen|select pg_notify)' and application_name = 'millrace'",
      );
    const [before] = await listeners();
    await sql("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'millrace'");
    expect(await eventually(() => inboxTexts(store))).toEqual(['"a"']);
    await until(async () => {
      const [after] = await listeners();
      return after !== undefined && after.pid !== before!.pid;
    });
  });

  test("with a commit under way leaves it undone, says so, and the same batch can be sent again", async () => {
    const schema = `test_${nodeHost.id()}`;
    const store = await openStore({ schema });
    const owner = await acquire(store);
    const batch = owner.batch({ records: [record(ENTITY, 1)] });
    const unlock = await lockTable(`${schema}.journal`);
    const committing = expect(store.journal.commit([batch])).rejects.toMatchObject(UNAVAILABLE);
    await until(async () => (await waiting()).length > 0);
    await sql("select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'");
    await committing;
    await unlock();
    expect(await eventually(() => store.journal.commit([batch]))).toEqual([{ kind: "committed" }]);
  });
});

describe.each(["SIGINT", "SIGKILL"] as const)("a server that ends by %s", (signal) => {
  test("rejects what is under way and what comes, and is there again with all that it had said", async () => {
    const schema = `test_${nodeHost.id()}`;
    const store = await openStore({ schema, connectMs: 2_000 });
    const owner = await acquire(store);
    await owner.commit({ records: [record(ENTITY, 1)] });
    await sql(`create function ${schema}.dawdle() returns trigger language plpgsql
      as 'begin perform pg_sleep(600); return null; end';
      create trigger dawdle before insert on ${schema}.inbox execute function ${schema}.dawdle()`);
    const appending = store.inbox.append([{ partition: 0, start: false, text: '"a"' }]);
    const underWay = expect(appending).rejects.toMatchObject(UNAVAILABLE);
    await until(async () => (await sql("select from pg_stat_activity where wait_event = 'PgSleep'")).length > 0);
    await server.end(signal);
    await underWay;
    await expect(store.journal.load([{ partition: 0, entity: ENTITY }])).rejects.toMatchObject(UNAVAILABLE);
    await expect(openStore({ schema })).rejects.toMatchObject(UNAVAILABLE);
    await server.begin();
    const [loaded] = await eventually(() => store.journal.load([{ partition: 0, entity: ENTITY }]));
    expect(loaded?.records).toEqual([record(ENTITY, 1)]);
    await eventually(() => owner.commit({ records: [record(ENTITY, 2)] }));
    expect(await inboxTexts(store)).toEqual([]);
  });
});

describe("a commit whose line is cut", () => {
  async function cutCommit(
    mischief: Mischief,
    schema = `test_${nodeHost.id()}`,
  ): Promise<{ store: Store; owner: Owner; batch: CommitBatch }> {
    const proxy = await PostgresProxy.start(server.url);
    const store = await openStore({ schema, url: proxy.url });
    const owner = await acquire(store);
    await appendTexts(store, ['"a"']);
    const [read] = await store.inbox.read([{ partition: 0, after: null, limit: 10, maxChars: 1000 }], 0);
    const batch = owner.batch({ records: [record(ENTITY, 1)], consumed: read!.position });
    proxy.mischief = mischief;
    await expect(store.journal.commit([batch])).rejects.toMatchObject(UNAVAILABLE);
    proxy.mischief = "none";
    open.push({ close: () => proxy.stop() } as Store);
    return { store, owner, batch };
  }

  test("before it got there has not happened, and the same batch is committed when it is sent again", async () => {
    const { store, batch } = await cutCommit("cutBeforeCommit");
    expect(await eventually(() => store.journal.commit([batch]))).toEqual([{ kind: "committed" }]);
    expect(await inboxTexts(store)).toEqual([]);
  });

  test("before the answer came has happened, once, and the same batch sent again is told so", async () => {
    const schema = `test_${nodeHost.id()}`;
    const { store, batch } = await cutCommit("cutAfterCommit", schema);
    // A server that is busy may get to it later than to the same batch sent again, which then is the one that counts.
    await until(async () => (await sql(`select from ${schema}.journal`)).length > 0);
    expect(await eventually(() => store.journal.commit([batch]))).toEqual([{ kind: "alreadyApplied" }]);
    const [loaded] = await store.journal.load([{ partition: 0, entity: ENTITY, aboveVersion: 0 }]);
    expect(loaded?.records).toEqual([record(ENTITY, 1)]);
    expect(await inboxTexts(store)).toEqual([]);
  });

  test("is shut out by a new tenure of its owner, whatever became of it", async () => {
    const { store, owner, batch } = await cutCommit("cutBeforeCommit");
    const again = await eventually(() => store.partitions.reacquire(owner.tenure, 60_000));
    expect(again.kind).toBe("acquired");
    expect(await store.journal.commit([batch])).toEqual([{ kind: "fenced" }]);
  });
});

test("a statement that was locked out with another is tried again", async () => {
  const schema = `test_${nodeHost.id()}`;
  const store = await openStore({ schema });
  const owner = await acquire(store);
  await owner.commit({ tasks: [task("a"), task("b")] });
  const leased = await lease(store);
  const other = new Client({
    connectionString: server.url,
    options: `-c search_path=${schema} -c deadlock_timeout=60s`,
  });
  await other.connect();
  const lock = (token: string): Promise<unknown> =>
    other.query("select from tasks where token = $1 for update", [token]);
  await other.query("begin");
  await lock("b");
  const settling = store.tasks.settle(leased.map((one) => settlement(one, "completed")));
  await until(async () => (await waiting()).length > 0);
  // Waits for the statement that waits for us; the server ends that one, since it is the first to look.
  await lock("a");
  await other.query("rollback");
  await other.end();
  expect(await settling).toEqual(["settled", "settled"]);
  expect(await inboxTexts(store)).toHaveLength(2);
});

describe("time-outs", () => {
  test("a statement that waits for a lock is given up, and the next one is not", async () => {
    const schema = `test_${nodeHost.id()}`;
    const store = await openStore({ schema, statementMs: 300 });
    const unlock = await lockTable(`${schema}.inbox`);
    await expect(appendTexts(store, ['"a"'])).rejects.toMatchObject(UNAVAILABLE);
    await unlock();
    await appendTexts(store, ['"b"']);
    expect(await inboxTexts(store)).toEqual(['"b"']);
  });

  test("a server that falls silent is given up, and found again", async () => {
    const proxy = await PostgresProxy.start(server.url);
    const store = await openStore({ url: proxy.url, statementMs: 300, connectMs: 300 });
    proxy.mischief = "silence";
    await expect(inboxTexts(store)).rejects.toMatchObject(UNAVAILABLE);
    await expect(openStore({ url: proxy.url, connectMs: 300 })).rejects.toMatchObject(UNAVAILABLE);
    proxy.mischief = "none";
    expect(await eventually(() => inboxTexts(store))).toEqual([]);
    // Nor does it keep anybody from ending.
    proxy.mischief = "silence";
    await store.close();
    await proxy.stop();
  });

  test("more callers than connections wait for each other, and all are served", async () => {
    const store = await openStore({ maxConnections: 2 });
    const puts = Array.from({ length: 100 }, (_, i) => store.records.put([{ scope: "s", hash: `${i}`, text: "1" }]));
    expect(new Set(await Promise.all(puts))).toEqual(new Set(["stored"]));
    const [found] = await sql<{ count: number }>(
      "select count(*)::integer as count from pg_stat_activity where application_name = 'millrace'",
    );
    // And the one that listens.
    expect(found!.count).toBeLessThanOrEqual(3);
  });
});

test("one execution with a value that no column can hold is left alone, and all others go on", async () => {
  const store = await openStore();
  const define = async (queue: string): Promise<string> => {
    const text = JSON.stringify(workflow([node("a", [], { queue })]));
    await store.records.put([{ scope: "definition", hash: contentHash(text), text }]);
    return contentHash(text);
  };
  const [good, bad] = [await define("step"), await define("step\0")];
  const quarantined: string[] = [];
  const observer = { quarantined: (key: string): void => void quarantined.push(key) };
  const engine = new Engine({ store, host: nodeHost, machines: [executionMachine], observer });
  const handlers = new Map([["step", () => 1]]);
  const worker = new Worker({ store, host: nodeHost, handlers, queues: ["step"], settings: { slots: 4 } });
  const { partitionCount } = store.capabilities;
  const starts = Array.from({ length: 20 }, () => startOf(nodeHost.id(), good, partitionCount));
  await store.inbox.append([startOf("bad", bad, partitionCount), ...starts]);
  engine.start();
  worker.start();
  const { queries } = store;
  await until(async () => (await queries.headers({ class: "endedWell", limit: 100 })).items.length === starts.length);
  await until(async () => (await queries.deadLetters({ limit: 10 })).items.length === 1);
  expect(quarantined).toEqual(["execution/bad"]);
  await worker.stop();
  await engine.stop();
});

test("executions go on when their server was killed, and nothing is done twice that was answered once", async () => {
  const schema = `test_${nodeHost.id()}`;
  const store = await openStore({ schema, connectMs: 2_000 });
  const diamond = workflow([node("a"), node("b", [on("a")]), node("c", [on("a")]), node("d", [on("b"), on("c")])]);
  const text = JSON.stringify(diamond);
  const definition = contentHash(text);
  await store.records.put([{ scope: "definition", hash: definition, text }]);
  const { promise: isHalfDone, resolve } = Promise.withResolvers<void>();
  let settled = 0;
  const engine = new Engine({ store, host: nodeHost, machines: [executionMachine] });
  const worker = new Worker({
    store,
    host: nodeHost,
    handlers: new Map([["step", () => 1]]),
    queues: ["step"],
    settings: { slots: 4 },
    observer: { settled: () => void (++settled === 60 && resolve()) },
  });
  engine.start();
  worker.start();
  const ids = Array.from({ length: 40 }, () => nodeHost.id());
  await store.inbox.append(ids.map((id) => startOf(id, definition, store.capabilities.partitionCount)));
  await isHalfDone;
  await server.end("SIGKILL");
  await server.begin();
  const ended = async (): Promise<number> =>
    (await store.queries.headers({ class: "endedWell", limit: 100 })).items.length;
  while ((await eventually(ended)) < ids.length) await sleep(50);
  // One acceptance and one end for each, and for each node of each just one result.
  const events = await sql<{ kind: string; count: number }>(
    `select event ->> 'kind' as kind, count(*)::integer as count
     from ${schema}.journal, json_array_elements(text::json) as event group by 1`,
  );
  const counts = Object.fromEntries(events.map(({ kind, count }) => [kind, count]));
  expect(counts).toMatchObject({ accepted: 40, taskCompleted: 160, executionEnded: 40 });
  await worker.stop();
  await engine.stop();
});

function on(id: string): { readonly id: string; readonly on: "completed" } {
  return { id, on: "completed" };
}

function startOf(id: string, definition: string, partitions: number): Outgoing {
  const to = entityKey("execution", id);
  const body = { kind: "start" as const, workflow: "test", definition, input: { json: null }, bodyHash: "b" };
  const message = { id, to, by: "test", trace: "", tenant: "default", body };
  return { partition: partitionOf(to, partitions), start: true, text: messageText(message) };
}
