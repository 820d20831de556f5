import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import type { ShownEvent, ShownExecution } from "../shapes.ts";

/** One execution in one file: all that is needed to run it again without anything it has called. */
export interface Recording {
  readonly millrace_export: 1;
  readonly exported_at: string;
  readonly release: string;
  readonly execution: ShownExecution;
  /** In canonical form. */
  readonly definition: JsonObject;
  readonly events: readonly ShownEvent[];
}

/** What a handler gave, and when, counted from the beginning of the execution. */
export interface RecordedResult {
  readonly atMs: number;
  readonly outcome:
    | { readonly output: Json }
    | {
        readonly error: { readonly code: string; readonly message: string; readonly retryable: boolean };
        readonly retryAfterMs: number | undefined;
      };
}

/** What somebody asked of the execution. */
export interface RecordedCommand {
  readonly atMs: number;
  /** Who asked: of some reviews two have to be told apart. */
  readonly by: string;
  readonly body:
    | { readonly kind: "cancel" | "pause" | "resume" }
    | { readonly kind: "signal"; readonly name: string; readonly data: Json }
    | {
        readonly kind: "decideReview";
        readonly instance: string;
        readonly generation: number;
        readonly output: JsonObject;
      }
    | {
        readonly kind: "retry";
        readonly scope: string;
        readonly from: string | undefined;
        readonly config: JsonObject | undefined;
        readonly input: Json | undefined;
      };
}

/** A recording, sorted by what came from outside: all else follows from it. */
export interface Script {
  readonly startedAtMs: number;
  readonly input: Json;
  /** What it was forked from, and what that had completed. */
  readonly fork: RecordedFork | undefined;
  readonly results: ReadonlyMap<string, RecordedResult>;
  /** Attempts that were handed out; not each has come to a result before the end. */
  readonly dispatched: ReadonlySet<string>;
  /** Maps so large that parts of them ran as executions of their own. */
  readonly parted: ReadonlySet<string>;
  readonly commands: readonly RecordedCommand[];
}

interface RecordedFork {
  readonly execution: string;
  readonly kept: readonly { readonly node: string; readonly output: Json }[];
}

/** Names one attempt of one node instance. */
export function resultKey(generation: number, instance: string, round: number, attempt: number): string {
  return `${generation} ${instance} ${round} ${attempt}`;
}

/** The recording in a text, or why it is none. */
export function readRecording(text: string): Recording | { readonly fault: string } {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    return { fault: `it is not JSON: ${(error as Error).message}` };
  }
  if (!isJsonObject(value) || value["millrace_export"] === undefined)
    return { fault: "it is no export of an execution" };
  if (value["millrace_export"] !== 1) return { fault: "it was exported by a later release" };
  const { execution, definition, events } = value;
  if (!isJsonObject(execution) || !isJsonObject(definition) || !Array.isArray(events))
    return { fault: "parts of it are missing" };
  if (execution["finished_at"] === null)
    return { fault: "it was exported before its end, so nobody knows what would come out" };
  return value as unknown as Recording;
}

/** Sorts the events of a recording. */
export function scriptOf({ events, execution }: Recording): Script {
  const results = new Map<string, RecordedResult>();
  const dispatched = new Set<string>();
  const parted = new Set<string>();
  const commands: RecordedCommand[] = [];
  const rounds = new Map<string, number>();
  const startedAtMs = Date.parse(events[0]?.at ?? execution.created_at);
  let generation = 1;
  let { input } = execution;
  let fork: RecordedFork | undefined;
  for (const [i, event] of events.entries()) {
    const atMs = Date.parse(event.at) - startedAtMs;
    const { data, node_id: node = "", attempt = 1 } = event;
    const key = (): string => resultKey(generation, node, rounds.get(node) ?? 1, attempt);
    switch (event.type) {
      case "accepted":
        input = data["input"] ?? null;
        fork = data["fork"] as unknown as RecordedFork | undefined;
        break;
      case "started":
        if (data["input"] !== undefined) ({ input } = data);
        break;
      case "generation_opened":
        generation = Number(data["generation"]);
        break;
      case "map_opened":
        if (data["chunked"] === true) parted.add(node);
        break;
      case "task_dispatched":
        rounds.set(node, Number(data["round"] ?? 1));
        dispatched.add(key());
        break;
      case "task_completed":
        results.set(key(), { atMs, outcome: { output: data["output"] ?? null } });
        break;
      case "task_failed":
        results.set(key(), { atMs, outcome: failureOf(event, startedAtMs + atMs) });
        break;
      case "node_completed":
        // Of a child execution, which is not in the file; any other such node runs again by itself.
        if (!results.has(key())) results.set(key(), { atMs, outcome: { output: data["output"] ?? null } });
        break;
      case "node_failed":
        if (!results.has(key())) results.set(key(), { atMs, outcome: failureOf(event, startedAtMs + atMs) });
        break;
      case "command_applied": {
        const body = commandOf(data["command"] as string, { events, index: i, generation });
        if (body !== undefined) commands.push({ atMs, by: (data["by"] ?? "replay") as string, body });
        break;
      }
      default:
    }
  }
  return { startedAtMs, input: input ?? null, fork, results, dispatched, parted, commands };
}

function failureOf({ data }: ShownEvent, atMs: number): Extract<RecordedResult["outcome"], { error: unknown }> {
  const { code = "HANDLER_ERROR", message = "", retryable = false } = (data["error"] ?? {}) as Record<string, never>;
  const retryAt = data["retry_at"];
  const retryAfterMs = typeof retryAt === "string" ? Math.max(0, Date.parse(retryAt) - atMs) : undefined;
  return { error: { code, message, retryable }, retryAfterMs };
}

/** What a command has brought about stands in the events right behind it. */
function commandOf(
  command: string,
  {
    events,
    index,
    generation,
  }: { readonly events: readonly ShownEvent[]; readonly index: number; readonly generation: number },
): RecordedCommand["body"] | undefined {
  const next = (type: string): ShownEvent | undefined =>
    events.slice(index + 1, index + 4).find((event) => event.type === type);
  switch (command) {
    case "cancel":
    case "pause":
    case "resume":
      return { kind: command };
    case "signal": {
      const received = next("signal_received");
      return received && { kind: "signal", name: received.data["name"] as string, data: received.data["data"] ?? null };
    }
    case "decideReview": {
      // The first of two people changes it; whoever decides it alone, or as the second, completes it.
      const decided = events[index + 1];
      const output = decided?.type === "review_changed" ? decided.data["first"] : decided?.data["output"];
      if (decided?.node_id === undefined || !isJsonObject(output ?? null)) return undefined;
      return { kind: "decideReview", instance: decided.node_id, generation, output: output as JsonObject };
    }
    case "retry":
    case "trigger": {
      const { scope, from, config, input } = next("generation_opened")?.data ?? {};
      if (scope === undefined) return undefined;
      return {
        kind: "retry",
        scope: scope as string,
        from: from as string | undefined,
        config: config as JsonObject | undefined,
        input,
      };
    }
    default:
      return undefined;
  }
}
