import { describe, expect, test } from "vitest";
import { executionMachine } from "./machine.ts";
import type { ExecutionState } from "./state.ts";
import { engineNode, failure, imprint, node, START_MS, Trial, workflow } from "./test-execution.ts";
import { randomHistory, runOut } from "./test-histories.ts";
import { viewExecution } from "./test-summary.ts";

function restored(state: ExecutionState): ExecutionState {
  return executionMachine.restore("x", state.plan, executionMachine.snapshot(state));
}

test("a snapshot of many nodes is the same in pieces, whatever their number", () => {
  for (const count of [1, 999, 1_000, 1_001, 2_000]) {
    const trial = new Trial(workflow(Array.from({ length: count }, (_, i) => node(`n${i}`)))).begin();
    for (let unit = 0; unit < count; unit++) trial.state.run(unit);
    const pieces = [...executionMachine.snapshotPieces!(trial.state)];
    expect(pieces).toHaveLength(2 + Math.ceil(count / 1_000));
    expect(executionMachine.snapshot(trial.state)).toBe(pieces.join(""));
    expect(imprint(restored(trial.state))).toBe(imprint(trial.state));
  }
});

describe("a snapshot restored is the fold it was taken of", () => {
  test("at every version of random histories", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const trial = runOut(randomHistory(seed));
      const fold = executionMachine.create("x", trial.state.plan);
      for (const event of trial.events) {
        executionMachine.evolve(fold, event);
        const copy = restored(fold);
        if (imprint(copy) === imprint(fold)) continue;
        expect({ seed, version: fold.version, copy: imprint(copy) }).toEqual({
          seed,
          version: fold.version,
          copy: imprint(fold),
        });
      }
      expect(viewExecution(restored(fold))).toEqual(viewExecution(trial.state));
    }
  });

  test("and goes on as the fold does, event by event", () => {
    for (let seed = 200; seed <= 260; seed++) {
      const trial = runOut(randomHistory(seed));
      const cut = Math.floor(trial.events.length / 2);
      const fold = executionMachine.create("x", trial.state.plan);
      for (const event of trial.events.slice(0, cut)) executionMachine.evolve(fold, event);
      const copy = restored(fold);
      for (const event of trial.events.slice(cut)) {
        executionMachine.evolve(copy, event);
        executionMachine.check(copy, true);
      }
      expect(imprint(copy)).toBe(imprint(trial.state));
    }
  });

  test("before the first event, and while only accepted", () => {
    const trial = new Trial(workflow([node("a"), node("b", ["a"])]));
    expect(imprint(restored(trial.state))).toBe(imprint(trial.state));
    const accepted = {
      workflow: "w",
      definition: "hash",
      input: { json: 1 },
      bodyHash: "",
      by: "",
      tenant: "",
      trace: "",
    };
    trial.apply({ kind: "accepted", atMs: START_MS, ...accepted });
    expect(imprint(restored(trial.state))).toBe(imprint(trial.state));
    expect(restored(trial.state).joined[0]).toBe(0);
  });

  test("with a parent, a quarantine and what was parked", () => {
    const trial = new Trial(workflow([node("a")])).begin({ json: 1 }, { entity: "execution/p", instance: "n" });
    const message = {
      id: "m",
      to: "execution/x",
      by: "t",
      trace: "",
      tenant: "default",
      body: { kind: "cancel", request: "r" },
    } as const;
    trial.apply({ kind: "quarantined", atMs: 1, error: failure() }, { kind: "parked", atMs: 1, message });
    const copy = restored(trial.state);
    expect(copy).toMatchObject({
      parent: { entity: "execution/p", instance: "n" },
      quarantined: failure(),
      parked: [message],
    });
  });
});

test("those who wait for the same signal stay in the order in which they came", () => {
  const wait = (id: string, parent: string): ReturnType<typeof engineNode> =>
    engineNode(id, "wait", { signal: "s", timeout_seconds: 50 }, [parent]);
  const nodes = [wait("second", "b"), wait("first", "a"), node("a"), node("b")];
  const trial = new Trial(workflow(nodes)).begin().completes("a").completes("b");
  const copy = restored(trial.state);
  expect([...copy.signalWaits]).toEqual([["s", [1, 0]]]);
  expect(imprint(copy)).toBe(imprint(trial.state));
});

test("a snapshot names its definition", () => {
  const { state } = new Trial(workflow([node("a")])).begin();
  expect(executionMachine.definitionOfSnapshot(executionMachine.snapshot(state))).toBe("hash");
});

test("a snapshot shares nothing with the state: what happens later does not change it", () => {
  const trial = new Trial(workflow([node("a"), node("b", ["a"])])).begin();
  const copy = restored(trial.state);
  const before = imprint(copy);
  trial.completes("a").completes("b");
  expect(imprint(copy)).toBe(before);
});
