import { contentHash } from "../../../json/hash.ts";
import type { Json } from "../../../json/json.ts";
import { Schema } from "../../../json/schema.ts";
import { DEFINITION_SCOPE, entityKey } from "../../entity.ts";
import { type BlobDraft, type Context, type Need, needKey } from "../../machine.ts";
import type { Around, Message, Start } from "../../message.ts";
import { NULL_VALUE, toValue, type Value } from "../../value.ts";
import type { ChildCall } from "../events.ts";
import type { SubWorkflow } from "../plan-node.ts";
import { childAllowance, MAX_OPEN_BELOW } from "../allowance.ts";
import { accountOf } from "../asks.ts";
import { jsonOf, missingValues, scopeOf } from "../scope.ts";
import { handedLabels } from "../label-listing.ts";
import type { ExecutionState } from "../state.ts";
import { configOf, type EngineNode, type EngineResult, invalid, mockOf } from "./engine-node.ts";

/** How deep executions may be nested. */
const MAX_DEPTH = 16;

/** How much longer than the child's own timeout its parent waits to hear of it. */
const GRACE_MS = 60_000;

/** Runs another workflow as an execution of its own, and waits for its end. */
export const workflowNode: EngineNode = (state, unit, context) => {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const mock = mockOf(resolved.config);
  if (mock !== undefined) return { kind: "completed", output: mock === true ? null : mock };
  const { name, version, input } = resolved.config;
  if (typeof name !== "string") return invalid("/name", "must be the name of a workflow");
  const known = state.runs[unit]?.child;
  const inputHash = hashOf(input ?? null);
  if (known && known.inputHash === inputHash) {
    return call(state, unit, context, { ...known, call: known.call + 1 }, input ?? null);
  }
  const wanted: { name: string; version?: string | number } =
    typeof version === "number" || typeof version === "string" ? { name, version } : { name };
  const need: Need = { workflow: wanted };
  const found = context.fetched(needKey(need));
  if (found === undefined) return { kind: "needs", needs: [need] };
  if (found === null) {
    const which = wanted.version === undefined ? "" : ` in version ${wanted.version}`;
    return childFailed(`There is no workflow named "${name}"${which}`);
  }
  const { hash, timeout_seconds: seconds, input_schema: schema } = found as unknown as FoundWorkflow;
  const faults = inputFaults(schema, input ?? null);
  if (faults.length > 0) {
    const { path, message: reason } = faults[0]!;
    const more = faults.length === 1 ? "" : `, and ${faults.length - 1} more`;
    const message = `The input does not fit workflow "${name}": ${path === "" ? "it" : `"${path}"`} ${reason}${more}`;
    return { kind: "failed", error: { code: "INPUT_INVALID", message, retryable: false, details: { errors: faults } } };
  }
  return call(
    state,
    unit,
    context,
    newChild(state, unit, { workflow: name, definition: hash, timeoutSeconds: seconds, inputHash }),
    input ?? null,
  );
};

/** What the shell finds under the name of a workflow. */
interface FoundWorkflow {
  readonly hash: string;
  readonly timeout_seconds: number;
  readonly input_schema?: Json;
}

/** What is wrong with an input, before there is an execution that could only fail. */
function inputFaults(written: Json | undefined, input: Json): { path: string; message: string }[] {
  if (written === undefined) return [];
  return Schema.ofStored(written)
    .check(input)
    .map(({ pointer, reason }) => ({ path: pointer, message: reason }));
}

/** One item of a map that runs a graph, or a part of a large map: a child whose definition is part of our own. */
export const graphItem: EngineNode = (state, unit, context) => {
  const missing = missingValues(state, unit, context);
  if (missing.length > 0) return { kind: "needs", needs: missing };
  const map = state.mapOf(unit);
  const { graphs } = state.planOf(map.node);
  const sub = map.chunked ? graphs!.chunk() : graphs!.item!;
  const gathered = gatherAround(state, unit, sub, context);
  if (gathered.kind !== "gathered") return gathered;
  const known = state.runs[unit]?.child;
  // Whose map it is does not change what the child is given: one that an earlier release has called is the same.
  const { executionId: _, ...seen } = gathered.around;
  const inputHash = hashOf([gathered.input, seen as unknown as Json]);
  const child =
    known && known.inputHash === inputHash
      ? { ...known, call: known.call + 1 }
      : newChild(state, unit, {
          workflow: sub.name,
          definition: sub.hash,
          timeoutSeconds: sub.timeoutSeconds,
          inputHash,
        });
  const blobs = gathered.blobs.map((blob) => ({ ...blob, scope: entityKey("execution", child.execution) }));
  const definition: BlobDraft = { scope: DEFINITION_SCOPE, hash: sub.hash, text: sub.text };
  const result = call(state, unit, context, child, gathered.input, gathered.around);
  return result.kind === "waits" ? { ...result, blobs: [...(result.blobs ?? []), ...blobs, definition] } : result;
};

type Gathered =
  | { readonly kind: "gathered"; readonly around: Around; readonly input: Json; readonly blobs: readonly BlobDraft[] }
  | Extract<EngineResult, { kind: "needs" }>;

/** What a graph inside a map sees of the outside goes with it: another execution cannot look into ours. */
function gatherAround(state: ExecutionState, unit: number, sub: SubWorkflow, context: Context): Gathered {
  const scope = scopeOf(state, unit, context);
  const nodes: Record<string, Json> = {};
  const needs: Need[] = [];
  for (const id of sub.around) {
    const view = scope.node(id);
    if (view?.kind === "output") nodes[id] = { output: view.value };
    if (view?.kind === "error") nodes[id] = { error: view.error };
    if (view?.kind === "blob") {
      if (view.value === undefined) needs.push({ blob: view.ref });
      else nodes[id] = { output: view.value };
    }
  }
  const input = "past" in state.input ? null : jsonOf(state.input, context);
  if (input === undefined)
    needs.push({ blob: (state.input as { blob: Extract<Need, { blob: unknown }>["blob"] }).blob });
  if (needs.length > 0) return { kind: "needs", needs };
  const item = toValue(scope.item ?? null);
  const around = toValue(nodes);
  const blobs = [item.blob, around.blob].filter((blob) => blob !== undefined);
  return {
    kind: "gathered",
    around: { item: item.value, index: scope.index ?? 0, nodes: around.value, executionId: scope.executionId },
    input: input ?? null,
    blobs,
  };
}

function hashOf(value: Json): string {
  return contentHash(JSON.stringify(value)).slice(0, 32);
}

/**
 * A child of its own: no unit calls two in one generation, and what it called in an earlier one has another id. So has what was
 * given another input: an execution that had our id before us, and was removed, may have left children. It has no time in it: of
 * an execution that was lost and is started again the children are the same, and so are the keys that their handlers get. `isCalled`
 * knows the form.
 */
function newChild(state: ExecutionState, unit: number, of: Omit<ChildCall, "execution" | "call">): ChildCall {
  const named = [state.id, state.nameOf(unit), state.generation, of.definition, of.inputHash];
  return { execution: hashOf(named), ...of, call: 1 };
}

function call(
  state: ExecutionState,
  unit: number,
  context: Context,
  called: ChildCall,
  input: Json,
  around?: Around,
): EngineResult {
  const depth = (state.parent?.depth ?? 0) + 1;
  if (depth > MAX_DEPTH) return childFailed(`Executions may be nested ${MAX_DEPTH} deep, and this would be one more`);
  // One that was called before keeps what it was allowed then.
  const holds = called.holds ?? childAllowance(state, unit);
  if (holds < 1) {
    const limit = `${MAX_OPEN_BELOW} executions may be open at a time below the one that nobody called`;
    return childFailed(`${limit}, and what this one may have of them is used up`);
  }
  const child = { ...called, holds };
  const { value, blob } = toValue(input);
  const start = startOf(state, unit, child, value, around);
  const key = entityKey("execution", child.execution);
  return {
    kind: "waits",
    wait: { for: "child", child },
    dueAtMs: child.timeoutSeconds === 0 ? null : context.nowMs + child.timeoutSeconds * 1000 + GRACE_MS,
    mail: [childMessage(state, child, `start:${key}:${child.call}`, start)],
    ...(blob !== undefined && { blobs: [{ ...blob, scope: key }] }),
  };
}

function startOf(state: ExecutionState, unit: number, child: ChildCall, input: Value, around?: Around): Start {
  return {
    kind: "start",
    workflow: child.workflow,
    definition: child.definition,
    input,
    bodyHash: contentHash(JSON.stringify([child.definition, input])),
    parent: {
      entity: entityKey("execution", state.id),
      instance: state.nameOf(unit),
      call: child.call,
      depth: (state.parent?.depth ?? 0) + 1,
      ...((state.entry !== null || state.parent?.within === true) && { within: true as const }),
      ...(child.holds !== undefined && { allowance: child.holds - 1 }),
      ...(isSpending(state, unit) && { account: accountOf(state) }),
    },
    ...(around !== undefined && { around }),
    ...handedLabels(state),
  };
}

/** Parts of a map that spend something spend it for us; a workflow that is called has budgets of its own. */
function isSpending(state: ExecutionState, unit: number): boolean {
  return state.isItem(unit) && state.plan.isSpending;
}

function childMessage(state: ExecutionState, child: ChildCall, id: string, body: Message["body"]): Message {
  const by = entityKey("execution", state.id);
  return { id, to: entityKey("execution", child.execution), by, trace: state.trace, tenant: state.tenant, body };
}

/** The request by which one call of a child is called off. */
export function cancelRequest(execution: string, call: number): string {
  return `cancel:${entityKey("execution", execution)}:${call}`;
}

/** Calls a child off. It carries the start, in case that has not arrived: then it finds a cancelled execution. */
export function cancelChild(state: ExecutionState, unit: number, child: ChildCall): Message {
  const request = cancelRequest(child.execution, child.call);
  const start = startOf(state, unit, child, NULL_VALUE);
  return childMessage(state, child, request, { kind: "cancel", request, start });
}

function childFailed(message: string): Extract<EngineResult, { kind: "failed" }> {
  return { kind: "failed", error: { code: "CHILD_FAILED", message, retryable: false } };
}
