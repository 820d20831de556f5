import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { WorkflowNode } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import type { World } from "../history.ts";
import { FATAL, type Kind, node, TestWorld } from "./test-world.ts";

/** Worlds in which nothing is wrong, and everything but plain steps happens. */

/** A node of the engine's own. */
export function engine(id: string, handler: string, config: { [key: string]: Json }, more: Partial<WorkflowNode> = {}) {
  return node(id, { handler, config, timeout_seconds: null, ...more });
}

const CHOICE = { mode: "exclusive", on_error: "fail", routes: [{ when: "input.n > 0", to: "b" }], else: "c" };

/** `r` chooses `b`; `c` is skipped although it runs for the first of its parents. */
export function routedWorld(): World {
  const world = new TestWorld([
    engine("r", "router", CHOICE),
    node("b", { dependencies: ["r"] }),
    node("c", { dependencies: ["r", "b"], join: "one_success" }),
  ]);
  world.begin(world.nodeCompleted("r", { chosen: ["b"] }), world.skipped("c", "route"), world.dispatched("b"));
  return world
    .work("b", 1)
    .commit([world.completed("b", 1), world.ended()])
    .world();
}

/** `e` ends it while `a` is out. */
export function endedWorld(): World {
  const world = new TestWorld([node("a"), node("b"), engine("e", "end", END, { dependencies: ["b"] })]);
  world.begin(world.dispatched("a"), world.dispatched("b")).work("a").work("b", 1);
  const ended = { ...world.ended("completed", "end"), output: { json: { n: 1 } } } as ExecutionEvent;
  const events = [world.completed("b", 1), world.nodeCompleted("e", { n: 1 }), ended];
  return world.commit(events, { revoke: [world.token("a")] }).world();
}

const END = { status: "COMPLETED", output: { n: "{{ input.n }}" } };

/** Paused while `a` is out, whose result counts; `b` begins when it is resumed. */
export function pausedWorld(): World {
  const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
  world.begin(world.dispatched("a")).ask("p", { kind: "pause" });
  world.commit([world.applied("p", "pause"), { kind: "paused", atMs: world.now }]).answered("p", "pause");
  world
    .work("a", 1)
    .commit([world.completed("a", 1)])
    .ask("u", { kind: "resume" });
  world.commit([world.applied("u", "resume"), { kind: "resumed", atMs: world.now }, world.dispatched("b")]);
  return world
    .answered("u", "resume")
    .work("b", 1)
    .commit([world.completed("b", 1), world.ended()])
    .world();
}

/** Two rounds: after the second the output says enough. */
export function repeatedWorld(): World {
  const repeat = { until: "a.done", every_seconds: 2, max: 3 };
  const world = new TestWorld([node("a", { repeat })]);
  const round = (number: number): ExecutionEvent => ({ ...world.dispatched("a"), round: number }) as ExecutionEvent;
  world.begin(round(1)).work("a@1", { done: false });
  world.commit([world.completed("a", { done: false }), world.roundEnded("a", 1, world.now + 2_000)]).pass(2_000);
  world.commit([{ kind: "roundDue", atMs: world.now, node: "a" }, round(2)]).work("a@2", { done: true });
  return world.commit([world.completed("a", { done: true }), world.roundEnded("a", 2, null), world.ended()]).world();
}

const SIGNAL = { signal: "go", timeout_seconds: 60 };

/** One signal comes early, one late; two waits take them in order. */
export function signalledWorld(): World {
  const world = new TestWorld([engine("a", "wait", SIGNAL), engine("b", "wait", SIGNAL, { dependencies: ["a"] })]);
  const wait = { for: "signal", signal: "go" } as const;
  const take = (id: string, data: Json): ExecutionEvent =>
    ({ ...world.nodeCompleted(id, data), signal: "go" }) as ExecutionEvent;
  world.begin(world.waits("a", wait, world.now + 60_000));
  for (const [request, data] of [["s1", 1] as const, ["s2", 2] as const]) {
    world.ask(request, { kind: "signal", name: "go", data: { json: data } });
  }
  world.commit([world.applied("s1", "signal"), world.signalled("go", 1), take("a", 1)], { wakes: NOW(world) });
  world.commit([world.applied("s2", "signal"), world.signalled("go", 2), take("b", 2), world.ended()]);
  return world.answered("s1", "signal").answered("s2", "signal").world();
}

function NOW(world: TestWorld): { entity: string; atMs: number }[] {
  return [{ entity: world.entity, atMs: world.now }];
}

/** A date, a while and a review: the first two pass, the third is decided, by one of two. */
export function waitedWorld(): World {
  const world = new TestWorld([
    engine("d", "wait", { until: "1970-01-01T00:00:05.000Z" }),
    engine("s", "delay", { seconds: 3 }),
    engine("r", "review", { due_seconds: 60, on_due: "fail" }),
  ]);
  world.add({ log: "nemesis", kind: "clock", offsetMs: 0 });
  const review = { for: "review", review: { onDue: "fail" }, calendarAtMs: world.now + 60_000 } as const;
  world.begin(
    world.waits("d", { for: "timer", calendarAtMs: 5_000 }),
    world.waits("s", { for: "timer" }, world.now + 3_000),
    world.waits("r", review),
  );
  world
    .pass(3_000)
    .commit([world.nodeCompleted("s", null)])
    .pass(1_000)
    .commit([world.nodeCompleted("d", null)]);
  const decide = { kind: "decideReview", instance: "r", generation: 1, data: null } as const;
  world.ask("r1", { ...decide, decision: "approve" }).ask("r2", { ...decide, decision: "reject" });
  const output = { decision: "approve", data: null, by: "local", at: "1970-01-01T00:00:05.000Z", comment: null };
  world.commit([world.applied("r1", "decideReview"), world.nodeCompleted("r", output), world.ended()]);
  world.commit([world.refused("r2", "decideReview", "REVIEW_CLOSED")], { wakes: [] });
  return world.answered("r1", "decideReview").answered("r2", "decideReview", "REVIEW_CLOSED").world();
}

/** Nobody decides: what is to happen then happens. */
export function overdueWorld(): World {
  const world = new TestWorld([engine("r", "review", { due_seconds: 5, on_due: { decision: "reject" } })]);
  world.add({ log: "nemesis", kind: "clock", offsetMs: 0 });
  const onDue = { decision: "reject" } as const;
  world.begin(world.waits("r", { for: "review", review: { onDue }, calendarAtMs: world.now + 5_000 })).pass(5_000);
  const output = { decision: "reject", data: null, by: "on_due", at: "", comment: null };
  const due = { kind: "reviewDue", atMs: world.now, node: "r" } as const;
  return world.commit([due, world.nodeCompleted("r", output), world.ended()]).world();
}

/** Nobody decides: others are asked, and then it is due. */
export function escalatedWorld(askedAfterMs: number = 2_000): World {
  const config = { due_seconds: 5, on_due: { decision: "reject" }, escalate: { after_seconds: 2, assignees: ["eve"] } };
  const world = new TestWorld([engine("r", "review", config)]);
  world.add({ log: "nemesis", kind: "clock", offsetMs: 0 });
  const escalate = { assignees: ["eve"], dueAtMs: world.now + 5_000 };
  const review = { onDue: { decision: "reject" }, escalate } as const;
  world.begin(world.waits("r", { for: "review", review, calendarAtMs: world.now + 2_000 })).pass(askedAfterMs);
  world
    .commit([{ kind: "reviewEscalated", atMs: world.now, node: "r", assignees: ["eve"] }])
    .pass(5_000 - askedAfterMs);
  const output = { decision: "reject", data: null, by: "on_due", at: "", comment: null };
  const due = { kind: "reviewDue", atMs: world.now, node: "r" } as const;
  return world.commit([due, world.nodeCompleted("r", output), world.ended()]).world();
}

const EACH = {
  items: [7, 8, 9],
  handler: "step",
  config: { it: "{{ item }}" },
  max_concurrency: 2,
  tolerated_failures: 1,
};

/** Three items, two at a time; the second fails and is tolerated. */
export function mappedWorld(): World {
  const world = new TestWorld([engine("m", "map", EACH, { timeout_seconds: 30, dlq: "none" })]);
  world.begin(
    world.mapOpened("m", EACH.items),
    world.dispatched("m[0]", { it: 7 }),
    world.dispatched("m[1]", { it: 8 }),
  );
  world.work("m[0]", "x", { it: 7 }).work("m[1]", undefined, { it: 8 });
  world.commit([world.failed("m[1]", FATAL), world.dispatched("m[2]", { it: 9 })]);
  world.commit([world.completed("m[0]", "x")]).work("m[2]", "z", { it: 9 });
  const events = [world.completed("m[2]", "z"), world.nodeCompleted("m", ["x", null, "z"]), world.ended()];
  return world.commit(events).world();
}

/** No parent but one comes in time. */
export function impatientWorld(): World {
  const world = new TestWorld([
    node("a"),
    node("b"),
    node("j", { dependencies: ["a", "b"], join_timeout_seconds: 5, dlq: "none" }),
  ]);
  world.begin(world.dispatched("a"), world.dispatched("b")).work("a", 1).work("b", 1);
  world
    .commit([world.completed("a", 1)])
    .pass(5_000)
    .commit([world.nodeFailed("j", "JOIN_TIMEOUT")]);
  return world.commit([world.completed("b", 1), world.ended("partial")]).world();
}

/** `b` fails; what failed is run again, by one of two who ask at once; `a` is kept. */
export function againWorld(): World {
  const world = new TestWorld([node("a"), node("b", { dependencies: ["a"] })]);
  world.begin(world.dispatched("a")).work("a", 1);
  world.commit([world.completed("a", 1), world.dispatched("b")]).work("b");
  world.commit([world.failed("b", FATAL), world.ended("partial")], { deadLetters: world.letter("b") });
  world.ask("t1", { kind: "retry", scope: "failed" }).ask("t2", { kind: "retry", scope: "failed" });
  const again = { ...world.dispatched("b") };
  world.commit([world.applied("t1", "retry"), world.opened("failed"), again]);
  world.commit([world.refused("t2", "retry", "EXECUTION_OPEN")]);
  world.answered("t1", "retry").answered("t2", "retry", "EXECUTION_OPEN").work("b", 2, {}, [1, 1, 2]);
  return world.commit([world.completed("b", 2), world.ended()]).world();
}

/** The result of `a` comes after the cancel; the next generation takes it. */
export function lateWorld(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a", 1).cancel("r1");
  world.commit([world.applied("r1"), world.ended("cancelled", "cancel")], { revoke: [world.token("a")] });
  const late = {
    kind: "lateResult",
    atMs: world.now,
    node: "a",
    attempt: 1,
    delivery: 1,
    output: { json: 1 },
  } as const;
  world.cancelled("r1").commit([late], { wakes: [] }).ask("t1", { kind: "retry", scope: "failed" });
  const done = { ...world.nodeCompleted("a", 1), reason: "late_result" } as ExecutionEvent;
  return world.commit([world.applied("t1", "retry"), world.opened("failed"), done, world.ended()]).world();
}

/** The dead letter of `a` is replayed; that of `b` is thrown away. */
export function replayedWorld(): World {
  const world = new TestWorld([node("a"), node("b")]);
  world.begin(world.dispatched("a"), world.dispatched("b")).work("a").work("b");
  const letters = [...world.letter("a"), ...world.letter("b")];
  world.commit([world.failed("a", FATAL), world.failed("b", FATAL), world.ended("failed")], { deadLetters: letters });
  const letter = { id: "e1:1:a", class: "poison", queue: "default", text: "" } as const;
  world.ask("t1", { kind: "retry", scope: "letters", letters: [letter] });
  world.ask("x1", { kind: "discardLetter", letter: "e1:1:b" });
  const opened = world.opened("letters", { instances: ["a"], letters: ["e1:1:a"] });
  world.commit([world.applied("t1", "retry"), opened, world.dispatched("a")], {
    deadLetters: [{ ...letters[0]!, status: "replayed" }],
  });
  const discarded = { kind: "letterDiscarded", atMs: world.now, letter: "e1:1:b" } as const;
  world.commit([world.applied("x1", "discardLetter"), discarded], { discard: ["e1:1:b"] });
  world.answered("t1", "retry").answered("x1", "discardLetter").work("a", 1, {}, [1, 1, 2]);
  return world.commit([world.completed("a", 1), world.ended("partial")]).world();
}

/**
 * `a` fails, is run again by a retry and fails again: its first dead letter is dealt with, and whoever wants both replayed
 * opens it for the second. `replayed` are the letters that he names.
 */
export function failedAgainWorld(replayed: readonly string[] = ["e1:1:a", "e1:2:a"]): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a");
  const first = world.letter("a");
  world.commit([world.failed("a", FATAL), world.ended("failed")], { deadLetters: first });
  world.ask("t1", { kind: "retry", scope: "failed" });
  world.commit([world.applied("t1", "retry"), world.opened("failed"), world.dispatched("a")]);
  world.answered("t1", "retry").work("a", undefined, {}, [1, 1, 2]);
  const second = world.letter("a");
  world.commit([world.failed("a", FATAL), world.ended("failed")], { deadLetters: second });
  const named = replayed.map((id) => ({ id, class: "poison", queue: "default", text: "" }) as const);
  world.ask("t2", { kind: "retry", scope: "letters", letters: named.slice(0, 1) });
  world.commit([world.refused("t2", "retry", "ALREADY_REPLAYED")]).answered("t2", "retry", "ALREADY_REPLAYED");
  world.ask("t3", { kind: "retry", scope: "letters", letters: named });
  const opened = world.opened("letters", { instances: ["a"], letters: replayed });
  const marked = [...first, ...second].filter(({ id }) => replayed.includes(id));
  world.commit([world.applied("t3", "retry"), opened, world.dispatched("a")], {
    deadLetters: marked.map((letter) => ({ ...letter, status: "replayed" })),
  });
  world.answered("t3", "retry").work("a", 1, {}, [1, 1, 3]);
  return world.commit([world.completed("a", 1), world.ended()]).world();
}

/** Its dead letter is thrown away by the commit that would have written it. */
function thrownAwayWorld(): World {
  const world = new TestWorld([node("a")]);
  world.begin(world.dispatched("a")).work("a").ask("x1", { kind: "discardLetter", letter: "e1:1:a" });
  const discarded = { kind: "letterDiscarded", atMs: world.now, letter: "e1:1:a" } as const;
  const events = [world.failed("a", FATAL), world.applied("x1", "discardLetter"), discarded, world.ended("failed")];
  return world
    .commit(events, { discard: ["e1:1:a"] })
    .answered("x1", "discardLetter")
    .world();
}

/** Held, and triggered with another input. */
function heldWorld(): World {
  const world = new TestWorld([node("a", { config: { n: "{{ input.n }}" } })]);
  world.submit().acquire().commit([world.accepted()]).submitted();
  world.ask("t", { kind: "trigger", input: { json: { n: 5 } } });
  const started = { ...world.started(), input: { json: { n: 5 } } } as ExecutionEvent;
  world.commit([world.applied("t", "trigger"), started, world.dispatched("a", { n: 5 })]).answered("t", "trigger");
  return world
    .work("a", 1, { n: 5 })
    .commit([world.completed("a", 1), world.ended()])
    .world();
}

type Accepted = Kind<ExecutionEvent, "accepted">;

/** A family: `p` calls `c1`, which fails; the retry of `p` calls it again, and it completes. */
export class Family {
  readonly world: TestWorld;

  constructor() {
    this.world = new TestWorld([engine("p", "workflow", { name: "child", input: { n: 3 } }, { dlq: "none" })]);
    this.world.others["d2"] = { ...this.world.workflow, name: "child", nodes: [node("a", { dlq: "none" })] };
    this.world.published["child"] = ["d2"];
  }

  /** The parent calls, by the event that waits and the mail that goes with it. */
  call(number: number): [ExecutionEvent, ReturnType<typeof mailOf>] {
    const parent = { entity: "execution/e1", instance: "p", call: number, depth: 1, allowance: 9999 };
    const start = {
      kind: "start",
      workflow: "child",
      definition: "d2",
      input: { json: { n: 3 } },
      bodyHash: "b",
      parent,
    };
    const child = {
      execution: "c1",
      workflow: "child",
      definition: "d2",
      timeoutSeconds: 600,
      inputHash: "",
      call: number,
      holds: 10_000,
    };
    return [this.world.waits("p", { for: "child", child }), mailOf("execution/c1", "execution/e1", start)];
  }

  asChild(): void {
    this.world.execution = "c1";
    this.world.generation = 1;
  }

  asParent(generation = 1): void {
    this.world.execution = "e1";
    this.world.generation = generation;
  }

  accepted(): Accepted {
    const parent = { entity: "execution/e1", instance: "p", call: 1, depth: 1, allowance: 9999 };
    return this.world.accepted({ definition: "d2", input: { json: { n: 3 } }, bodyHash: "b", parent });
  }

  /** What the parent is told. */
  told(call: number, status: string, output?: Json): ReturnType<typeof mailOf> {
    const said = { kind: "childEnded", child: "execution/c1", generation: call, instance: "p", status, call };
    const body = output === undefined ? said : { ...said, output: { json: output } };
    return mailOf("execution/e1", "execution/c1", body);
  }
}

function mailOf(to: string, from: string, body: Json): { to: string; from: string; id: string; body: Json } {
  return { to, from, id: JSON.stringify(body), body };
}

export function familyWorld(): World {
  const family = new Family();
  const { world } = family;
  world.submit().acquire();
  const [waits, start] = family.call(1);
  world.commit([world.accepted(), world.started(), waits], { mail: [start] }).submitted();
  family.asChild();
  world.commit([family.accepted(), world.started(), world.dispatched("a")]).work("a");
  world.commit([world.failed("a", FATAL), world.ended("failed")], { mail: [family.told(1, "failed")] });
  family.asParent();
  world.commit([world.nodeFailed("p", "CHILD_FAILED"), world.ended("failed")]).ask("t", { kind: "trigger" });
  const [waitsAgain, startAgain] = family.call(2);
  const opened = world.opened("failed");
  world.commit([world.applied("t", "trigger"), opened, waitsAgain], { mail: [startAgain] }).answered("t", "trigger");
  family.asChild();
  world.commit([world.opened("failed", { call: 2 }), world.dispatched("a")]).work("a", 1, {}, [1, 1, 2]);
  world.commit([world.completed("a", 1), world.ended()], { mail: [family.told(2, "completed", { a: 1 })] });
  family.asParent(2);
  return world.commit([world.nodeCompleted("p", { a: 1 }), world.ended()]).world();
}

/** `p` is cancelled while its child waits; the cancel overtakes the start. */
export function orphanedWorld(): World {
  const family = new Family();
  const { world } = family;
  world.submit().acquire();
  const [waits, start] = family.call(1);
  world
    .commit([world.accepted(), world.started(), waits], { mail: [start] })
    .submitted()
    .cancel("r1");
  const called = { ...(start.body as Record<string, Json>), input: { json: null } };
  const cancel = { kind: "cancel", request: "cancel:c1:1", start: called };
  const mail = [mailOf("execution/c1", "execution/e1", cancel)];
  world.commit([world.applied("r1"), world.ended("cancelled", "cancel")]);
  const off = { kind: "childrenCancelled", atMs: world.now, instances: ["p"] } as const;
  world.commit([off], { mail, wakes: [] }).cancelled("r1");
  family.asChild();
  const accepted = { ...family.accepted(), input: { json: null } };
  return world.commit([accepted, world.ended("cancelled", "cancel")]).world();
}

export const CONTROL_WORLDS: Readonly<Record<string, () => World>> = {
  routed: routedWorld,
  "ended by a node": endedWorld,
  paused: pausedWorld,
  repeated: repeatedWorld,
  signalled: signalledWorld,
  waited: waitedWorld,
  overdue: overdueWorld,
  escalated: () => escalatedWorld(),
  mapped: mappedWorld,
  impatient: impatientWorld,
  again: againWorld,
  late: lateWorld,
  replayed: replayedWorld,
  "failed again": () => failedAgainWorld(),
  "thrown away": thrownAwayWorld,
  held: heldWorld,
  family: familyWorld,
  orphaned: orphanedWorld,
};
