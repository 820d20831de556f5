import type { ExecutionEvent } from "../core/execution/events.ts";
import type { Amounts } from "../core/gate/amounts.ts";
import type { Workflow, WorkflowNode } from "../definition/workflow.ts";
import { isJsonObject, type JsonObject } from "../json/json.ts";
import type { Random } from "./random.ts";

/** What somebody sees who looks at an execution: enough to meddle with it. */
export interface Glance {
  readonly execution: string;
  readonly version: number;
  readonly generation: number;
  readonly isChild: boolean;
  readonly isStarted: boolean;
  readonly isPaused: boolean;
  /** It is left alone by its owner, and whatever is sent to it is kept for later. */
  readonly isQuarantined: boolean;
  readonly isEnded: boolean;
  /** The status it ended with last. */
  readonly status: string;
  readonly nodes: readonly WorkflowNode[];
  readonly reviews: readonly { readonly instance: string; readonly hasForm: boolean }[];
  /** Nodes that wait for somebody to raise a budget, with what it is about. */
  readonly stalled: readonly { readonly instance: string; readonly limits: Amounts }[];
  /** Signals that are waited for now, and those that may be waited for later. */
  readonly signals: readonly string[];
  readonly laterSignals: readonly string[];
}

export function glanceAt(
  execution: string,
  events: readonly ExecutionEvent[],
  definition: (hash: string) => Workflow | undefined,
): Glance | undefined {
  const [accepted] = events;
  if (accepted?.kind !== "accepted") return undefined;
  const nodes = definition(accepted.definition)?.nodes;
  if (nodes === undefined) return undefined;
  const seen = new Seen();
  for (const event of events) seen.see(event);
  const waited = nodes.flatMap(({ config }) => (typeof config["signal"] === "string" ? [config["signal"]] : []));
  return {
    execution,
    version: events.length,
    generation: seen.generation,
    isChild: accepted.parent?.entity.startsWith("execution/") === true,
    isStarted: seen.isStarted,
    isPaused: seen.isPaused,
    isQuarantined: seen.isQuarantined,
    isEnded: seen.isEnded,
    status: seen.status,
    nodes,
    reviews: [...seen.reviews].map(([instance, hasForm]) => ({ instance, hasForm })),
    stalled: Array.from(seen.stalled, ([instance, limits]) => ({ instance, limits })),
    signals: [...seen.signals.values()],
    laterSignals: seen.isEnded ? [] : waited,
  };
}

/** What has been seen so far of an execution's events. */
class Seen {
  generation = 1;
  isStarted = false;
  isPaused = false;
  isQuarantined = false;
  isEnded = false;
  status = "open";
  readonly reviews: Map<string, boolean> = new Map();
  readonly signals: Map<string, string> = new Map();
  readonly stalled: Map<string, Amounts> = new Map();

  see(event: ExecutionEvent): void {
    const { kind } = event;
    if (kind === "gateStalled") this.stalled.set(event.node, event.budget.limits);
    else if (kind === "executionEnded" || kind === "paused") this.stalled.clear();
    else if ("node" in event && kind !== "gateAsked") {
      for (const name of this.stalled.keys())
        if (name === event.node || name.startsWith(`${event.node}[`)) this.stalled.delete(name);
    }
    if (kind === "started") this.isStarted = true;
    if (kind === "paused" || kind === "resumed") this.isPaused = kind === "paused";
    if (kind === "quarantined" || kind === "released") this.isQuarantined = kind === "quarantined";
    if (kind === "generationOpened") {
      this.generation = event.generation;
      this.isStarted = true;
      this.isEnded = false;
    }
    if (kind === "executionEnded") {
      this.isEnded = true;
      this.isPaused = false;
      this.status = event.status;
      this.reviews.clear();
      this.signals.clear();
    }
    if (kind === "nodeWaiting" && event.wait.for === "review") {
      this.reviews.set(event.node, event.wait.review.form !== undefined);
    }
    if (kind === "nodeWaiting" && event.wait.for === "signal") this.signals.set(event.node, event.wait.signal);
    if (kind === "nodeCompleted" || kind === "nodeFailed") this.forget(event.node);
  }

  /** A map takes its items along. */
  private forget(node: string): void {
    for (const waits of [this.reviews, this.signals]) {
      for (const name of waits.keys()) if (name === node || name.startsWith(`${node}[`)) waits.delete(name);
    }
  }
}

/** Another config for a node, if it is of a kind that can be edited without thinking. */
export function editedConfig({ nodes }: Glance, id: string, random: Random): JsonObject | undefined {
  const node = nodes.find((other) => other.id === id)!;
  const { config } = node;
  const edited = random.integer(1, 3);
  switch (node.handler) {
    case "step":
      return { ...config, edited };
    case "delay":
      return { seconds: edited };
    case "wait":
      return { seconds: edited };
    case "map": {
      const own = config["config"];
      return isJsonObject(own) && config["handler"] === "step" ? { ...config, config: { ...own, edited } } : undefined;
    }
    default:
      return undefined;
  }
}
