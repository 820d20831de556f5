import { setTimeout as sleep } from "node:timers/promises";
import { Client, escapeIdentifier } from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { inspectPostgres } from "../../src/drivers/postgres/inspect.ts";
import { openPostgres, type PostgresOptions } from "../../src/drivers/postgres/postgres-store.ts";
import { WakeUps } from "../../src/drivers/postgres/wake-ups.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { inspectPostgresStore } from "../../src/process/inspect-store.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { appendTexts, lease, readRequest, reply, task } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
import { PostgresProxy } from "../support/postgres-proxy.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());

const LONG_MS = 60_000;
const SECONDS = { connectMs: 10_000, statementMs: 10_000, maxConnections: 2 };

/** In which nobody looks once a second: what wakes is a hint. */
const patient: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms >= 900 ? LONG_MS : ms, signal) };

function open(schema: string, more: Partial<PostgresOptions> = {}): Promise<Store> {
  return openPostgres({ url: service.url, schema, host: nodeHost, partitions: 4, ...more });
}

const newSchema = (): string => `test_${nodeHost.id()}`;

describe("what one process does wakes another", () => {
  test("that waits for messages, tasks, replies or a version, by a hint alone", async () => {
    const schema = newSchema();
    const [sender, waiter] = [await open(schema), await open(schema, { host: patient })];
    const owner = await acquire(sender);
    const waits = [
      waiter.inbox.read([readRequest({ partition: 1 })], LONG_MS),
      lease(waiter, { waitMs: LONG_MS }),
      waiter.inbox.replies("process", LONG_MS),
      waiter.journal.watch(0, "e/1", 0, LONG_MS),
    ];
    // Until all have looked in vain, and wait.
    await sleep(300);
    await appendTexts(sender, ['"a"'], 1);
    const records = [{ entity: "e/1", version: 1, count: 1, format: 1, text: "[]" }];
    await owner.commit({ tasks: [task("t")], replies: [reply("r")], records });
    expect(await Promise.all(waits)).toMatchObject([[{ messages: ['"a"'] }], [{ token: "t" }], [{ request: "r" }], 1]);
    await sender.close();
    await waiter.close();
  });

  test("by its own looking, if a pooler swallows the hints", async () => {
    const schema = newSchema();
    const proxy = await PostgresProxy.start(service.url);
    proxy.mischief = "pool";
    const [sender, waiter] = [await open(schema), await open(schema, { url: proxy.url })];
    const read = waiter.inbox.read([readRequest()], LONG_MS);
    await sleep(300);
    await appendTexts(sender, ['"a"']);
    expect((await read)[0]!.messages).toEqual(['"a"']);
    await sender.close();
    await waiter.close();
    await proxy.stop();
  });
});

describe("hints", () => {
  /** What another session hears of these, until it has heard that many. */
  async function heard(
    keys: readonly string[],
    count: number,
    host = nodeHost,
  ): Promise<readonly (readonly string[])[]> {
    const name = nodeHost.id();
    const listener = new Client({ connectionString: service.url });
    await listener.connect();
    const payloads: (readonly string[])[] = [];
    const { promise: isComplete, resolve } = Promise.withResolvers<void>();
    listener.on("notification", ({ payload }) => {
      payloads.push(JSON.parse(payload!) as readonly string[]);
      if (payloads.flat().length === count) resolve();
    });
    await listener.query(`listen ${escapeIdentifier(`millrace_${name}`)}`);
    const wakeUps = new WakeUps(host, { url: service.url, schema: "public", ...SECONDS }, name);
    await wakeUps.connect();
    for (const key of keys) wakeUps.announce([key]);
    await isComplete;
    await wakeUps.close();
    await listener.end();
    return payloads;
  }

  test("that are given at once are sent as one, and a key only once", async () => {
    const keys = Array.from({ length: 300 }, (_, i) => `inbox/${i % 100}`);
    expect(await heard(keys, 100)).toEqual([keys.slice(0, 100)]);
  });

  test("that are none, by whoever may connect, are not heard, and end nobody", async () => {
    const name = nodeHost.id();
    const wakeUps = new WakeUps(patient, { url: service.url, schema: "public", ...SECONDS }, name);
    await wakeUps.connect();
    const stranger = new Client({ connectionString: service.url });
    await stranger.connect();
    const notify = (payload: string): Promise<unknown> =>
      stranger.query("select pg_notify($1, $2)", [`millrace_${name}`, payload]);
    let looks = 0;
    const waiting = wakeUps.until(["inbox/1"], LONG_MS, async () => (++looks > 1 ? looks : undefined));
    for (const rubbish of ["rubbish", "", "null", "7", "[null]", '{"a":1}', '[["inbox/1"]]']) await notify(rubbish);
    await notify('["inbox/1"]');
    expect(await waiting).toBe(2);
    await wakeUps.close();
    await stranger.end();
  });

  test("go out at once if none went out just before", async () => {
    const sleepless: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms < 900 ? LONG_MS : ms, signal) };
    expect(await heard(["inbox/1"], 1, sleepless)).toEqual([["inbox/1"]]);
  });

  test("go out at once also just after others, but only a few", async () => {
    const name = nodeHost.id();
    const slept: number[] = [];
    const { promise: isPaused, resolve: pause } = Promise.withResolvers<void>();
    const still: Host = {
      ...nodeHost,
      monotonicMs: () => 1000,
      sleep: async (ms, signal) => {
        if (ms >= 900) return nodeHost.sleep(ms, signal);
        slept.push(ms);
        pause();
        await nodeHost.sleep(LONG_MS, signal);
      },
    };
    const listener = new Client({ connectionString: service.url });
    await listener.connect();
    let heard = 0;
    listener.on("notification", () => void heard++);
    await listener.query(`listen ${escapeIdentifier(`millrace_${name}`)}`);
    const wakeUps = new WakeUps(still, { url: service.url, schema: "public", ...SECONDS }, name);
    await wakeUps.connect();
    for (let sent = 1; slept.length === 0; sent++) {
      wakeUps.announce([`inbox/${sent}`]);
      await Promise.race([isPaused, vi.waitFor(() => expect(heard).toBe(sent))]);
    }
    expect(heard).toBeGreaterThan(3);
    expect(heard).toBeLessThan(12);
    expect(slept).toEqual([2]);
    await wakeUps.close();
    await listener.end();
  });

  test("that are too long for one payload are sent as several, whatever their letters", async () => {
    const keys = Array.from({ length: 100 }, (_, i) => `queue/${i}${'"é'.repeat(120)}`);
    const payloads = await heard(keys, 100);
    expect(payloads.length).toBeGreaterThan(1);
    expect(payloads.flat()).toEqual(keys);
  });

  test("of a name that is too long for any payload are left out, and hold up no others", async () => {
    expect((await heard(["a", "q".repeat(10_000), "b"], 2)).flat()).toEqual(["a", "b"]);
  });
});

describe("a look at a server", () => {
  test("finds nothing wrong with a connection to itself", async () => {
    expect(await inspectPostgres(service.url, 10_000)).toMatchObject({ isPooled: false, hearsHints: true });
    const address = { kind: "postgres", url: service.url } as const;
    const settings = { postgresConnectTimeout: 10, allowUnsafeStore: [] };
    const findings = await inspectPostgresStore(address, settings);
    expect(findings[0]).toMatchObject({ state: "ok", told: expect.stringMatching(/^Postgres \d/) as string });
  });

  test("finds a pooler that swallows hints, and says what to do", async () => {
    const proxy = await PostgresProxy.start(service.url);
    proxy.mischief = "pool";
    expect(await inspectPostgres(proxy.url, 10_000)).toMatchObject({ isPooled: true, hearsHints: false });
    const settings = { postgresConnectTimeout: 10, allowUnsafeStore: [] };
    const findings = await inspectPostgresStore({ kind: "postgres", url: proxy.url }, settings);
    const deaf = findings.find(({ told }) => told.includes("LISTEN"));
    expect(deaf).toMatchObject({ state: "bad", fix: expect.stringContaining("connect to Postgres itself") as string });
    await proxy.stop();
  });

  test("finds transactions that somebody left open", async () => {
    const client = new Client({ connectionString: service.url, application_name: `forgotten ${nodeHost.id()}` });
    await client.connect();
    await client.query("begin; select pg_current_xact_id()");
    await sleep(50);
    const { longTransactions } = await inspectPostgres(service.url, 10_000, 20);
    const { pid } = (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!;
    expect(longTransactions.find((one) => one.pid === pid)).toMatchObject({ state: "idle in transaction" });
    const { longTransactions: older } = await inspectPostgres(service.url, 10_000);
    expect(older.find((one) => one.pid === pid)).toBeUndefined();
    await client.end();
  });

  test("of a store that runs is taken once a minute, and told", async () => {
    const client = new Client({ connectionString: service.url });
    await client.connect();
    await client.query("begin; select pg_current_xact_id()");
    const { promise: warned, resolve } = Promise.withResolvers<string>();
    // A minute is over at once here.
    const hasty: Host = { ...nodeHost, sleep: (ms, signal) => nodeHost.sleep(ms === LONG_MS ? 20 : ms, signal) };
    const store = await open(newSchema(), { host: hasty, warn: resolve, longTransactionMs: 50 });
    expect(await warned).toMatch(/^A transaction of Postgres process \d+ .*has been open for \d+ s/);
    await client.end();
    await store.close();
  });

  test("that nobody answers says why", async () => {
    const url = new URL(service.url);
    url.port = "1";
    const settings = { postgresConnectTimeout: 1, allowUnsafeStore: [] };
    const findings = await inspectPostgresStore({ kind: "postgres", url: url.href }, settings);
    expect(findings).toMatchObject([{ state: "bad", told: expect.stringContaining("STORE_UNAVAILABLE") as string }]);
  });
});
