import type { DlqPolicy } from "../../definition/workflow.ts";
import { contentHash } from "../../json/hash.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import type { Context, DeadLetterDraft } from "../machine.ts";
import type { ErrorValue } from "../message.ts";
import { instanceOf } from "./instance.ts";
import type { ExecutionState } from "./state.ts";

/** The code of a map of which too many items failed. They left letters of their own, so it leaves none. */
export const MAP_FAILED = "MAP_FAILED";

/** A letter shows the config as it was written; beyond this, what is large in it by its size. */
const SHOWN_CONFIG_CHARS = 16 * 1024;

const TAKES: Readonly<Record<DlqPolicy, readonly ("poison" | "exhausted")[]>> = {
  all: ["poison", "exhausted"],
  non_retryable: ["poison"],
  exhausted: ["exhausted"],
  none: [],
};

/** What a part of a large map says of its items; undefined if it failed for another reason. */
export function failedInside({
  details,
}: ErrorValue): { readonly items: readonly number[]; readonly first: Json } | undefined {
  const of = isJsonObject(details) && isJsonObject(details["error"]) ? details["error"] : {};
  const told = of["code"] === MAP_FAILED ? of["details"] : undefined;
  return isJsonObject(told) ? (told as unknown as ReturnType<typeof failedInside>) : undefined;
}

/** Whether a unit that failed this way leaves a dead letter, or has left one by an earlier release (see `isInParts`). */
export function isKeptLetter(state: ExecutionState, unit: number, retryable: boolean, code: string): boolean {
  if (code === MAP_FAILED && !state.isItem(unit)) return false;
  return TAKES[state.planOf(unit).spec.dlq].includes(classOf(retryable));
}

export function letterId(state: ExecutionState, unit: number): string {
  return `${state.id}:${state.generation}:${state.nameOf(unit)}`;
}

/**
 * The items of a part of a large map left letters of their own, in the part. Earlier releases wrote one for the part
 * too: the state goes on to know of it, so that it can be replayed and is removed with its execution.
 */
function isInParts(state: ExecutionState, unit: number, error: ErrorValue): boolean {
  return state.isItem(unit) && state.mapOf(unit).chunked && failedInside(error) !== undefined;
}

/** The dead letter of a unit that failed by its own fault; undefined if the policy wants none of this class. */
export function deadLetterOf(
  state: ExecutionState,
  unit: number,
  error: ErrorValue,
  context: Pick<Context, "nowMs">,
): DeadLetterDraft | undefined {
  if (!isKeptLetter(state, unit, error.retryable, error.code) || isInParts(state, unit, error)) return undefined;
  const { spec } = state.planOf(unit);
  return {
    id: letterId(state, unit),
    class: classOf(error.retryable),
    queue: spec.queue,
    text: JSON.stringify({
      execution_id: state.id,
      generation: state.generation,
      node_id: state.nameOf(unit),
      original_message_id: `${state.id}:${state.generation}:${instanceOf(state, unit)}:${state.runs[unit]?.attempt ?? 0}`,
      handler: spec.handler,
      attempts: state.runs[unit]?.attempt ?? 0,
      error,
      config: shownConfig(spec.config),
      rejected_at_ms: context.nowMs,
      status: "open",
    }),
  };
}

/** All items of a map have the config of the map, and may leave a letter each. */
const SHOWN = new WeakMap<JsonObject, Json>();

function shownConfig(config: JsonObject): Json {
  let shown = SHOWN.get(config);
  if (shown === undefined) SHOWN.set(config, (shown = withoutLargest(config)));
  return shown;
}

/** The largest members are left out first; of a config that has very many, all. */
function withoutLargest(config: JsonObject): Json {
  const whole = JSON.stringify(config);
  let chars = whole.length;
  if (chars <= SHOWN_CONFIG_CHARS) return config;
  const shown: { [name: string]: Json } = { ...config };
  const members = Object.entries(config).map(([name, value]) => ({ name, text: JSON.stringify(value) }));
  for (const { name, text } of members.sort((a, b) => b.text.length - a.text.length)) {
    if (chars <= SHOWN_CONFIG_CHARS) break;
    shown[name] = large(text);
    chars += JSON.stringify(shown[name]).length - text.length;
  }
  return chars <= SHOWN_CONFIG_CHARS ? shown : large(whole);
}

function large(text: string): Json {
  return { $large: { bytes: Buffer.byteLength(text), sha256: contentHash(text) } };
}

/** The letter stays, so that people see that it was dealt with. */
export function replayed(letter: DeadLetterDraft): DeadLetterDraft {
  const shown = JSON.parse(letter.text) as object;
  return { ...letter, text: JSON.stringify({ ...shown, status: "replayed" }) };
}

/**
 * A later generation has opened again what had left the letter, however that ended: replayed, it would be done twice. If
 * it failed once more, that left a letter of its own.
 */
export function isReopened(state: ExecutionState, letter: string): boolean {
  const unit = state.unitOf(instanceOfLetter(letter));
  const run = unit === undefined ? undefined : state.runs[unit];
  // An item that is known no more: its map was opened again, and had fewer.
  return run === undefined || run.generation > Number(letter.split(":")[1]);
}

/** A letter's id is `execution:generation:instance`. */
export function instanceOfLetter(id: string): string {
  return id.split(":").slice(2).join(":");
}

function classOf(retryable: boolean): "poison" | "exhausted" {
  return retryable ? "exhausted" : "poison";
}
