import type { NodeView, Scope } from "../../expression/scope.ts";
import type { Json } from "../../json/json.ts";
import { type Context, type Need, needKey } from "../machine.ts";
import type { KeptValue, Value } from "../value.ts";
import { PART_ITEMS } from "./maps.ts";
import type { ExecutionState } from "./state.ts";

const NONE: NodeView = { kind: "none" };

type Fetched = Pick<Context, "fetched">;

/**
 * What the templates and the condition of a unit see: the outputs and errors of nodes that have ended. Once it has been
 * dispatched, that is what had ended by then: the same task made again must be the same task. The items of a map see
 * what there was when it was opened.
 */
export function scopeOf(state: ExecutionState, reader: number, context: Fetched): Scope {
  const map = state.isItem(reader) ? state.mapOf(reader) : undefined;
  const seen = seenBy(state, reader);
  const scope: Scope = {
    input: valueView(state.input, context),
    executionId: executionIdOf(state),
    node: (id) => {
      const index = state.plan.graph.indexOf.get(id);
      if (index !== undefined) return nodeView(state, index, seen, context);
      return state.plan.around.has(id) ? aroundView(state, id, context) : undefined;
    },
  };
  if (map !== undefined) {
    const items = jsonOf(map.items, context) as readonly Json[] | undefined;
    return { ...scope, item: items?.[reader - map.base] ?? null, index: itemNumber(state, reader) };
  }
  if (state.around === null) return scope;
  return { ...scope, item: jsonOf(state.around.item, context) ?? null, index: state.around.index };
}

/** One node of that scope, without the rest. */
export function viewedBy(state: ExecutionState, reader: number, node: number, context: Fetched): NodeView {
  return nodeView(state, node, seenBy(state, reader), context);
}

/** Up to which version a unit sees. */
function seenBy(state: ExecutionState, reader: number): number {
  const map = state.isItem(reader) ? state.mapOf(reader) : undefined;
  return state.runs[reader]?.seen ?? map?.seen ?? state.version;
}

/**
 * How many items a map has must not change what they see, so a part of one has the id of the whole. An item that is a graph is
 * an execution that others may have to know, to send it a signal.
 */
function executionIdOf({ plan, around, id }: ExecutionState): string {
  return plan.workflow["x-millrace-part"] === true ? (around?.executionId ?? id) : id;
}

/** Which item of its map a unit is. In a part of a large map they are counted on from the parts before. */
export function itemNumber(state: ExecutionState, unit: number): number {
  const place = unit - state.mapOf(unit).base;
  const isPart = state.plan.workflow["x-millrace-part"] === true && state.around !== null;
  return isPart ? state.around!.index * PART_ITEMS + place : place;
}

/** What the execution as a whole sees before anything of it runs. */
export function inputScopeOf(state: ExecutionState, context: Fetched): Scope {
  return {
    input: valueView(state.input, context),
    executionId: executionIdOf(state),
    node: () => undefined,
  };
}

/** The scope in which a round is judged: the node sees its own output by its id. */
export function ownScopeOf(state: ExecutionState, unit: number, context: Fetched): Scope {
  const rest = scopeOf(state, unit, context);
  const { id } = state.planOf(unit);
  const own = valueView(state.runs[unit]!.output!, context);
  return { ...rest, node: (other) => (other === id ? own : rest.node(other)) };
}

function nodeView(state: ExecutionState, index: number, seen: number, context: Fetched): NodeView {
  const run = state.runs[index];
  const status = state.statusOf(index);
  if (run === undefined || run.endedVersion === null || run.endedVersion > seen) return NONE;
  if (status === "completed" && run.output !== null) return valueView(run.output, context);
  if (status === "failed" && run.error !== null) return { kind: "error", error: run.error as unknown as Json };
  return NONE;
}

/** A node of the workflow around the graph of a map. */
function aroundView(state: ExecutionState, id: string, context: Fetched): NodeView {
  const nodes = state.around === null ? undefined : jsonOf(state.around.nodes, context);
  const view = (nodes as { readonly [id: string]: { output?: Json; error?: Json } } | undefined)?.[id];
  if (view?.output !== undefined) return { kind: "output", value: view.output };
  return view?.error === undefined ? NONE : { kind: "error", error: view.error };
}

export function valueView(value: KeptValue, context: Fetched): NodeView {
  if ("json" in value) return { kind: "output", value: value.json };
  if ("past" in value) {
    const json = context.fetched(needKey(value));
    return json === undefined ? NONE : { kind: "output", value: json };
  }
  const json = context.fetched(value.blob.hash);
  return json === undefined ? { kind: "blob", ref: value.blob } : { kind: "blob", ref: value.blob, value: json };
}

export function jsonOf(value: Value, context: Fetched): Json | undefined {
  return "json" in value ? value.json : context.fetched(value.blob.hash);
}

/**
 * What this unit may read and memory does not hold: outputs that have left it, the items of its map, what a graph inside
 * a map sees of the outside. It must be fetched before the unit can be resolved.
 */
export function missingValues(state: ExecutionState, unit: number, context: Fetched): Need[] {
  const needs: Need[] = [];
  for (const read of state.planOf(unit).reads) {
    const output = state.runs[read]?.output;
    if (output && "past" in output && context.fetched(needKey(output)) === undefined) needs.push({ past: output.past });
  }
  if (state.around === null && !state.isItem(unit)) return needs;
  const large = [
    ...(state.isItem(unit) ? [state.mapOf(unit).items] : []),
    ...(state.around === null ? [] : [state.around.item, state.around.nodes]),
  ];
  for (const value of large) {
    if ("blob" in value && context.fetched(value.blob.hash) === undefined) needs.push({ blob: value.blob });
  }
  return needs;
}
