import type { ExecutionEvent } from "../core/execution/events.ts";
import { ENGINE_HANDLERS, type Workflow, type WorkflowNode } from "../definition/workflow.ts";
import type { JournalEntry, World } from "./history.ts";

type Count = (feature: string) => void;

/** What a world has exercised, and how often: each thing is counted where the journal shows that it happened. */
export function countFeatures(world: World): [string, number][] {
  const counts = new Map<string, number>();
  const count: Count = (feature) => void counts.set(feature, (counts.get(feature) ?? 0) + 1);
  const executions = new Map<string, Tour>();
  for (const entry of world.history) {
    if (entry.log === "client" && entry.kind === "answered") {
      count(`asked: ${entry.command} ${entry.outcome === "refused" ? entry.code : entry.outcome}`);
    }
    if (entry.log !== "journal" || entry.kind !== "commit") continue;
    if (entry.isBehind === true) count("commit sent behind another");
    tour(entry, world, executions, count);
  }
  for (const execution of executions.values()) execution.leave(world.liveness, count);
  return [...counts];
}

function tour(
  entry: Extract<JournalEntry, { readonly kind: "commit" }>,
  world: World,
  executions: Map<string, Tour>,
  count: Count,
): void {
  for (const { entity, events } of entry.records) {
    for (const event of events) {
      if (event.kind === "accepted") executions.set(entity, new Tour(event, world.definitions[event.definition]));
      executions.get(entity)?.see(event, count);
    }
  }
}

/** One execution, looked at for what is special about it. */
class Tour {
  readonly nodes: ReadonlyMap<string, WorkflowNode>;
  readonly workflow: Workflow | undefined;
  readonly depth: number;
  isEnded = false;
  isPaused = false;

  constructor(accepted: Extract<ExecutionEvent, { readonly kind: "accepted" }>, workflow: Workflow | undefined) {
    this.workflow = workflow;
    this.nodes = new Map((workflow?.nodes ?? []).map((node) => [node.id, node]));
    this.depth = accepted.parent?.depth ?? 0;
  }

  see(event: ExecutionEvent, count: Count): void {
    const seen = SIGHTS[event.kind] as ((tour: Tour, event: ExecutionEvent, count: Count) => void) | undefined;
    seen?.(this, event, count);
  }

  /** In a world at peace it has ended: of each of its nodes the rule and the policy have been gone through. */
  leave(liveness: boolean, count: Count): void {
    if (!liveness || !this.isEnded) return;
    for (const { dependencies, join, on_error: onError } of this.nodes.values()) {
      if (dependencies.length > 0) count(`join: ${join.startsWith("quorum:") ? "quorum" : join} × ${onError}`);
    }
    if (this.workflow?.max_parallel_nodes !== null) count("max_parallel_nodes");
  }
}

/** What is worth counting about each kind of event. */
const SIGHTS: {
  readonly [Kind in ExecutionEvent["kind"]]?: (
    tour: Tour,
    event: Extract<ExecutionEvent, { readonly kind: Kind }>,
    count: Count,
  ) => void;
} = {
  accepted: ({ depth, workflow }, _event, count) => {
    if (depth > 0) count(`child at depth ${depth}`);
    if (workflow?.["x-millrace-part"] === true) count("part of a large map");
  },
  paused: (tour) => void (tour.isPaused = true),
  resumed: (tour) => void (tour.isPaused = false),
  generationOpened: (tour, { call, scope, config, input }, count) => {
    tour.isEnded = false;
    count(`generation: ${call === undefined ? scope : "called again"}`);
    if (config !== undefined) count("generation with another config");
    if (input !== undefined) count("generation with another input");
  },
  executionEnded: (tour, { reason }, count) => {
    count(`end: ${reason}${tour.isPaused ? ", while paused" : ""}`);
    tour.isEnded = true;
    tour.isPaused = false;
  },
  nodeWaiting: (_tour, { node, wait }, count) => count(`${isItem(node) ? "item waits" : "waits"} for: ${waitOf(wait)}`),
  mapOpened: ({ nodes }, { node, kept }, count) =>
    count(`map: ${itemKind(nodes.get(node))}${kept ? ", some items kept" : ""}`),
  nodeCompleted: ({ nodes }, { node, signal, reason }, count) => {
    if (signal !== undefined) count("signal taken");
    if (reason === "late_result") count("late result taken");
    if (reason === "cached") count("result from the cache");
    const { handler, config } = nodes.get(node) ?? {};
    if (handler === "router") count(`router: ${config?.["mode"] === "inclusive" ? "inclusive" : "exclusive"}`);
  },
  nodeFailed: (_tour, { error }, count) => count(`failed: ${error.code}`),
  nodeSkipped: (_tour, { reason }, count) => count(`skipped: ${reason}`),
  taskCompleted: (_tour, { closeForMs }, count) => {
    if (closeForMs !== undefined) count("closed a limit by a result");
  },
  roundEnded: (_tour, { nextAtMs }, count) => count(`repeat: ${nextAtMs === null ? "the last" : "another"} round`),
  childrenCancelled: (_tour, { instances }, count) => {
    for (const _ of instances) count("child called off");
  },
  reviewDue: (_tour, _event, count) => count("review overdue"),
  reviewEscalated: (_tour, _event, count) => count("review escalated"),
  reviewChanged: (_tour, { first }, count) => count(first === undefined ? "review assigned" : "review half decided"),
  parentAnswered: (_tour, _event, count) => count("parent answered at once"),
  gateAsked: (_tour, { wait, fallback }, count) =>
    count(fallback === undefined ? `asks at a gate: ${wait}` : "asks for another model"),
  entryGranted: (_tour, _event, count) => count("let in among those of its workflow"),
  gateGranted: (_tour, _event, count) => count("let through a gate"),
  gateRefused: (_tour, _event, count) => count("refused by a gate"),
  gateStalled: (_tour, _event, count) => count("budget used up"),
  letterDiscarded: (_tour, _event, count) => count("dead letter thrown away"),
  taskDispatched: ({ nodes }, { node }, count) => {
    if (isItem(node)) count("item dispatched");
    if ((nodes.get(node)?.priority ?? 0) !== 0) count("dispatched with a priority");
  },
};

function isItem(name: string): boolean {
  return name.endsWith("]");
}

function itemKind(map: WorkflowNode | undefined): string {
  const { nodes, handler } = map?.config ?? {};
  if (nodes !== undefined || typeof handler !== "string") return "graphs";
  return ENGINE_HANDLERS.has(handler) ? `${handler} items` : "handler items";
}

function waitOf(wait: Extract<ExecutionEvent, { readonly kind: "nodeWaiting" }>["wait"]): string {
  if (wait.for === "timer") return wait.calendarAtMs === undefined ? "a while" : "a date";
  return wait.for === "child" ? `a child${wait.child.call > 1 ? ", again" : ""}` : `a ${wait.for}`;
}
