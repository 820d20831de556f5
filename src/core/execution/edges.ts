import type { DependencyOn, OnError } from "../../definition/workflow.ts";
import type { SkipReason } from "./events.ts";

/** What one dependency says once its parent has ended. */
export type EdgeVerdict = "ok" | "void" | "bad";

/** How a parent ended, as far as its dependants care. */
export type ParentEnd = "completed" | "failedContinue" | "failed" | "skippedHarmless" | "skippedByFailure";

/** The table under "Joins" in docs/workflows.md, row by row; a test compares them. */
export const EDGE_TABLE: Readonly<Record<ParentEnd, Readonly<Record<DependencyOn, EdgeVerdict>>>> = {
  completed: { completed: "ok", failed: "void", done: "ok" },
  failedContinue: { completed: "ok", failed: "ok", done: "ok" },
  failed: { completed: "bad", failed: "ok", done: "ok" },
  skippedHarmless: { completed: "void", failed: "void", done: "ok" },
  skippedByFailure: { completed: "bad", failed: "void", done: "ok" },
};

/** A failure that a dependant catches counts as `fail_branch`, whatever the workflow says. */
export function failedEnd(onError: OnError, caught: boolean): ParentEnd {
  return onError === "continue" && !caught ? "failedContinue" : "failed";
}

export function skippedEnd(reason: SkipReason): ParentEnd {
  return reason === "upstream_failed" ? "skippedByFailure" : "skippedHarmless";
}
