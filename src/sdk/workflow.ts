import type { JsonObject } from "../json/json.ts";
import type { WorkflowFunction } from "./closure.ts";
import type { StandardSchema } from "./standard-schema.ts";

declare const INPUT: unique symbol;
declare const OUTPUT: unique symbol;
/** The same in every copy of the package: a project may have its own beside the one that runs it. */
export const PARTS: unique symbol = Symbol.for("millrace.parts");

/** A workflow that can be run: what the engine needs to know of it, and the functions that workers need. */
export interface Workflow<in In, out Out> {
  readonly name: string;
  readonly [INPUT]: (input: In) => void;
  readonly [OUTPUT]: Out;
  /** For clients, workers and tests. */
  readonly [PARTS]: WorkflowParts;
  /** The definition, as any client can submit it. */
  toJSON(): JsonObject;
}

export interface WorkflowParts {
  readonly name: string;
  /** As it is submitted. `versionOf` says which version of a workflow that it calls is meant. */
  readonly definition: (versionOf: (child: WorkflowParts) => string) => JsonObject;
  /** The hash of its canonical form, if it calls those very versions of others. */
  readonly hash: string;
  readonly input: StandardSchema | undefined;
  /** The functions, by the names of the handlers that they are. */
  readonly functions: ReadonlyMap<string, WorkflowFunction>;
  /** Queues that only workers take from that name them. */
  readonly queues: ReadonlySet<string>;
  /** Workflows it calls. */
  readonly children: readonly WorkflowParts[];
}
