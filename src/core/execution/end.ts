import { EDGE_ON } from "../../definition/graph.ts";
import type { Json } from "../../json/json.ts";
import { entityKey } from "../entity.ts";
import { type BlobDraft, type Context, type Need, needKey } from "../machine.ts";
import type { ChildEnded, Message } from "../message.ts";
import { type KeptValue, MAX_COLLECTED_BYTES, toValue, type Value } from "../value.ts";
import type { EndStatus, ExecutionEnded } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** How an execution has ended whose every node has: a failure that somebody handled does not count. */
export function verdict(state: ExecutionState): EndStatus {
  if (state.failed.every((node) => isHandled(state, node))) return "completed";
  return state.completedCount > 0 ? "partial" : "failed";
}

export function naturalEnd(state: ExecutionState, context: Context): ExecutionEnded {
  const error = firstFailure(state);
  return {
    kind: "executionEnded",
    atMs: context.nowMs,
    status: verdict(state),
    reason: "done",
    ...(error !== undefined && { error }),
  };
}

/** What an execution has failed by, where it has: the first failure that nobody has handled. */
export function firstFailure(state: ExecutionState): ExecutionEnded["error"] {
  const first = state.failed.find((node) => !isHandled(state, node));
  const error = first === undefined ? undefined : state.runs[first]?.error;
  return error ? { ...error, node: state.plan.graph.ids[first!]! } : undefined;
}

export function timedOut(context: Context, state: ExecutionState): ExecutionEnded {
  const seconds = state.plan.workflow.timeout_seconds;
  const message = `The workflow did not end within its timeout of ${seconds} s`;
  return {
    kind: "executionEnded",
    atMs: context.nowMs,
    status: "failed",
    reason: "timeout",
    error: { code: "WORKFLOW_TIMEOUT", message, retryable: false },
  };
}

/** A failure is handled if a dependant `on: failed` has completed. */
function isHandled(state: ExecutionState, node: number): boolean {
  const { graph } = state.plan;
  for (let k = graph.childStart[node]!; k < graph.childStart[node + 1]!; k++) {
    const edge = graph.childEdge[k]!;
    if (EDGE_ON[graph.edgeOn[edge]!] === "failed" && state.statusOf(graph.edgeChild[edge]!) === "completed")
      return true;
  }
  return false;
}

/** What the parent hears, in the commit of the end. */
export function endMail(state: ExecutionState, ended: ExecutionEnded, given?: Handover): readonly Message[] {
  if (state.parent === null) return [];
  const child = entityKey("execution", state.id);
  const call = state.parent.call ?? 1;
  const failures = failedParts(state);
  return [
    {
      id: `childEnded:${child}:${state.generation}:${call}`,
      to: state.parent.entity,
      by: child,
      trace: state.trace,
      tenant: state.tenant,
      body: {
        kind: "childEnded",
        child,
        generation: state.generation,
        instance: state.parent.instance,
        status: ended.status,
        call,
        ...given,
        ...(ended.error !== undefined && { error: ended.error }),
        ...(failures > 0 && { failures }),
      },
    },
  ];
}

function failedParts(state: ExecutionState): number {
  if (state.plan.workflow["x-millrace-part"] !== true) return 0;
  let failures = 0;
  for (const map of state.maps.values()) failures += map.failures;
  return failures;
}

/** What the parent is given of an execution that completed: its whole output, if a node may have one as large. */
type Handover = Pick<ChildEnded, "output" | "tooLargeBytes">;

export type OutputGathering =
  | { readonly kind: "gathered"; readonly given: Handover; readonly blobs: readonly BlobDraft[] }
  | { readonly kind: "needs"; readonly needs: readonly Need[] };

/**
 * The output as a value of the parent's: what is large is written into the parent's scope. `ending` is an `end` node that
 * is about to complete, without an output of its own.
 */
export function gatherOutput(
  state: ExecutionState,
  given: Value | null,
  ending: string | null,
  context: Pick<Context, "fetched">,
): OutputGathering {
  const parent = state.parent!.entity;
  const kept: readonly (readonly [string, KeptValue | null])[] =
    given !== null
      ? [["", given]]
      : state.plan.outputs
          .filter((node) => state.statusOf(node) === "completed" || state.plan.graph.ids[node] === ending)
          .map((node) => [state.plan.graph.ids[node]!, state.runs[node]?.output ?? null] as const);
  const bytes = kept.reduce((sum, [, value]) => sum + bytesOf(value), 0);
  // Of the parts of a map the map itself judges what they come to together.
  const isPart = state.plan.workflow["x-millrace-part"] === true;
  if (bytes > MAX_COLLECTED_BYTES && !isPart) return { kind: "gathered", given: { tooLargeBytes: bytes }, blobs: [] };
  const needs: Need[] = [];
  const entries = kept.map(([id, value]): [string, Json] => {
    if (value === null) return [id, null];
    if ("json" in value) return [id, value.json];
    const json = context.fetched(needKey(value));
    if (json === undefined) needs.push(value);
    return [id, json ?? null];
  });
  if (needs.length > 0) return { kind: "needs", needs };
  const sole = given !== null || state.plan.soleOutput;
  const { value, blob } = toValue(sole ? (entries[0]?.[1] ?? null) : Object.fromEntries(entries));
  const blobs = blob === undefined ? [] : [{ ...blob, scope: parent }];
  return { kind: "gathered", given: { output: value }, blobs };
}

function bytesOf(value: KeptValue | null): number {
  if (value === null) return 0;
  if ("blob" in value) return value.blob.bytes;
  return "past" in value ? value.past.bytes : (value.bytes ?? JSON.stringify(value.json).length);
}

/** When the workflow's timeout ends what begins now. */
export function deadlineOf(state: ExecutionState, context: Context): number | null {
  const seconds = state.plan.workflow.timeout_seconds;
  return seconds === 0 ? null : context.nowMs + seconds * 1000;
}
