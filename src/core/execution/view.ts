import type { Json } from "../../json/json.ts";
import type { ErrorValue } from "../message.ts";
import type { KeptValue } from "../value.ts";
import type { EndReason, SkipReason } from "./events.ts";
import type { ExecutionState } from "./state.ts";

/** How a node reads to people and clients. */
export interface NodeSummary {
  readonly status: string;
  readonly attempt: number;
  readonly deliveries: number;
  readonly output: KeptValue | null;
  readonly error: ErrorValue | null;
  readonly reason: SkipReason | EndReason | "retry" | null;
  readonly until: number | null;
  readonly queuedAtMs: number | null;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
}

export interface ExecutionSummary {
  readonly id: string;
  readonly workflow: string;
  readonly definition: string;
  readonly version: number;
  readonly status: string;
  readonly generation: number;
  readonly output: Json | null;
  readonly error: (ErrorValue & { node?: string }) | null;
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

function viewNode(state: ExecutionState, node: number, spared: ReadonlySet<number>): NodeSummary {
  const run = state.runs[node];
  const status = state.statusOf(node);
  const base = {
    attempt: run?.attempt ?? 0,
    deliveries: run?.delivery ?? 0,
    output: status === "completed" ? (run?.output ?? null) : null,
    error: run?.error ?? null,
    until: null,
    queuedAtMs: run?.queuedAtMs ?? null,
    startedAtMs: run?.startedAtMs ?? null,
    endedAtMs: run?.endedAtMs ?? null,
  };
  if (state.end !== null && !state.isNodeEnded(node)) {
    const endedAtMs = state.endedAtMs;
    if (spared.has(node)) return { ...base, endedAtMs, status: "SKIPPED", reason: "upstream_failed" };
    return { ...base, endedAtMs, status: "CANCELLED", reason: state.end.reason };
  }
  if (status === "waiting") return { ...base, status: "WAITING", reason: "retry", until: run?.dueAtMs ?? null };
  return { ...base, status: status.toUpperCase(), reason: run?.skipReason ?? null };
}

/** Under fail_fast the open descendants of what failed read as skipped, all other open nodes as cancelled. */
function upstreamFailed(state: ExecutionState): ReadonlySet<number> {
  const reached = new Set<number>();
  if (state.end?.reason !== "fail_fast") return reached;
  const { graph } = state.plan;
  const cause = state.plan.graph.indexOf.get(state.end.error?.node ?? "");
  const work = cause === undefined ? [] : [cause];
  for (let node = work.pop(); node !== undefined; node = work.pop()) {
    for (let k = graph.childStart[node]!; k < graph.childStart[node + 1]!; k++) {
      const child = graph.edgeChild[graph.childEdge[k]!]!;
      if (reached.has(child) || state.isNodeEnded(child)) continue;
      reached.add(child);
      work.push(child);
    }
  }
  return reached;
}

/** CONTRACT section 4: of the `output` nodes, else of the sinks; nothing when it failed or was cancelled. */
export function outputOf(state: ExecutionState): Json | null {
  if (state.end === null || state.end.status === "failed" || state.end.status === "cancelled") return null;
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
