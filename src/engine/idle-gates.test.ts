import { afterEach, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { LIMITS } from "../core/gate/decide.ts";
import { gateEntity } from "../core/gate/rule.ts";
import { MACHINES } from "../core/machines.ts";
import { Engine } from "./engine.ts";
import { TestWorld } from "./test-engine.ts";

const RETENTION_MS = 300;

let world: TestWorld;
let engine: Engine;
afterEach(async () => {
  await engine.stop();
  await world.close();
});

/** Everything that runs looks at a gate meanwhile, and answers how far that has come. */
function begin(gate: string, horizonMs = 60_000): void {
  world = new TestWorld();
  const settings = { renewMs: 20, idleMs: 20, checkWhole: true, retentionMs: RETENTION_MS, horizonMs };
  engine = new Engine({ store: world.memory, host: world.host, machines: MACHINES, settings });
  engine.start();
  world.worker({ step: () => version(gate) });
}

async function listed(): Promise<readonly string[]> {
  const { items } = await world.memory.queries.listing({ list: LIMITS, limit: 100 });
  return items.map(({ entity }) => entity);
}

const version = (gate: string): Promise<number> => world.memory.journal.watch(0, gate, 0, 0);

test.each([
  ["in memory", 60_000],
  ["in the store, beyond what is read of it at once", 100],
] as const)(
  "a limit that nobody uses leaves the lists when its time has come that is noted %s",
  async (_, horizonMs) => {
    const gate = gateEntity({ kind: "concurrency", tenant: "default", name: "test/a" });
    begin(gate, horizonMs);
    const limited = workflow([
      node("a", [], { concurrency: { limit: 1, on_conflict: "queue" } }),
      node("z", ["a"], { handler: "output", config: { seen: "{{ a.output }}" } }),
    ]);
    for (let round = 0; round < 2; round++) {
      const { status, output } = await world.ended(await world.start(limited));
      expect([status, (output as { seen: number }).seen > 0]).toEqual(["COMPLETED", true]);
      await expect.poll(() => version(gate), { timeout: 20_000 }).toBe(0);
      expect(await listed()).toEqual([]);
    }
  },
);

test("the budget of an execution goes after it, and not before", async () => {
  const id = "spender";
  const own = gateEntity({ kind: "budget", tenant: "default", name: "test/a", key: id });
  const shared = gateEntity({ kind: "budget", tenant: "default", name: "test/b", key: "shared" });
  begin(own);
  const spending = workflow([
    node("a", [], { budget: { calls: 5, on_limit: "fail" } }),
    node("b", ["a"], { budget: { calls: 5, on_limit: "fail", key: "shared" } }),
    node("z", ["b"], { handler: "output", config: { seen: "{{ b.output }}" } }),
  ]);
  const { status, output } = await world.ended(await world.start(spending, null, id));
  expect([status, (output as { seen: number }).seen > 0]).toEqual(["COMPLETED", true]);
  const isGone = async (): Promise<boolean> => {
    // The budget is looked at first: it may go as soon as the execution is not there any more.
    const known = await version(own);
    const isThere = (await world.events(id)).length > 0;
    if (isThere && known === 0) throw new Error("the budget went first");
    return !isThere;
  };
  await expect.poll(isGone, { timeout: 20_000 }).toBe(true);
  await expect.poll(() => version(own), { timeout: 20_000 }).toBe(0);
  expect(await listed()).toEqual([shared]);
  expect(await version(shared)).toBeGreaterThan(0);
});
