import { afterAll, beforeAll, expect, test } from "vitest";
import { partitionOf } from "../../src/core/entity.ts";
import { fold } from "../../src/core/fold.ts";
import { gateMachine } from "../../src/core/gate/machine.ts";
import { MACHINES } from "../../src/core/machines.ts";
import { type MessageBody, messageText } from "../../src/core/message.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import { recover } from "../../src/engine/recovery.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { JournalRecord, Store } from "../../src/store/contract.ts";
import { ArchiveWorld } from "./world.ts";

const GATE = "gate/concurrency:default:few";
const PARTITION = partitionOf(GATE, 2);
const rule = { kind: "concurrency", limit: 3, onConflict: "queue" } as const;
const name = { kind: "concurrency", tenant: "default", name: "few" } as const;

let world: ArchiveWorld;
beforeAll(async () => {
  world = await ArchiveWorld.open();
});
afterAll(() => world.close());

async function journal(store: Pick<Store, "journal"> | ArchiveWorld["archive"]): Promise<readonly JournalRecord[]> {
  const [loaded] = await store.journal.load([{ partition: PARTITION, entity: GATE, aboveVersion: 0 }]);
  return loaded!.records;
}

async function tell(store: Store, body: MessageBody): Promise<void> {
  const before = await store.journal.watch(PARTITION, GATE, 0, 0);
  const message = { id: nodeHost.id(), to: GATE, by: "test", trace: "", tenant: "default", body };
  await store.inbox.append([{ partition: PARTITION, start: false, text: messageText(message) }]);
  await store.journal.watch(PARTITION, GATE, before, 10_000);
}

function engineOn(store: Store): Engine {
  const shipping = { everyMs: 20, windowMs: 0, keepMs: 3_600_000 };
  const settings = { renewMs: 20, idleMs: 20, renewEvents: 20, shipping };
  const engine = new Engine({ store, host: nodeHost, machines: MACHINES, settings, archive: world.archive });
  engine.start();
  return engine;
}

const stateOf = (records: readonly JournalRecord[]): ReturnType<typeof gateMachine.create> =>
  fold(gateMachine, gateMachine.create("concurrency:default:few", undefined), records);

test("a gate's journal is cut once it is in the archive, which keeps all of it, and a store that is lost gets what it needs", async () => {
  const { store, archive } = world;
  let engine = engineOn(store);
  const ask = (execution: string, number: number): MessageBody => {
    return { kind: "gateAcquire", name, rule, execution, asks: [{ ask: number, node: "n" }] };
  };
  await tell(store, ask("execution/holds", 1));
  // It goes on until something was shipped and cut, however long the archive takes.
  const isCut = async (): Promise<boolean> => (await journal(store))[0]!.version > 1;
  for (let number = 1; number <= 2_000 && !(number > 40 && (await isCut())); number++) {
    await tell(store, ask("execution/e", number));
    await tell(store, { kind: "gateReturn", execution: "execution/e", asks: [number] });
  }
  const version = await store.journal.watch(PARTITION, GATE, 0, 0);
  const shipped = async (): Promise<number> => (await archive.tips([GATE])).get(GATE)?.version ?? 0;
  await expect.poll(shipped, { timeout: 20_000, interval: 20 }).toBe(version);
  await engine.stop();
  const [left, kept] = [await journal(store), await journal(archive)];
  expect(left[0]!.version).toBeGreaterThan(1);
  expect(kept[0]!.version).toBe(1);
  for (const [i, record] of kept.entries()) {
    if (i > 0) expect(record.version).toBe(kept[i - 1]!.version + kept[i - 1]!.count);
  }
  expect(gateMachine.snapshot(stateOf(left))).toBe(gateMachine.snapshot(stateOf(kept)));

  const prefix = `${world.prefix}-again`;
  const rebuilt = await openRedis({ url: world.redis.url, prefix, host: nodeHost, partitions: 2 });
  try {
    await recover({ archive, store: rebuilt, host: nodeHost, machines: MACHINES, force: false });
    const restored = await journal(rebuilt);
    expect(restored[0]!.version).toBeGreaterThan(1);
    expect([...stateOf(restored).held.values()].map(({ execution }) => execution)).toEqual(["execution/holds"]);
    engine = engineOn(rebuilt);
    await tell(rebuilt, ask("execution/after", 1));
    expect(stateOf(await journal(rebuilt)).version).toBeGreaterThan(version);
    const again = await rebuilt.journal.watch(PARTITION, GATE, 0, 0);
    await expect.poll(shipped, { timeout: 20_000, interval: 20 }).toBeGreaterThanOrEqual(again);
    await engine.stop();
    expect((await journal(archive))[0]!.version).toBe(1);
  } finally {
    await rebuilt.close();
  }
});
