import type { Json, JsonObject } from "../json/json.ts";
import type { NodeError } from "./handle.ts";

/** The states of a run. */
export type RunStatus = "PENDING" | "RUNNING" | "PAUSED" | "COMPLETED" | "PARTIAL" | "FAILED" | "CANCELLED";

/** A run as it stands, in the words of the HTTP API. */
export interface ExecutionView {
  readonly execution_id: string;
  readonly workflow: string;
  readonly version: number | null;
  readonly workflow_definition_id: string;
  readonly status: RunStatus;
  readonly generation: number;
  /** The last event. */
  readonly seq: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly input: Json;
  readonly output: Json;
  readonly error: (NodeError & { readonly node_id?: string }) | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** Left out when there are more than 5,000. */
  readonly nodes?: Readonly<Record<string, NodeView>>;
}

export interface NodeView {
  readonly status: string;
  /** The last attempt; 0 before the first. */
  readonly attempt: number;
  readonly deliveries: number;
  readonly output: Json;
  readonly error: NodeError | null;
  /** Why it waits, was skipped or cancelled. */
  readonly reason: string | null;
  readonly until: string | null;
  readonly queued_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly usage: Json;
  readonly child_execution_id: string | null;
  readonly cached_from?: string;
  readonly items?: { readonly total: number; readonly completed: number; readonly failed: number };
}

/** What else a start may say. */
export interface StartSettings {
  readonly version?: number | string;
  readonly labels?: Readonly<Record<string, string>>;
}

/** Something that has happened to a run. */
export interface EventView {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly node_id?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

export type Command = "cancel" | "pause" | "resume" | "retry" | "signal";

export interface Decided {
  readonly decision: "approve" | "reject";
  readonly data: Json;
  readonly comment?: string;
}

/**
 * Who does what a client asks: an engine in this process, or a server. Every request that changes something has a key, so
 * that it can be sent again without being done twice.
 */
export interface Backend {
  /** Stores a definition, and gives its hash there. */
  publish(definition: JsonObject, hash: string): Promise<string>;
  /** Starts a run of a stored workflow. */
  start(
    name: string,
    request: { readonly input: Json } & StartSettings,
    key: string,
  ): Promise<{ readonly execution_id: string }>;
  execution(id: string): Promise<ExecutionView>;
  /** The whole output. */
  output(id: string): Promise<Json>;
  /** One node with its whole output. */
  node(id: string, node: string): Promise<NodeView>;
  /** What happens beyond an event, as it happens, until the run is over. */
  events(id: string, after: number, signal: AbortSignal): AsyncIterable<EventView>;
  /** Resolves when a run may be over since an event, or nobody waits any more: then it has to be looked at again. */
  untilOver(id: string, after: number, signal: AbortSignal): Promise<void>;
  command(id: string, command: Command, body: JsonObject, key: string): Promise<void>;
  decide(review: string, decided: Decided, key: string): Promise<void>;
  /** What was thrown by the function that a run has failed by, if it ran in this process. */
  causeOf?(ended: Pick<ExecutionView, "execution_id" | "error">): unknown;
  close(): Promise<void>;
}
