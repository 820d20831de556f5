import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import type { ExecutionSummary } from "../../src/core/execution/test-summary.ts";
import type { Workflow } from "../../src/definition/workflow.ts";

/** A journal as a release has written it, and how its execution read then. */
export interface Golden {
  readonly about: string;
  readonly release: string;
  readonly execution: string;
  /** The stored definition: canonical, with every default written out. */
  readonly workflow: Workflow;
  readonly eventFormat: number;
  readonly events: readonly ExecutionEvent[];
  /** Taken on the way, at this version. */
  readonly snapshot: { readonly version: number; readonly format: number; readonly text: string };
  readonly summary: ExecutionSummary;
}
