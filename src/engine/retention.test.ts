import { afterEach, expect, test } from "vitest";
import { readExecution } from "../../test/support/memory-engine.ts";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKey } from "../core/entity.ts";
import { startBody } from "../core/execution/test-execution.ts";
import { viewExecution } from "../core/execution/test-summary.ts";
import { contentHash } from "../json/hash.ts";
import { HandlerError } from "../worker/handler.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

let world: TestWorld;
afterEach(() => world.close());

const failing = workflow([node("a", [], { retry: { ...node("x").retry, max_attempts: 1 } })]);

async function isGone(id: string): Promise<boolean> {
  const header = await world.memory.queries.headers({ limit: 100 });
  return (
    (await world.events(id)).length === 0 && !header.items.some((item) => item.entity === entityKey("execution", id))
  );
}

test("what has ended is removed after its time, with its dead letters, and what goes on is not", async () => {
  world = new TestWorld();
  world.engine({ retentionMs: 300 });
  world.worker({
    step: () => {
      throw new HandlerError("BAD", "no", { retryable: false });
    },
  });
  const waiting = await world.start(workflow([node("w", [], { handler: "wait", config: { seconds: 600 } })]));
  const id = await world.start(failing);
  expect((await world.ended(id)).status).toBe("FAILED");
  expect((await world.memory.queries.deadLetters({ limit: 10 })).items).toHaveLength(1);
  await expect.poll(() => isGone(id)).toBe(true);
  expect((await world.memory.queries.deadLetters({ limit: 10 })).items).toEqual([]);
  expect(await isGone(waiting)).toBe(false);
});

test("an engine that comes later removes what has ended long ago", async () => {
  world = new TestWorld();
  const first = world.engine({ retentionMs: 200 });
  const worker = world.worker({ step: () => 1 });
  const id = await world.start(failing);
  await world.ended(id);
  await world.stop(first);
  await world.stop(worker);
  world.engine({ retentionMs: 200 });
  await expect.poll(() => isGone(id)).toBe(true);
});

test("one that is retried in time stays, and its time counts from its new end", async () => {
  world = new TestWorld();
  world.engine({ retentionMs: 1000 });
  let fail = true;
  world.worker({
    step: () => {
      if (fail) throw new HandlerError("BAD", "no", { retryable: false });
      return new Promise((resolve) => setTimeout(() => resolve(1), 1500));
    },
  });
  const id = await world.start(failing);
  await world.ended(id);
  fail = false;
  expect(await world.send(id, { kind: "retry", request: "r", scope: "failed" })).toMatchObject({
    ok: { generation: 2 },
  });
  const ends = (count: number) => async (): Promise<boolean> =>
    (await world.kinds(id)).filter((kind) => kind === "executionEnded").length === count;
  await expect.poll(ends(2)).toBe(true);
  await expect.poll(() => isGone(id)).toBe(true);
});

test("one that was accepted and never triggered is removed too", async () => {
  world = new TestWorld();
  world.engine({ retentionMs: 200 });
  const text = JSON.stringify(failing);
  await world.memory.records.put([{ scope: "definition", hash: contentHash(text), text }]);
  const body = { ...startBody(), definition: contentHash(text), hold: true };
  expect(await world.send("held", body)).toEqual({ ok: { execution_id: "held", status: "PENDING" } });
  await expect.poll(() => isGone("held")).toBe(true);
});

test("of those that are over only so many are kept, the newest, and those that go on are not counted", async () => {
  world = new TestWorld();
  const engine = world.engine({ retentionMs: 3_600_000 });
  const worker = world.worker({ step: () => 1 });
  const waiting = await world.start(workflow([node("w", [], { handler: "wait", config: { seconds: 600 } })]));
  const ids: string[] = [];
  for (let i = 0; i < 30; i++) {
    // In order: what ends within one millisecond goes in the order of the names.
    const id = await world.start(failing, null, `e${String(i).padStart(2, "0")}`);
    await world.ended(id);
    ids.push(id);
  }
  await world.stop(engine);
  await world.stop(worker);
  world.engine({ retentionMs: 3_600_000, keepEnded: 10, renewMs: 20 });
  const count = async (): Promise<number | undefined> => (await world.memory.queries.counts()).ended;
  await expect.poll(count).toBe(10);
  expect(await Promise.all(ids.map((id) => isGone(id)))).toEqual(ids.map((_, i) => i < 20));
  expect(await isGone(waiting)).toBe(false);
  // Nothing more goes once there are as many as there may be.
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(await count()).toBe(10);
});

test("so many are kept with all that they have called: no child is counted, or goes before its parent", async () => {
  world = new TestWorld();
  const first = world.engine({ retentionMs: 3_600_000 });
  const worker = world.worker({ step: () => 1 });
  const call = (name: string): ReturnType<typeof node> => node("call", [], { handler: "workflow", config: { name } });
  await world.publish("inner", failing);
  await world.publish("outer", workflow([call("inner")]));
  // Its children are the oldest of all that are over.
  const rest = node("rest", ["call"], { handler: "wait", config: { seconds: 600 } });
  const open = await world.start(workflow([call("outer"), rest]));
  await expect.poll(() => world.count("over")).toBe(2);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    const id = await world.start(workflow([call("outer")]), null, `e${i}`);
    await world.ended(id);
    ids.push(id);
  }
  expect(await world.count()).toBe(18);
  await world.stop(first);
  await world.stop(worker);
  world.engine({ retentionMs: 3_600_000, keepEnded: 2, renewMs: 20 });
  const left = [...ids.slice(3), open];
  await expect.poll(() => world.count()).toBe(3 * left.length);
  expect(await Promise.all(ids.map((id) => isGone(id)))).toEqual([true, true, true, false, false]);
  // Nothing more goes, whatever is looked at meanwhile.
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(await world.count()).toBe(3 * left.length);
  for (const id of left) {
    const child = viewExecution(await readExecution(world.memory, id)).nodes["call"]!.child!;
    expect(await isGone(child)).toBe(false);
  }
});

test("what had tasks out when it ended goes in its turn, and not the newer ones in its place", async () => {
  world = new TestWorld();
  const engine = world.engine({ retentionMs: 3_600_000 });
  const once = { retry: { ...node("x").retry, max_attempts: 1 } };
  const worker = world.worker({
    step: () => {
      throw new HandlerError("BAD", "no", { retryable: false });
    },
  });
  // Nobody takes the other's task: it is out when the failure ends them all.
  const ending = workflow([node("a", [], once), node("b", [], { handler: "nobody", queue: "nobody" })]);
  // More than are looked at with one batch, so that some are committed before their turn comes again.
  await Promise.all(Array.from({ length: 450 }, async (_, i) => world.ended(await world.start(ending, null, `a${i}`))));
  for (let i = 0; i < 5; i++) await world.ended(await world.start(failing, null, `b${i}`));
  await world.stop(engine);
  await world.stop(worker);
  world.engine({ retentionMs: 3_600_000, keepEnded: 5, renewMs: 20 });
  await expect.poll(async () => (await world.memory.queries.counts()).ended).toBe(5);
  expect(await Promise.all([isGone("a0"), isGone("a449"), isGone("b0"), isGone("b4")])).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

test("a child stays for as long as its parent: a retry finds what it has done", async () => {
  world = new TestWorld();
  const retentionMs = 300;
  const first = world.engine({ retentionMs });
  const once = { retry: { ...node("x").retry, max_attempts: 1 } };
  const fails = node("fails", ["first"], { ...once, handler: "fails", queue: "fails" });
  await world.publish("inner", workflow([node("first"), fails]));
  const done: string[] = [];
  const slow = Promise.withResolvers<number>();
  world.worker({
    step: () => done.push("first"),
    fails: () => {
      done.push("fails");
      if (done.length === 2) throw new HandlerError("BAD", "no", { retryable: false });
      return 1;
    },
    slow: () => slow.promise,
  });
  const call = node("call", [], { handler: "workflow", config: { name: "inner" }, on_error: "fail_branch" });
  const id = await world.start(workflow([call, node("slow", [], { handler: "slow", queue: "slow" })]));
  await expect.poll(() => world.count("over")).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 2 * retentionMs));
  // Another owner knows of it only what is stored.
  await world.stop(first);
  const second = world.engine({ retentionMs });
  await new Promise((resolve) => setTimeout(resolve, 2 * retentionMs));
  expect(await world.count()).toBe(2);
  await world.stop(second);
  const third = world.engine({ retentionMs: 3_600_000 });
  slow.resolve(1);
  await world.ended(id);
  await world.send(id, { kind: "retry", request: "r", scope: "failed" });
  await world.until(id, (events) => events.filter(({ kind }) => kind === "executionEnded").length === 2);
  expect(done).toEqual(["first", "fails", "fails"]);
  await world.stop(third);
});

test("a child goes when its parent has gone", async () => {
  world = new TestWorld();
  world.engine({ retentionMs: 200 });
  await world.publish("inner", failing);
  world.worker({ step: () => 1 });
  const call = node("call", [], { handler: "workflow", config: { name: "inner" } });
  const rest = node("rest", ["call"], { handler: "wait", config: { seconds: 1 } });
  await world.start(workflow([call, rest]));
  await expect.poll(() => world.count("over")).toBeGreaterThan(0);
  await expect.poll(() => world.count()).toBe(0);
});

test("a child with tasks out at its end has them called back, stays with its parent and goes after it", async () => {
  world = new TestWorld();
  world.engine({ retentionMs: 200 });
  const once = { retry: { ...node("x").retry, max_attempts: 1 } };
  // Nobody takes the other's task: it is out when the failure ends them all.
  await world.publish("inner", workflow([node("a", [], once), node("b", [], { handler: "nobody", queue: "nobody" })]));
  const slow = Promise.withResolvers<number>();
  world.worker({
    step: () => {
      throw new HandlerError("BAD", "no", { retryable: false });
    },
    slow: () => slow.promise,
  });
  const call = node("call", [], { handler: "workflow", config: { name: "inner" }, on_error: "fail_branch" });
  await world.start(workflow([call, node("slow", [], { handler: "slow", queue: "slow" })]));
  await expect.poll(() => world.count("over")).toBe(1);
  const queued = async (): Promise<object> => (await world.memory.queries.counts()).queued;
  await expect.poll(queued).toEqual({});
  // Several looks, each of which loads it and calls back what was out.
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(await world.count()).toBe(2);
  slow.resolve(1);
  await expect.poll(() => world.count()).toBe(0);
});

test("a child goes with its parent, whenever it would be looked at by itself", async () => {
  world = new TestWorld();
  const first = world.engine({ retentionMs: 3_600_000 });
  await world.publish("inner", failing);
  world.worker({ step: () => 1 });
  const id = await world.start(workflow([node("call", [], { handler: "workflow", config: { name: "inner" } })]));
  await world.ended(id);
  await world.stop(first);
  // It finds out that the parent's time is over when somebody asks for it. Nobody asks for the child, and its wake is an hour away.
  world.engine({ retentionMs: 100 });
  expect(await world.send(id, { kind: "cancel", request: "r" })).toMatchObject({ refused: "ALREADY_TERMINAL" });
  await expect.poll(() => world.count()).toBe(0);
});

test("a child whose own time is not over stays when its parent goes", async () => {
  world = new TestWorld();
  const first = world.engine({ retentionMs: 3_600_000 });
  await world.publish("inner", failing);
  world.worker({ step: () => 1 });
  const id = await world.start(workflow([node("call", [], { handler: "workflow", config: { name: "inner" } })]));
  const child = (await world.ended(id)).nodes["call"]!.child!;
  await new Promise((resolve) => setTimeout(resolve, 2500));
  await world.send(child, { kind: "retry", request: "again", scope: "descendants", from: "a" });
  await world.until(child, (events) => events.filter(({ kind }) => kind === "executionEnded").length === 2);
  await world.stop(first);
  world.engine({ retentionMs: 2500 });
  await world.send(id, { kind: "cancel", request: "r" });
  await expect.poll(() => isGone(id)).toBe(true);
  expect(await isGone(child)).toBe(false);
});

test("an id that is used again after its time has children of its own", async () => {
  world = new TestWorld();
  world.engine({ retentionMs: 400 });
  await world.publish("inner", workflow([node("a", [], { config: { n: "{{ input.n }}" } })]));
  const called: unknown[] = [];
  world.worker({ step: ({ config }) => called.push((config as { readonly n: number }).n) });
  const call = node("call", [], { handler: "workflow", config: { name: "inner", input: "{{ input }}" } });
  for (const n of [1, 2]) {
    await world.start(workflow([call]), { n }, "again");
    await world.ended("again");
    expect(called.at(-1)).toBe(n);
    await expect.poll(() => isGone("again")).toBe(true);
  }
});

test("nobody waits because it cannot be looked up whether a parent is gone", async () => {
  let isAway = false;
  world = new TestWorld({
    wrap: (memory) =>
      withJournal(memory, {
        watch: (partition, key, above, waitMs) =>
          isAway && waitMs === 0
            ? Promise.reject(new Error("away"))
            : memory.journal.watch(partition, key, above, waitMs),
      }),
  });
  world.engine({ retentionMs: 200 });
  await world.publish("inner", failing);
  world.worker({ step: () => 1 });
  isAway = true;
  const call = node("call", [], { handler: "workflow", config: { name: "inner" } });
  await world.start(workflow([call, node("rest", ["call"], { handler: "wait", config: { seconds: 1 } })]));
  await expect.poll(() => world.count("over")).toBeGreaterThan(0);
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect((await world.ended(await world.start(failing))).status).toBe("COMPLETED");
  isAway = false;
  await expect.poll(() => world.count()).toBe(0);
});
