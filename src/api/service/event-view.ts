import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { Fork } from "../../core/message.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import type { JournalRecord } from "../../store/contract.ts";
import { executionError, nodeHref } from "./execution-view.ts";

/** One event of an execution's history, as clients see it. */
export interface ShownEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly node_id?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

/** What only the engine has to do with. */
const HIDDEN: ReadonlySet<string> = new Set(["nonce", "token", "seen", "bodyHash", "message", "around"]);
const ENVELOPE: ReadonlySet<string> = new Set(["kind", "atMs", "node", "attempt"]);
/** What people and handlers have named themselves. */
const OWN_WORDS: ReadonlySet<string> = new Set([
  "error",
  "config",
  "form",
  "usage",
  "labels",
  "values",
  "confidence",
  "source",
  "data",
]);
/** Fields that hold an input or output. */
const PAYLOADS: ReadonlySet<string> = new Set(["input", "output", "items"]);

/** The events of some records, beyond a version. */
export function* eventsOf(
  records: readonly JournalRecord[],
  after: number,
): Generator<readonly [number, ExecutionEvent]> {
  for (const record of records) {
    if (record.version + record.count - 1 <= after) continue;
    for (const [i, event] of (JSON.parse(record.text) as ExecutionEvent[]).entries()) {
      if (record.version + i > after) yield [record.version + i, event];
    }
  }
}

/** Our own names become those of the HTTP contract: words joined by `_`, times as dates, durations in seconds. */
export function showEvent(seq: number, event: ExecutionEvent, id: string): ShownEvent {
  const fields = event as unknown as JsonObject;
  const data: Record<string, Json> = {};
  for (const [name, value] of Object.entries(fields)) {
    // The message of an error is for everybody; a message that was parked is not.
    if (ENVELOPE.has(name) || HIDDEN.has(name)) continue;
    data[nameOf(name)] = isPayload(event, name) ? payload(value, hrefOf(event, id)) : shown(name, value);
  }
  if (event.kind === "accepted" && event.fork !== undefined) data["fork"] = shownFork(event.fork, id);
  // States are in capitals wherever people see them.
  if (event.kind === "executionEnded") data["status"] = event.status.toUpperCase();
  if (event.kind === "executionEnded" && event.error !== undefined) data["error"] = executionError(event.error);
  return {
    seq,
    type: snake(event.kind),
    at: new Date(event.atMs).toISOString(),
    ...("node" in event && { node_id: event.node }),
    ...("attempt" in event && { attempt: event.attempt }),
    data,
  };
}

function shown(name: string, value: Json): Json {
  if (name.endsWith("AtMs")) return typeof value === "number" ? new Date(value).toISOString() : value;
  if (name.endsWith("Ms")) return typeof value === "number" ? value / 1000 : value;
  if (OWN_WORDS.has(name)) return value;
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [nameOf(key), shown(key, member)]));
}

/** What a fork began with, each output as that of any other node. */
function shownFork({ execution, kept }: Fork, id: string): Json {
  const outputs = kept.map(({ node, output }) => ({
    node,
    output: payload(output as unknown as Json, nodeHref(id, node)),
  }));
  return { execution, kept: outputs };
}

function isPayload(event: ExecutionEvent, name: string): boolean {
  return PAYLOADS.has(name) || (name === "data" && event.kind === "signalReceived");
}

function hrefOf(event: ExecutionEvent, id: string): string {
  if ("node" in event) return nodeHref(id, event.node);
  return `/v1/executions/${id}/${event.kind === "executionEnded" ? "output" : "input"}`;
}

function payload(value: Json, href: string): Json {
  if (!isJsonObject(value)) return value;
  if ("json" in value) return value["json"]!;
  const blob = value["blob"];
  return isJsonObject(blob) ? { $large: { bytes: blob["bytes"]!, sha256: blob["hash"]!, href } } : value;
}

function nameOf(name: string): string {
  if (name.endsWith("AtMs")) return snake(name.slice(0, -2));
  return snake(name.endsWith("Ms") ? `${name.slice(0, -2)}Seconds` : name);
}

function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
