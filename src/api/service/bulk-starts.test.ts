import { afterEach, expect, test, vi } from "vitest";
import { executionMachine } from "../../core/execution/machine.ts";
import { INLINE_BYTES } from "../../core/value.ts";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { Engine } from "../../engine/engine.ts";
import { nodeHost } from "../../host/node-host.ts";
import { DECISION_TIMEOUT_MS, Requests } from "../../inbox/requests.ts";
import type { Json } from "../../json/json.ts";
import type { Records } from "../../store/contract.ts";
import { BULK_CHUNK, BULK_CHUNKS_AHEAD } from "../limits.ts";
import { LOCAL } from "./caller.ts";
import { Service } from "./service.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const end of ends.splice(0).toReversed()) await end();
});

/** A service whose posts are counted, on a store that nobody owns until `own` is called. */
async function unowned(put?: Records["put"]): Promise<{ service: Service; posts: number[]; own: () => void }> {
  const store = openMemory({ host: nodeHost });
  if (put !== undefined) vi.spyOn(store.records, "put").mockImplementation(put);
  const posts: number[] = [];
  const append = store.inbox.append.bind(store.inbox);
  vi.spyOn(store.inbox, "append").mockImplementation((messages) => {
    posts.push(messages.length);
    return append(messages);
  });
  const service = new Service({ store, host: nodeHost });
  service.start();
  ends.push(
    () => store.close(),
    () => service.stop(),
  );
  await service.submissions.publish({ definition: { name: "many", nodes: [{ id: "o", handler: "output" }] } }, true);
  posts.length = 0;
  const own = (): void => {
    const engine = new Engine({ store, host: nodeHost, machines: [executionMachine] });
    engine.start();
    ends.push(() => engine.stop());
  };
  return { service, posts, own };
}

test("a bulk start posts some of its parts ahead, and each once, and answers in the order of its inputs", async () => {
  const { service, posts, own } = await unowned();
  const count = BULK_CHUNK * (BULK_CHUNKS_AHEAD + 2) + 7;
  const inputs = Array.from({ length: count }, (_, i): Json => ({ i }));
  const starting = service.submissions.startAll(LOCAL, "many", { inputs });
  await expect.poll(() => posts).toHaveLength(BULK_CHUNKS_AHEAD);
  await nodeHost.sleep(50);
  expect(posts).toEqual(Array.from({ length: BULK_CHUNKS_AHEAD }, () => BULK_CHUNK));
  own();
  const { items } = await starting;
  expect(posts.reduce((sum, one) => sum + one)).toBe(count);
  expect(items).toHaveLength(count);
  for (const i of [0, BULK_CHUNK, count - 1]) {
    const item = items[i]!;
    if (!("execution_id" in item)) throw new Error(JSON.stringify(item));
    expect(JSON.parse(await service.executions.input(item.execution_id))).toEqual({ i });
  }
});

test("each part has the time of those before it as well: whose turn comes late has not been refused", async () => {
  const { service, own } = await unowned();
  own();
  const sendAll = vi.spyOn(Requests.prototype, "sendAll");
  const inputs = Array.from({ length: BULK_CHUNK * (BULK_CHUNKS_AHEAD + 2) }, (): Json => ({}));
  await service.submissions.startAll(LOCAL, "many", { inputs });
  const turns = sendAll.mock.calls.map(([, timeoutMs]) => timeoutMs! / DECISION_TIMEOUT_MS);
  expect(turns).toEqual([1, 2, 3, 4, 4, 4]);
});

test("a part that fails before another is answered fails the request, and nothing else", async () => {
  const { service, posts, own } = await unowned(async ([record]) => {
    if (record?.scope.startsWith("execution/") === true) throw new Error("no large value is taken");
    return "stored";
  });
  // Only the parts behind the first have something to put.
  const large = "x".repeat(INLINE_BYTES + 1);
  const inputs = Array.from({ length: (BULK_CHUNKS_AHEAD + 1) * BULK_CHUNK }, (_, i): Json => ({
    i,
    ...(i >= BULK_CHUNK && { large }),
  }));
  const failing = expect(service.submissions.startAll(LOCAL, "many", { inputs })).rejects.toThrow();
  await expect.poll(() => posts).toEqual([BULK_CHUNK]);
  await nodeHost.sleep(50);
  own();
  await failing;
});
