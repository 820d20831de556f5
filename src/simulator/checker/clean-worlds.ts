import type { World } from "../history.ts";
import { FATAL, FLAKY, node, TestWorld } from "./test-world.ts";

/** Worlds in which nothing is wrong: what the tests of the checker damage. */

const PARENT = { entity: "tally/t", instance: "e1" };

/** `a`, then `b` that reads it and a secret; a tally hears of the end, a reader looks on, a cancel comes too late. */
export function plainWorld(): World {
  const config = { value: "{{ a.value }}", note: "{{ a.text }}", auth: "Bearer {{ secrets.CANARY }}" };
  const world = new TestWorld([node("a"), node("b", { dependencies: ["a"], config })]);
  const text = "{{ secrets.CANARY }}";
  const resolved = { value: 7, note: text, auth: null };
  const holes = [{ pointer: "/auth", kind: "secret", parts: [{ text: "Bearer " }, { secret: "CANARY" }] }];
  world.submit().acquire();
  world.commit([world.accepted({ parent: PARENT }), world.started(), world.dispatched("a")]);
  world.submitted().read(3, "RUNNING").pass(10).work("a", { value: 7, text });
  world.commit([world.completed("a", { value: 7, text }), world.dispatched("b", resolved, [1, 1], holes)], {
    snapshots: [{ entity: world.entity, version: 5 }],
  });
  world
    .read(5, "RUNNING")
    .pass(10)
    .work("b", { done: true }, { ...resolved, auth: "Bearer s3cret" });
  const body = { kind: "childEnded", child: world.entity, generation: 1, instance: "e1", status: "completed" };
  const mail = [{ to: "tally/t", from: world.entity, id: "m1", body }];
  world.commit([world.completed("b", { done: true }), world.ended()], { mail });
  const counted = { kind: "childCounted", atMs: world.now, child: `${world.entity}:1`, status: "completed" } as never;
  world.commit([], { records: [{ entity: "tally/t", version: 1, events: [counted] }], wakes: [] });
  world
    .read(7, "COMPLETED")
    .cancel("r1")
    .commit([world.refused("r1")], { wakes: [] })
    .cancelled("r1", "ALREADY_TERMINAL");
  return world.world();
}

/** `a` fails, waits, loses a worker, is handed back, and completes. */
export function retriedWorld(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a");
  world.commit([world.failed("a", FLAKY, { retryAtMs: world.now + 1_000 })]);
  world
    .pass(1_000)
    .commit([world.retryDue("a"), world.dispatched("a", {}, [2, 1])])
    .work("a", undefined, {}, [2, 1]);
  world
    .pass(50)
    .commit([world.lost("a", [2, 1]), world.dispatched("a", {}, [2, 2])])
    .work("a", undefined, {}, [2, 2]);
  world.pass(50).commit([world.lost("a", [2, 2], true), world.dispatched("a", {}, [2, 3])]);
  world.work("a", { ok: true }, {}, [2, 3]).pass(50);
  return world.commit([world.completed("a", { ok: true }, [2, 3]), world.ended()]).world();
}

/** `a` fails for good and `b` is skipped; `c`, which catches it, completes: a handled failure. */
export function caughtWorld(): World {
  const world = new TestWorld([
    node("a", { on_error: "fail_fast" }),
    node("b", { dependencies: ["a"] }),
    node("c", { dependencies: [{ id: "a", on: "failed" }] }),
  ]);
  world.begin(world.dispatched("a")).work("a");
  const events = [world.failed("a", FATAL), world.skipped("b", "upstream_failed"), world.dispatched("c")];
  world.commit(events, { deadLetters: world.letter("a") }).work("c", 1);
  return world.commit([world.completed("c", 1), world.ended()]).world();
}

/** `a` fails under fail_fast while `b` is out. */
export function failedFastWorld(): World {
  const world = new TestWorld([node("a", { on_error: "fail_fast" }), node("b")]);
  world.begin(world.dispatched("a"), world.dispatched("b")).work("a").work("b");
  const events = [world.failed("a", FATAL), world.ended("failed", "fail_fast", FATAL)];
  return world.commit(events, { deadLetters: world.letter("a"), revoke: [world.token("b")] }).world();
}

/** Cancelled while `a` is out. */
export function cancelledWorld(): World {
  const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
  world.begin(world.dispatched("a")).work("a").cancel("r1");
  world.commit([world.applied("r1"), world.ended("cancelled", "cancel")], { revoke: [world.token("a")] });
  return world.cancelled("r1").read(5, "CANCELLED").world();
}

/** An `input` node, and three conditions: one true, one false, one that cannot be evaluated. */
function conditionsWorld(): World {
  const world = new TestWorld([
    node("in", { handler: "input", config: { m: 2 } }),
    node("yes", { dependencies: ["in"], condition: 'nodes["in"].n > 0' }),
    node("no", { dependencies: ["in"], condition: 'has(nodes["in"].x) && nodes["in"].x == 1' }),
    node("bad", { dependencies: ["in"], condition: 'nodes["in"].x > 1', dlq: "none" }),
    node("after", { dependencies: ["no"] }),
  ]);
  world.begin(
    world.nodeCompleted("in", { m: 2, n: 1 }),
    world.dispatched("yes"),
    world.skipped("no", "condition"),
    world.nodeFailed("bad", "CONDITION_ERROR"),
    world.skipped("after", "condition"),
  );
  world.work("yes", { ok: true });
  return world.commit([world.completed("yes", { ok: true }), world.ended("partial")]).world();
}

/** `a` waits in its queue for too long, `b` runs for too long, then the whole workflow does. */
export function slowWorld(): World {
  const slow = { retry: { ...node("").retry, max_attempts: 2 } };
  const world = new TestWorld([node("a", slow), node("b", slow)], { timeout_seconds: 70 });
  world.begin(world.dispatched("a"), world.dispatched("b")).work("b");
  world
    .pass(1_000)
    .commit([world.taskStarted("b")])
    .pass(40_000);
  const timeout = { code: "TIMEOUT", message: "", retryable: true };
  world.commit([world.failed("b", timeout, { deadline: "run", retryAtMs: world.now + 1_000 })], {
    revoke: [world.token("b")],
  });
  world
    .pass(1_000)
    .commit([world.retryDue("b"), world.dispatched("b", {}, [2, 1])])
    .work("b", undefined, {}, [2, 1])
    .pass(18_000);
  const queueTimeout = { code: "QUEUE_TIMEOUT", message: "", retryable: false };
  world.commit([world.failed("a", queueTimeout, { deadline: "queue" })], {
    deadLetters: world.letter("a"),
    revoke: [world.token("a")],
  });
  const error = { code: "WORKFLOW_TIMEOUT", message: "", retryable: false };
  world.pass(10_000).commit([world.ended("failed", "timeout", error)], { revoke: [world.token("b", 2, 1)] });
  return world.world();
}

/** The store goes back to the first commit; `a` is dispatched again under another nonce, and the old result is ignored. */
export function rolledBackWorld(): World {
  const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
  world.submit().acquire();
  world.commit([world.accepted(), world.started()]).submitted().read(2, "RUNNING");
  const kept = world.history.length;
  world.commit([world.dispatched("a")]).work("a", 1);
  const lost = world.token("a");
  world.commit([world.completed("a", 1), world.dispatched("b")]).read(5, "RUNNING");
  world.rollBack(kept, 1, 2).acquire("engine-2").pass(10);
  world
    .commit([world.dispatched("a")])
    .read(3, "RUNNING")
    .work("a", 2);
  world.commit([{ kind: "resultIgnored", atMs: world.now, token: lost, reason: "unknownDispatch" }]);
  world.commit([world.completed("a", 2), world.dispatched("b")]).work("b", 3);
  return world.commit([world.completed("b", 3), world.ended()]).world({ lossy: true });
}

/** The store goes back to before it gave `a` away, and gives it away once more under the same token. */
export function givenAgainWorld(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a"));
  const kept = world.history.length;
  world
    .work("a", 1)
    .commit([world.completed("a", 1), world.ended()])
    .read(5, "COMPLETED");
  world.rollBack(kept, 1, 3);
  const { nonce } = world;
  world.read(3, "RUNNING").work("a", 2).acquire("engine-2");
  const token = world.token("a").replace(world.nonce, nonce);
  return world.commit([world.completed("a", 2), world.ended()], { revoke: [token] }).world({ lossy: true });
}

/** The store goes back behind its definition, and its owner, who still knows it, has lost nothing else. */
export function lostDefinitionWorld(takesOver = false): World {
  const world = new TestWorld([node("a")]);
  world.acquire();
  const kept = world.history.length;
  world.submit().rollBack(kept, 0, 0);
  if (takesOver) world.acquire();
  world.begin(world.dispatched("a")).work("a", 1);
  const error = { code: "FOLD_FAILED", message: "its definition is not in the store", retryable: false };
  const letter = { id: "quarantine:execution/e1:4", class: "poison", entity: world.entity, status: "open" };
  world.acquire("engine-2").commit([{ kind: "quarantined", atMs: world.now, error }], { deadLetters: [letter] });
  return world.world({ lossy: true });
}

/** At most one node at a time. */
function narrowWorld(): World {
  const world = new TestWorld([node("a"), node("b")], { max_parallel_nodes: 1 });
  world.begin(world.dispatched("a")).work("a", 1).pass(10);
  world
    .commit([world.completed("a", 1), world.dispatched("b")])
    .work("b", 1)
    .pass(10);
  return world.commit([world.completed("b", 1), world.ended()]).world();
}

/** Its result was built to throw: it is left in quarantine with its task gone. */
export function poisonedWorld(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a", 1);
  const error = { code: "DECISION_FAILED", message: "", retryable: false };
  const letter = { id: "quarantine:execution/e1:4", class: "poison", entity: world.entity, status: "open" };
  world.commit([{ kind: "quarantined", atMs: world.now, error }], { deadLetters: [letter], wakes: [] });
  return world.world({ poisoned: ["e1"] });
}

export const CLEAN_WORLDS: Readonly<Record<string, () => World>> = {
  plain: plainWorld,
  retried: retriedWorld,
  caught: caughtWorld,
  "failed fast": failedFastWorld,
  cancelled: cancelledWorld,
  conditions: conditionsWorld,
  slow: slowWorld,
  "rolled back": rolledBackWorld,
  "given again": givenAgainWorld,
  "lost definition": lostDefinitionWorld,
  narrow: narrowWorld,
  poisoned: poisonedWorld,
};
