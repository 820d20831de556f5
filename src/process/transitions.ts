import type { Json, JsonObject } from "../json/json.ts";

/** The part of a shown event that tells what has become of something. */
export interface ToldEvent {
  readonly type: string;
  readonly at: string;
  readonly node_id?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

/** A change that people want to know of: of a node, or of the execution itself. */
export interface Transition {
  /** Undefined: the execution. */
  readonly node?: string;
  /** Upper-case, as in the API. */
  readonly status: string;
  readonly at: string;
  readonly attempt?: number;
  /** Of an attempt that ended: how long it ran. */
  readonly ms?: number;
  readonly reason?: string;
  readonly until?: string;
  /** Of a map that was opened: how many it has. */
  readonly items?: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/** What an event changes, in the words of the API; undefined if it changes no state that is shown. */
export function transitionOf(event: ToldEvent): Transition | undefined {
  const { type, at, data } = event;
  const base = {
    at,
    ...(event.node_id !== undefined && { node: event.node_id }),
    ...(event.attempt !== undefined && { attempt: event.attempt }),
  };
  switch (type) {
    case "started":
    case "resumed":
    case "generation_opened":
      return { ...base, status: "RUNNING" };
    case "paused":
      return { ...base, status: "PAUSED" };
    case "execution_ended":
      return { ...base, status: text(data["status"]) ?? "", ...reasonOf(data), ...errorOf(data) };
    case "task_dispatched":
    case "delivery_lost":
      return { ...base, status: "QUEUED" };
    case "task_started":
      return { ...base, status: "RUNNING" };
    case "map_opened": {
      const { total } = data;
      return { ...base, status: "RUNNING", ...(typeof total === "number" && { items: total }) };
    }
    case "task_completed":
      return { ...base, status: "COMPLETED", ...msOf(at, data["started_at"]) };
    case "node_completed":
      return { ...base, status: "COMPLETED", ...reasonOf(data) };
    case "task_failed": {
      const retryAt = text(data["retry_at"]);
      if (retryAt === undefined) return { ...base, status: "FAILED", ...errorOf(data) };
      return { ...base, status: "WAITING", reason: "retry", until: retryAt, ...errorOf(data) };
    }
    case "node_failed":
      return { ...base, status: "FAILED", ...errorOf(data) };
    case "node_skipped":
      return { ...base, status: "SKIPPED", ...reasonOf(data) };
    case "node_waiting": {
      const { wait, due_at: due } = data;
      const reason = text((wait as JsonObject | undefined)?.["for"]);
      const until = text(due);
      return {
        ...base,
        status: "WAITING",
        ...(reason !== undefined && { reason }),
        ...(until !== undefined && { until }),
      };
    }
    case "gate_stalled":
      return { ...base, status: "WAITING", reason: "budget" };
    default:
      return undefined;
  }
}

function text(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function msOf(at: string, startedAt: Json | undefined): { readonly ms?: number } {
  const started = text(startedAt);
  return started === undefined ? {} : { ms: Math.max(0, Date.parse(at) - Date.parse(started)) };
}

function reasonOf({ reason }: JsonObject): { readonly reason?: string } {
  const given = text(reason);
  return given === undefined ? {} : { reason: given };
}

function errorOf({ error }: JsonObject): { readonly error?: { readonly code: string; readonly message: string } } {
  const { code, message } = (error ?? {}) as JsonObject;
  if (typeof code !== "string" || typeof message !== "string") return {};
  return { error: { code, message } };
}
