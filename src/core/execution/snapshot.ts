import type { JsonObject } from "../../json/json.ts";
import type { Message } from "../message.ts";
import type { KeptValue, Value } from "../value.ts";
import type { GateReturned, SkipReason } from "./events.ts";
import type { ExecutionStatus, NodeStatus } from "./moves.ts";
import type { Plan } from "./plan.ts";
import { NodeRun } from "./node-run.ts";
import { deriveGraph } from "./spread.ts";
import { type CommandAnswer, ExecutionState, type MapRun, type UnitAsk, WORKFLOW_TIMER } from "./state.ts";
import { enqueue, indexWait } from "./units.ts";

/** A snapshot of another format is ignored: it is a cache, and the events tell the same. */
export const SNAPSHOT_FORMAT = 5;

/** What a snapshot holds: the units that were touched, and the order of the lines. All else follows from them. */
interface SnapshotBody extends Before, Behind {
  /** Of each run what is not as it was in the beginning. */
  readonly nodes: readonly (readonly [string, NodeStatus, Partial<NodeRun>])[];
}

interface Before {
  readonly definition: string;
  readonly version: number;
  readonly generation: number;
  readonly status: ExecutionStatus;
  readonly input: KeptValue;
  readonly bodyHash: string;
  readonly by: string;
  readonly tenant: string;
  readonly trace: string;
  readonly parent: ExecutionState["parent"];
  readonly around: ExecutionState["around"];
  readonly labels?: ExecutionState["labels"];
  readonly owesAnswer: boolean;
  readonly times: readonly [number, number | null, number | null, number | null];
  readonly end: ExecutionState["end"];
  readonly quarantined: ExecutionState["quarantined"];
  readonly parked: readonly Message[];
  readonly requests: readonly (readonly [string, CommandAnswer])[];
  readonly edits: readonly (readonly [string, JsonObject])[];
  readonly maps: readonly PlacelessMap[];
}

interface Behind {
  readonly failed: readonly string[];
  readonly live: readonly string[];
  readonly ready: readonly (readonly string[])[];
  readonly skips: readonly (readonly [string, SkipReason])[];
  readonly signals: readonly (readonly [string, readonly Value[]])[];
  readonly orphans: readonly string[];
  readonly letters: readonly (readonly [string, "open" | "replayed"])[];
  /** Of what has to do with gates, which few have. */
  readonly gates?: {
    readonly asks: readonly (readonly [string, readonly UnitAsk[]])[];
    readonly askCount: number;
    readonly entry?: ExecutionState["entry"];
    readonly returns: readonly GateReturned[];
  };
}

/** Its units get other numbers when it is restored. */
type PlacelessMap = Omit<MapRun, "node" | "base"> & { readonly id: string };

function withoutPlace(map: MapRun, id: string): PlacelessMap {
  const { node: _, base: __, ...rest } = map;
  return { ...rest, id };
}

/** So many runs are a piece of the text. */
const PIECE_RUNS = 1_000;

export function snapshot(state: ExecutionState): string {
  return [...snapshotPieces(state)].join("");
}

/** The text of a snapshot from its beginning to its end: that of a large execution is 30 MB, and whoever stores it need not have it as one. */
export function* snapshotPieces(state: ExecutionState): Generator<string> {
  yield `${JSON.stringify(beforeNodes(state)).slice(0, -1)},"nodes":[`;
  let piece: [string, NodeStatus, NodeRun][] = [];
  let comma = "";
  for (let unit = 0; unit < state.runs.length; unit++) {
    const run = state.runs[unit];
    if (run === undefined) continue;
    piece.push([state.nameOf(unit), state.statusOf(unit), run]);
    if (piece.length < PIECE_RUNS) continue;
    yield `${comma}${JSON.stringify(piece).slice(1, -1)}`;
    piece = [];
    comma = ",";
  }
  if (piece.length > 0) yield `${comma}${JSON.stringify(piece).slice(1, -1)}`;
  yield `],${JSON.stringify(behindNodes(state)).slice(1)}`;
}

function beforeNodes(state: ExecutionState): Before {
  const { ids } = state.plan.graph;
  return {
    definition: state.plan.hash,
    version: state.version,
    generation: state.generation,
    status: state.status,
    input: state.input,
    bodyHash: state.bodyHash,
    by: state.by,
    tenant: state.tenant,
    trace: state.trace,
    parent: state.parent,
    around: state.around,
    ...(state.labels !== null && { labels: state.labels }),
    owesAnswer: state.owesAnswer,
    times: [state.createdAtMs, state.startedAtMs, state.endedAtMs, state.deadlineAtMs],
    end: state.end,
    quarantined: state.quarantined,
    parked: state.parked,
    requests: [...state.requests],
    edits: [...state.edits].map(([node, { spec }]) => [ids[node]!, spec.config] as const),
    maps: Array.from(state.maps.values(), (map) => withoutPlace(map, ids[map.node]!)),
  };
}

function behindNodes(state: ExecutionState): Behind {
  const { ids } = state.plan.graph;
  const name = (unit: number): string => state.nameOf(unit);
  return {
    failed: state.failed.map(name),
    live: Array.from(state.live, name),
    ready: state.ready.toArrays().map((line) => line.map(name)),
    skips: state.skips.toArray().map((node) => [ids[node]!, state.skipReasons.get(node)!] as const),
    signals: [...state.signals],
    orphans: Array.from(state.orphans, name),
    letters: [...state.letters],
    ...(state.askCount > 0 && {
      gates: {
        asks: Array.from(state.asks, ([unit, asks]) => [name(unit), asks] as const),
        askCount: state.askCount,
        ...(state.entry !== null && { entry: state.entry }),
        returns: state.returns,
      },
    }),
  };
}

export function definitionOfSnapshot(text: string): string {
  return (JSON.parse(text) as SnapshotBody).definition;
}

/** The state a snapshot was taken of. Costs O(nodes + edges), like the state itself. */
export function restore(id: string, plan: Plan, text: string): ExecutionState {
  const body = JSON.parse(text) as SnapshotBody;
  const state = new ExecutionState(id, plan);
  state.version = body.version;
  state.generation = body.generation;
  state.status = body.status;
  state.input = body.input;
  state.bodyHash = body.bodyHash;
  state.by = body.by;
  state.tenant = body.tenant;
  state.trace = body.trace;
  state.parent = body.parent;
  state.around = body.around;
  state.labels = body.labels ?? null;
  state.owesAnswer = body.owesAnswer;
  [state.createdAtMs, state.startedAtMs, state.endedAtMs, state.deadlineAtMs] = body.times;
  state.end = body.end;
  state.quarantined = body.quarantined;
  state.parked = [...body.parked];
  for (const [request, answer] of body.requests) state.requests.set(request, answer);
  for (const [name, kept] of body.signals) state.signals.set(name, [...kept]);
  for (const [letter, status] of body.letters) state.letters.set(letter, status);
  restoreUnits(state, body);
  restoreLines(state, body);
  for (const [name, asks] of body.gates?.asks ?? []) {
    const unit = state.unitOf(name)!;
    state.asks.set(unit, [...asks]);
    if (asks.some(({ stalled }) => stalled !== undefined)) state.stalled.add(unit);
  }
  state.askCount = body.gates?.askCount ?? 0;
  state.entry = body.gates?.entry ?? null;
  state.returns = [...(body.gates?.returns ?? [])];
  deriveGraph(state);
  if (state.deadlineAtMs !== null) state.timers.push(state.deadlineAtMs, WORKFLOW_TIMER);
  state.timers.settle(state.timedCount + 1);
  state.calendar.settle(state.timedCount + 1);
  return state;
}

function restoreUnits(state: ExecutionState, body: SnapshotBody): void {
  const { plan } = state;
  for (const [id, config] of body.edits) {
    const node = plan.graph.indexOf.get(id)!;
    state.edit(node, config);
  }
  for (const { id, ...map } of body.maps) {
    const node = plan.graph.indexOf.get(id)!;
    state.maps.set(node, { ...map, node, base: state.addUnits(node, map.count) });
  }
  const waits: number[] = [];
  for (const [name, status, told] of body.nodes) {
    const unit = state.unitOf(name)!;
    const run = (state.runs[unit] = NodeRun.from(told));
    state.setStatus(unit, status);
    if (run.dueAtMs !== null) state.timedCount++;
    if (run.dueAtMs !== null && !state.isEnded) state.timers.push(run.dueAtMs, unit);
    if (run.wait !== null) waits.push(unit);
  }
  for (const name of body.orphans) state.orphans.add(state.unitOf(name)!);
  waits.sort((a, b) => state.runs[a]!.waitVersion - state.runs[b]!.waitVersion);
  for (const unit of waits) if (!state.orphans.has(unit)) indexWait(state, unit);
  if (state.isEnded) state.calendar.clear();
  state.failed = body.failed.map((name) => state.unitOf(name)!);
  for (const name of body.live) {
    const unit = state.unitOf(name)!;
    const { queue } = state.planOf(unit).spec;
    state.live.add(unit);
    state.liveByQueue.set(queue, (state.liveByQueue.get(queue) ?? 0) + 1);
  }
}

function restoreLines(state: ExecutionState, body: SnapshotBody): void {
  for (const line of body.ready) {
    for (const name of line) {
      const unit = state.unitOf(name)!;
      enqueue(state, unit);
    }
  }
  for (const [id, reason] of body.skips) {
    const node = state.plan.graph.indexOf.get(id)!;
    state.skips.push(node);
    state.skipReasons.set(node, reason);
  }
}
