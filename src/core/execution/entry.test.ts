import { describe, expect, test } from "vitest";
import type { WorkflowConcurrency } from "../../definition/workflow.ts";
import type { GateAcquire } from "../message.ts";
import { explain } from "./explain.ts";
import { executionMachine } from "./machine.ts";
import { engineNode, imprint, node, Trial, workflow } from "./test-execution.ts";
import { retryableFrom } from "./view.ts";

function limited(more: Partial<WorkflowConcurrency> = {}): Trial {
  const concurrency = { limit: 1, on_conflict: "queue" as const, ...more };
  return new Trial(workflow([node("a"), node("b", ["a"])], { name: "w", concurrency, timeout_seconds: 60 }));
}

const asked = ({ mail }: Trial): GateAcquire[] =>
  mail.flatMap(({ body }) => (body.kind === "gateAcquire" ? [body] : []));
const returned = ({ mail }: Trial): readonly (readonly number[])[] =>
  mail.flatMap(({ body }) => (body.kind === "gateReturn" ? [body.asks] : []));

describe("an execution of a workflow with a limit", () => {
  test("runs nothing and holds nothing until it has its place, and gives that back when it ends", () => {
    const trial = limited().begin();
    expect(asked(trial)).toMatchObject([{ name: { name: "workflow w" }, rule: { limit: 1, onConflict: "queue" } }]);
    expect([trial.out, trial.shown]).toEqual([[], { a: "WAITING concurrency", b: "PENDING" }]);
    expect(explain(trial.state, "a")[0]).toMatchObject({ reason: "concurrency", details: { ask: 1 } });
    expect(executionMachine.hasWork(trial.state)).toBe(false);
    expect(trial.enters().out).toEqual(["a"]);
    trial.completes("a", 1).completes("b", 2);
    expect([trial.summary.status, returned(trial)]).toEqual(["COMPLETED", [[1]]]);
  });

  test("counts by its key, which reads the input", () => {
    const trial = limited({ key: "{{ input.who }}" }).begin({ json: { who: "ann" } });
    expect(asked(trial)).toMatchObject([{ name: { key: "ann" } }]);
    const failed = limited({ key: "{{ input.who.name }}" }).begin({ json: {} });
    const message = expect.stringMatching(/^The "key" of the workflow's concurrency cannot be made .*input\.who\.name/);
    expect(failed.summary).toMatchObject({ status: "FAILED", error: { code: "TEMPLATE_UNRESOLVED", message } });
    expect(retryableFrom(failed.state)).toEqual(["a"]);
    failed.does({ kind: "retry", scope: "failed", input: { json: { who: { name: "bob" } } } });
    expect(asked(failed)).toMatchObject([{ name: { key: "bob" } }]);
  });

  test("fails if there is no room and it was not to wait; a retry asks anew", () => {
    const trial = limited({ on_conflict: "reject" }).begin();
    const { gate, ask } = trial.state.entry!;
    trial.send({ kind: "gateAnswered", gate, refused: [{ ask, node: "" }] });
    trial.settle();
    expect(trial.summary).toMatchObject({ status: "FAILED", error: { code: "CONCURRENCY_LIMIT" } });
    expect(trial.shown).toEqual({ a: "CANCELLED cancel", b: "CANCELLED cancel" });
    expect(retryableFrom(trial.state)).toEqual(["a"]);
    trial.does({ kind: "retry", scope: "failed" });
    expect(asked(trial).map(({ asks }) => asks[0]!.ask)).toEqual([1, 2]);
    expect(trial.enters().out).toEqual(["a"]);
  });

  test("leaves the line when it is paused, cancelled or timed out", () => {
    for (const leave of [
      (trial: Trial) => trial.does({ kind: "pause" }),
      (trial: Trial) => trial.does({ kind: "cancel" }),
      (trial: Trial) => trial.at(60_000).settle(),
    ]) {
      const trial = limited().begin();
      leave(trial);
      expect([trial.state.entry, returned(trial)]).toEqual([null, [[1]]]);
    }
  });

  test("keeps its place while it is paused, and asks anew if it had none", () => {
    const running = limited().begin().enters().does({ kind: "pause" });
    expect([running.state.entry?.status, returned(running)]).toEqual(["granted", []]);
    const waiting = limited().begin().does({ kind: "pause" }).does({ kind: "resume" });
    expect(asked(waiting)).toHaveLength(2);
  });

  test("gives a place back that it does not want any more", () => {
    const trial = limited().begin();
    const { gate, ask } = trial.state.entry!;
    trial.does({ kind: "cancel" });
    trial.send({ kind: "gateAnswered", gate, granted: [{ ask, node: "" }] });
    expect(returned(trial)).toEqual([[1], [1]]);
  });

  test("is called off by its gate only for the place that it has", () => {
    const trial = limited({ on_conflict: "cancel_old" }).begin().enters();
    const { gate, ask } = trial.state.entry!;
    trial.send({ kind: "cancel", request: "r0", entry: { gate, ask: ask + 1 } });
    expect(trial.summary.status).toBe("RUNNING");
    trial.send({ kind: "cancel", request: "r1", entry: { gate, ask } }, gate);
    trial.settle();
    expect([trial.summary.status, returned(trial)]).toEqual(["CANCELLED", [[1]]]);
  });

  test("asks anew when the store was lost", () => {
    const trial = limited().begin();
    trial.apply(...executionMachine.recovered!(trial.state, trial.context).events);
    expect(executionMachine.recovered!(trial.state, trial.context).events).toEqual([]);
    expect(asked(trial.settle())).toHaveLength(2);
  });

  test("takes no second place inside that of whoever called it, or they could wait in a circle", () => {
    const child = engineNode("c", "workflow", { name: "other" });
    const concurrency = { limit: 1, on_conflict: "queue" as const };
    const fetched = new Map([["workflow:other@", { hash: "h", timeout_seconds: 60 }]]);
    const parent = new Trial(workflow([child], { concurrency }), { fetched }).begin().enters();
    const start = parent.mail.find(({ body }) => body.kind === "start")!.body;
    if (start.kind !== "start") throw new Error("no start");
    expect(start.parent).toMatchObject({ within: true });
    expect(limited().begin({ json: null }, start.parent).out).toEqual(["a"]);
    expect(limited().begin({ json: null }, { entity: "execution/p", instance: "c" }).out).toEqual([]);
  });

  test("is the same when it comes back from its snapshot", () => {
    const trial = limited().begin();
    for (const step of [() => trial.enters(), () => trial.completes("a", 1)]) {
      const restored = executionMachine.restore("x", trial.state.plan, executionMachine.snapshot(trial.state));
      expect(imprint(restored)).toBe(imprint(trial.state));
      expect(restored.entry).toEqual(trial.state.entry);
      step();
    }
  });
});
