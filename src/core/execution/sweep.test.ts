import { describe, expect, test } from "vitest";
import { Random } from "../../simulator/random.ts";
import type { ExecutionEvent } from "./events.ts";
import { explain } from "./explain.ts";
import { executionMachine } from "./machine.ts";
import { ENGINE_LINE } from "./ready-lines.ts";
import type { ExecutionState } from "./state.ts";
import { sweep } from "./sweep.ts";
import { engineNode, imprint, mapNode, node, RETRYABLE, START_MS, Trial, workflow } from "./test-execution.ts";
import { randomBeginning, runOut } from "./test-histories.ts";
import { stuckUnits, wakerOf } from "./wakers.ts";
import { isClosing, setDue, setLive } from "./units.ts";

const fetched = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);

/** Sweeps until there is nothing to mend, and gives what was written about it. */
function mend(trial: Trial): ExecutionEvent[] {
  const events: ExecutionEvent[] = [];
  for (let i = 0; i < 10; i++) {
    const found = sweep(trial.state, trial.context).events;
    if (found.length === 0) break;
    trial.apply(...found);
    events.push(...found);
  }
  executionMachine.check(trial.state, true);
  return events;
}

/** Takes away what would move a unit, as a bug of ours might. */
function damage(state: ExecutionState, unit: number): void {
  const waker = wakerOf(state, unit);
  switch (waker) {
    case "line": {
      const closing = isClosing(state, unit);
      state.inLine[unit] = 0;
      if (closing) state.closing--;
      state.ready.remove(closing ? ENGINE_LINE : state.lineOf(unit), unit);
      return;
    }
    case "skips":
      state.skipReasons.delete(unit);
      return state.skips.remove(unit);
    case "parents":
      state.joined[unit] = 1;
      return setDue(state, unit, null);
    case "task":
      setLive(state, unit, false);
      return setDue(state, unit, null);
    case "child":
      state.children.delete(unit);
      return;
    case "timer":
      return setDue(state, unit, null);
    case "date":
      return state.calendar.clear();
    case "gate":
      state.asks.delete(unit);
      return;
    case "items":
    case null:
      return;
  }
}

test("finds nothing in a state that is well, and changes nothing", () => {
  const trial = new Trial(workflow([node("a"), node("b", ["a"])])).begin();
  const before = imprint(trial.state);
  expect(sweep(trial.state, trial.context).events).toEqual([]);
  expect(imprint(trial.state)).toBe(before);
});

test("has nothing to do with one that is held, or over", () => {
  const held = new Trial(workflow([node("a")])).hold();
  expect(sweep(held.state, held.context).events).toEqual([]);
  const over = new Trial(workflow([node("a"), node("b")])).begin().does({ kind: "cancel" });
  expect(sweep(over.state, over.context).events).toEqual([]);
});

describe("mends what a bug has damaged, so that the execution still ends", () => {
  const cases: readonly (readonly [what: string, make: () => Trial, id: string, found: string, then: string])[] = [
    [
      "a ready node that stands in no line",
      () => new Trial(workflow([node("a")]), { room: () => 0 }).begin(),
      "a",
      "pending without a waker",
      "QUEUED",
    ],
    ["a task that is not out", () => new Trial(workflow([node("a")])).begin(), "a", "queued without a waker", "QUEUED"],
    [
      "a handler without a deadline",
      () => {
        const trial = new Trial(workflow([node("a")])).begin();
        trial.starts("a");
        return trial;
      },
      "a",
      "running without a waker",
      "QUEUED",
    ],
    [
      "a backoff without an end",
      () => new Trial(workflow([node("a")])).begin().fails("a", RETRYABLE),
      "a",
      "waiting without a waker",
      "QUEUED",
    ],
    [
      "a backoff within a repeat",
      () => {
        const repeat = { until: "a.done", every_seconds: 5, max: 3 };
        return new Trial(workflow([node("a", [], { repeat })])).begin().fails("a", RETRYABLE);
      },
      "a",
      "waiting without a waker",
      "QUEUED",
    ],
    [
      "a wait between two rounds",
      () => {
        const repeat = { until: "a.done", every_seconds: 5, max: 3 };
        return new Trial(workflow([node("a", [], { repeat })])).begin().completes("a", { done: false });
      },
      "a",
      "waiting without a waker",
      "WAITING timer",
    ],
    [
      "a timer",
      () => new Trial(workflow([engineNode("a", "wait", { seconds: 5 })])).begin(),
      "a",
      "waiting without a waker",
      "WAITING timer",
    ],
    [
      "a wait for a signal without its time",
      () => new Trial(workflow([engineNode("a", "wait", { signal: "s", timeout_seconds: 5 })])).begin(),
      "a",
      "waiting without a waker",
      "WAITING signal",
    ],
    [
      "a date that stands in no heap",
      () => new Trial(workflow([engineNode("a", "wait", { until: new Date(START_MS + 5000).toISOString() })])).begin(),
      "a",
      "waiting without its deadline",
      "WAITING timer",
    ],
    [
      "a review that stands in no heap",
      () => new Trial(workflow([engineNode("a", "review", { due_seconds: 5, on_due: "fail" })])).begin(),
      "a",
      "waiting without its deadline",
      "WAITING review",
    ],
    [
      "a child that nobody waits for",
      () => new Trial(workflow([engineNode("a", "workflow", { name: "w" })]), { fetched }).begin(),
      "a",
      "waiting without a waker",
      "WAITING child",
    ],
    [
      "an item of a map",
      () => new Trial(workflow([mapNode("m", { items: [1, 2], handler: "step" })])).begin(),
      "m[1]",
      "queued without a waker",
      "QUEUED",
    ],
    [
      "a join that has spoken and was not heard",
      () => new Trial(workflow([node("p"), node("a", ["p"])])).begin(),
      "a",
      "pending without a waker",
      "PENDING",
    ],
  ];

  test.each(cases)("%s", (_, make, id, found, then) => {
    const trial = make();
    damage(trial.state, trial.unit(id));
    expect(explainedAsStuck(trial, id, found)).toBe(true);
    expect(() => executionMachine.check(trial.state, true)).toThrow(/nothing will ever move it|stands in no heap/);
    expect(mend(trial)).toMatchObject([{ kind: "repaired", node: id, what: found }]);
    trial.room = () => 1000;
    trial.settle();
    const { status, reason } = trial.view(id);
    expect(reason === null ? status : `${status} ${reason}`).toBe(then);
    expect(runOut(trial).state.isEnded).toBe(true);
  });

  /** A deadline that no heap holds does not show in the unit itself. */
  function explainedAsStuck(trial: Trial, id: string, found: string): boolean {
    return found.endsWith("its deadline") || explain(trial.state, id)[0]!.reason === "stuck";
  }

  test("a place in line that no line has", () => {
    const trial = new Trial(workflow([node("a")]), { room: () => 0 }).begin();
    trial.state.ready.clear();
    expect(mend(trial)).toMatchObject([{ node: "a", what: "pending without a waker" }]);
    trial.room = () => 1;
    expect(trial.settle().shown).toEqual({ a: "QUEUED" });
  });

  test("deadlines that no heap has: they are filed again, and nothing else happens", () => {
    const nodes = [
      node("q", [], { queue_timeout_seconds: 50 }),
      node("r"),
      engineNode("s", "wait", { signal: "s", timeout_seconds: 50 }),
      node("j", ["done", "q"], { join_timeout_seconds: 50 }),
      node("done"),
    ];
    const trial = new Trial(workflow(nodes)).begin().fails("r", RETRYABLE).completes("done");
    const before = trial.shown;
    trial.state.timers.clear();
    expect(mend(trial)).toMatchObject(["q", "r", "s", "j"].map((id) => ({ node: id, refiled: true })));
    expect(trial.shown).toEqual(before);
    expect(executionMachine.nextWakeMs(trial.state)).toBe(START_MS + 1000);
  });

  test("a skip that was forgotten is a skip again, not a run", () => {
    const nodes = [node("f", [], { on_error: "fail_branch" }), node("a", ["f"]), node("b", ["f"])];
    const trial = new Trial(workflow(nodes), { maxEvents: 1 }).begin();
    trial.send({
      kind: "taskFailed",
      token: trial.token("f"),
      error: { code: "E", message: "", retryable: false },
      runningMs: 1,
    });
    damage(trial.state, trial.unit("b"));
    expect(mend(trial)).toMatchObject([{ node: "b" }]);
    expect(trial.settle().shown).toEqual({ f: "FAILED", a: "SKIPPED upstream_failed", b: "SKIPPED upstream_failed" });
  });

  test("a route that was forgotten is a route again", () => {
    const config = { mode: "exclusive", routes: [{ when: "false", to: ["a", "b"] }], on_error: "fail" };
    const nodes = [engineNode("r", "router", config), node("a", ["r"]), node("b", ["r"])];
    const trial = new Trial(workflow(nodes), { maxEvents: 1 });
    trial.send({ kind: "start", workflow: "w", definition: "hash", input: { json: null }, bodyHash: "" });
    trial.step();
    damage(trial.state, trial.unit("b"));
    mend(trial);
    expect(trial.settle().shown).toEqual({ r: "COMPLETED", a: "SKIPPED route", b: "SKIPPED route" });
  });

  test("a map that would never be closed", () => {
    const trial = new Trial(workflow([mapNode("m", { items: [1], handler: "step" })])).begin();
    trial.send({ kind: "taskCompleted", token: trial.token("m[0]"), output: { json: 7 }, runningMs: 1 });
    damage(trial.state, trial.unit("m"));
    expect(mend(trial)).toMatchObject([{ node: "m", what: "running without a waker" }]);
    expect(trial.settle().summary.output).toEqual({ m: [7] });
  });

  test("a repaired wait is found once by what it waits for", () => {
    const nodes = [engineNode("w", "wait", { signal: "s", timeout_seconds: 5 }), node("b", ["w"])];
    const trial = new Trial(workflow(nodes)).begin();
    damage(trial.state, 0);
    mend(trial);
    trial.settle().does({ kind: "signal", name: "s", data: { json: 1 } });
    expect(trial.state.signalWaits.size).toBe(0);
    expect(trial.shown).toEqual({ w: "COMPLETED", b: "QUEUED" });
  });
});

test("as many repairs are made at once as a decision may have events", () => {
  const trial = new Trial(workflow([node("a"), node("b"), node("c")]), { maxEvents: 2 }).begin();
  for (const unit of [0, 1, 2]) damage(trial.state, unit);
  expect(sweep(trial.state, trial.context).events).toHaveLength(2);
  expect(mend(trial)).toHaveLength(3);
});

/** Of a map that was opened again, the items of before are only remembered. */
function isUnderWay(state: ExecutionState, item: number): boolean {
  const { node } = state.mapOf(item);
  const { base, count } = state.maps.get(node)!;
  return item >= base && item < base + count && state.statusOf(node) === "running";
}

test("a repair of what is well harms nothing: the release that folds the journal may not have the fault", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = new Random(seed);
    const trial = randomBeginning(seed);
    for (let unit = 0; unit < trial.state.runs.length && !trial.state.isEnded; unit++) {
      if (!random.chance(0.3) || trial.state.isNodeEnded(unit)) continue;
      if (trial.state.isItem(unit) && !isUnderWay(trial.state, unit)) continue;
      if (trial.state.isItem(unit) && wakerOf(trial.state, unit) === "items") continue;
      trial.apply({ kind: "repaired", atMs: trial.nowMs, node: trial.state.nameOf(unit), what: "" });
      executionMachine.check(trial.state, true);
    }
    expect(runOut(trial).state.isEnded).toBe(true);
  }
});

test("whatever is damaged in a random state, the sweep mends it and the execution ends", () => {
  let damaged = 0;
  for (let seed = 1; seed <= 250; seed++) {
    const random = new Random(seed);
    const trial = randomBeginning(seed);
    const { state } = trial;
    const running = !state.isEnded && (state.status === "running" || state.status === "paused");
    for (let unit = 0; running && unit < state.runs.length; unit++) {
      if (!state.isNodeEnded(unit) && random.chance(0.5)) damage(state, unit);
    }
    damaged += stuckUnits(state).length;
    mend(trial);
    expect(stuckUnits(state)).toEqual([]);
    expect([seed, runOut(trial).state.isEnded]).toEqual([seed, true]);
  }
  expect(damaged).toBeGreaterThan(200);
});
