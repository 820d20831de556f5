import type { Json } from "../../json/json.ts";
import type { ErrorValue } from "../message.ts";
import type { KeptValue } from "../value.ts";
import { upstreamFailed } from "./reopen.ts";
import type { ExecutionState } from "./state.ts";
import { type NodeSummary, viewNode } from "./view.ts";

/** A whole execution, for tests to compare: clients are shown it by `api/service/execution-view.ts`, a part at a time. */
export interface ExecutionSummary {
  readonly id: string;
  readonly workflow: string;
  readonly definition: string;
  readonly version: number;
  readonly status: string;
  readonly generation: number;
  readonly output: Json | null;
  readonly error: (ErrorValue & { readonly node?: string }) | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  readonly nodes: Readonly<Record<string, NodeSummary>>;
}

/** The execution as it stands, with the states that its end implies for nodes that were still open. */
export function viewExecution(state: ExecutionState): ExecutionSummary {
  const spared = upstreamFailed(state);
  const nodes: Record<string, NodeSummary> = {};
  for (let i = 0; i < state.plan.graph.nodeCount; i++) nodes[state.plan.graph.ids[i]!] = viewNode(state, i, spared);
  return {
    id: state.id,
    workflow: state.plan.workflow.name,
    definition: state.plan.hash,
    version: state.version,
    status: state.status.toUpperCase(),
    generation: state.generation,
    output: outputOf(state),
    error: state.end?.error ?? null,
    createdAtMs: state.createdAtMs,
    startedAtMs: state.startedAtMs,
    endedAtMs: state.endedAtMs,
    nodes,
  };
}

/** Of the `output` nodes, else of those on which nothing depends; nothing when it failed or was cancelled. */
export function outputOf(state: ExecutionState): Json | null {
  if (state.end === null || state.end.status === "failed" || state.end.status === "cancelled") return null;
  if (state.end.output !== null) return plain(state.end.output);
  const completed = state.plan.outputs.filter((node) => state.statusOf(node) === "completed");
  if (state.plan.soleOutput) return completed.length === 0 ? null : plain(state.runs[completed[0]!]!.output);
  return Object.fromEntries(completed.map((node) => [state.plan.graph.ids[node]!, plain(state.runs[node]!.output)]));
}

/** A large value is shown by name; whoever wants it asks for that node. */
function plain(value: KeptValue | null): Json {
  if (value === null) return null;
  if ("json" in value) return value.json;
  if ("blob" in value) return { $large: { bytes: value.blob.bytes, sha256: value.blob.hash } };
  return { $large: { bytes: value.past.bytes } };
}
