import { describe, expect, test } from "vitest";
import { checkTouched, checkWhole, InvariantBroken } from "./invariants.ts";
import type { ExecutionState } from "./state.ts";
import { node, RETRYABLE, Trial, workflow } from "./test-execution.ts";

/** a is queued, b waits for its parent, r is running, w is between attempts. */
function running(): Trial {
  const nodes = [node("a"), node("b", ["a"]), node("r"), node("w"), node("done")];
  const trial = new Trial(workflow(nodes, { max_parallel_nodes: 9 })).begin();
  trial.starts("r");
  return trial.fails("w", RETRYABLE).completes("done");
}

const [A, B, R, W, DONE] = [0, 1, 2, 3, 4];

describe("a state that contradicts itself is found", () => {
  test.each<[string, (state: ExecutionState) => void]>([
    ["2 tasks are out, 3 are counted", (s) => s.liveByQueue.set("step", 3)],
    ["nodes are open", (s) => (s.openCount = -1)],
    ["2 nodes run at once, 1 may", (s) => Object.assign(s.plan.workflow, { max_parallel_nodes: 1 })],
  ])("cheaply: %s", (message, breakIt) => {
    const { state } = running();
    checkTouched(state);
    breakIt(state);
    expect(() => checkTouched(state)).toThrow(message);
  });

  test("cheaply: open nodes that nothing will ever move", () => {
    const { state } = new Trial(workflow([node("a")], { timeout_seconds: 0 })).begin();
    state.live.clear();
    state.liveByQueue.clear();
    state.timers.clear();
    expect(() => checkTouched(state)).toThrow("nothing will ever move them");
  });

  test("cheaply: an ended execution that still has something to do", () => {
    const { state } = new Trial(workflow([node("a")])).begin().completes("a");
    state.skips.push(0);
    expect(() => checkTouched(state)).toThrow("still has something to do");
  });

  test.each<[string, (state: ExecutionState) => void]>([
    ["4 nodes are open, 9 are counted", (s) => (s.openCount = 9)],
    ["an edge into b is wrong", (s) => (s.edges[0] = 1)],
    ["the parents of b are miscounted", (s) => (s.okEdges[B] = 1)],
    ["b is pending and has a task or deadline", (s) => (s.run(B).dueAtMs = 5)],
    ["a is queued, with a task and a place in line", (s) => (s.inLine[A] = 1)],
    ["a is queued and nothing will ever move it", (s) => (s.run(A).dueAtMs = null)],
    ["r is running and nothing will ever move it", (s) => (s.run(R).dueAtMs = null)],
    ["w is waiting and nothing will ever move it", (s) => (s.run(W).dueAtMs = null)],
    ["r is running and stands in line", (s) => (s.inLine[R] = 1)],
    ["w waits and has a task", (s) => (s.live.add(W), s.liveByQueue.set("step", 3))],
    ["done has ended and still has a task, timer or place", (s) => (s.inLine[DONE] = 1)],
  ])("by looking at everything: %s", (message, breakIt) => {
    const { state } = running();
    checkWhole(state);
    breakIt(state);
    expect(() => checkWhole(state)).toThrow(InvariantBroken);
    expect(() => checkWhole(state)).toThrow(message);
  });

  test("by looking at everything: a node that is queued with neither a task nor a place", () => {
    const trial = running();
    trial.room = () => 0;
    trial.loses("a");
    trial.state.inLine[A] = 0;
    expect(() => checkWhole(trial.state)).toThrow("a is queued and nothing will ever move it");
  });

  test("by looking at everything: a node that has all its parents and stands in no line", () => {
    const trial = new Trial(workflow([node("a"), node("b")]), { room: () => 0 }).begin();
    trial.state.inLine[B] = 0;
    expect(() => checkWhole(trial.state)).toThrow("b is pending and nothing will ever move it");
  });
});
