import { fillHoles } from "../../expression/fill-holes.ts";
import { MAX_RESOLVED_BYTES } from "../../expression/json-size.ts";
import type { BlobRef, Hole, Scope } from "../../expression/scope.ts";
import { copyJson, setMember } from "../../json/copy-json.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Context, Need, TaskDraft } from "../machine.ts";
import type { ErrorValue } from "../message.ts";
import { formatToken } from "../token.ts";
import { fallbackModel, isRated } from "./asks.ts";
import { instanceOf } from "./instance.ts";
import type { TaskDispatched } from "./events.ts";
import { itemNumber, missingValues, scopeOf, viewedBy } from "./scope.ts";
import type { ExecutionState } from "./state.ts";
import { keyNumber } from "./units.ts";

/** Everything a handler gets from the workflow, resolved: templates filled in, secrets and large outputs left as holes. */
export interface Prepared {
  readonly config: Json;
  readonly holes: readonly Hole[];
  readonly inputs: Json | undefined;
  /** Of config, holes and inputs together: equal hashes mean equal work. */
  readonly inputHash: string;
  readonly text: string;
}

export type Preparation =
  | { readonly kind: "prepared"; readonly prepared: Prepared }
  | { readonly kind: "needs"; readonly needs: readonly Need[] }
  | { readonly kind: "failed"; readonly error: ErrorValue };

const NO_SCOPE: Scope = { input: { kind: "none" }, executionId: "", node: () => undefined };

/**
 * Resolves what a node is given. The same state gives the same bytes, so a task can be made again at any time: a large
 * output that is passed on whole stays a hole, whether or not it happens to be in memory.
 */
export function prepare(state: ExecutionState, index: number, context: Context): Preparation {
  const missing = missingValues(state, index, context);
  if (missing.length > 0) return { kind: "needs", needs: missing };
  const { config } = state.planOf(index);
  if (config.problems.length > 0) {
    const { message, pointer } = config.problems[0]!;
    return { kind: "failed", error: templateError({ code: "CONFIG_INVALID", message, pointer }) };
  }
  // What has no templates looks at nothing, and most of it is made for nothing then.
  const resolution = config.resolve(config.constant ? NO_SCOPE : scopeOf(state, index, context));
  if (resolution.kind === "failed") return { kind: "failed", error: templateError(resolution.failure) };
  if (resolution.kind === "needs") return needed(resolution.blobs);
  const model = fallbackModel(state, index);
  const own = resolution.value;
  const resolved = model !== undefined && isJsonObject(own) ? { ...own, model } : own;
  return withInputs(state, index, context, resolved, resolution.holes, resolved !== own);
}

/** As `prepare`, for a node that the engine runs itself: large values must be there, and a secret has no business. */
export function prepareInline(state: ExecutionState, index: number, context: Context): Preparation {
  const preparation = prepare(state, index, context);
  if (preparation.kind !== "prepared" || preparation.prepared.holes.length === 0) return preparation;
  const { config, holes } = preparation.prepared;
  const blobs = holes.flatMap((hole) => (hole.kind === "blob" ? [hole.ref] : []));
  if (blobs.length < holes.length) {
    const message = "A node that runs in the engine cannot use a secret: its output would show it";
    return { kind: "failed", error: { code: "CONFIG_INVALID", message, retryable: false } };
  }
  if (blobs.some((blob) => context.fetched(blob.hash) === undefined)) return needed(blobs);
  const filled = fillHoles(config, holes, { secret: () => undefined, blob: (hash) => context.fetched(hash) });
  return { kind: "prepared", prepared: { ...preparation.prepared, config: filled, holes: [] } };
}

function needed(blobs: readonly BlobRef[]): Exclude<Preparation, { kind: "prepared" }> {
  const error = oversized(blobs);
  if (error !== undefined) return { kind: "failed", error };
  return { kind: "needs", needs: blobs.map((blob) => ({ blob })) };
}

/** What a node reads must fit into memory beside everything else; said before it is fetched, where that is known. */
function oversized(blobs: readonly BlobRef[]): ErrorValue | undefined {
  const bytes = blobs.reduce((sum, blob) => sum + blob.bytes, 0);
  return bytes > MAX_RESOLVED_BYTES ? tooLarge(bytes) : undefined;
}

export function tooLarge(bytes: number): ErrorValue {
  const message = `What this node is given is ${bytes} bytes; ${MAX_RESOLVED_BYTES} are allowed`;
  return { code: "RESOLVED_INPUT_TOO_LARGE", message, retryable: false };
}

function withInputs(
  state: ExecutionState,
  index: number,
  context: Context,
  config: Json,
  holes: readonly Hole[],
  isChanged: boolean,
): Preparation {
  const { spec, given } = state.planOf(index);
  let inputs: Json | undefined;
  if (spec.inputs) {
    const collected = parentOutputs(state, index, context);
    if (collected.kind !== "collected") return collected;
    inputs = collected.value;
  }
  const text = given.write(config, holes, inputs, isChanged);
  if (text.length > MAX_RESOLVED_BYTES) return { kind: "failed", error: tooLarge(text.length) };
  return { kind: "prepared", prepared: { config, holes, inputs, inputHash: given.hash(text), text } };
}

export function templateError(failure: { code: string; message: string; pointer: string }): ErrorValue {
  return {
    code: failure.code,
    message: failure.message,
    retryable: false,
    ...(failure.pointer !== "" && { details: { pointer: failure.pointer } }),
  };
}

/** `{parent_id: output}` of the parents that COMPLETED, in the order in which they are listed. */
export function parentOutputs(
  state: ExecutionState,
  index: number,
  context: Context,
): { kind: "collected"; value: Json } | Exclude<Preparation, { kind: "prepared" }> {
  const { graph } = state.plan;
  const outputs: Record<string, Json> = {};
  let needs: BlobRef[] | undefined;
  for (let edge = graph.parentStart[index]!; edge < graph.parentStart[index + 1]!; edge++) {
    const parent = graph.edgeParent[edge]!;
    const id = graph.ids[parent]!;
    const view = viewedBy(state, index, parent, context);
    if (view.kind === "output") setMember(outputs, id, view.value);
    if (view.kind === "blob") {
      if (view.value === undefined) (needs ??= []).push(view.ref);
      else setMember(outputs, id, view.value);
    }
  }
  return needs === undefined ? { kind: "collected", value: outputs } : needed(needs);
}

/** What goes to the queue for a dispatch. A large input travels as a blob that is written before the commit. */
export function taskOf(
  state: ExecutionState,
  unit: number,
  dispatch: Pick<TaskDispatched, "attempt" | "delivery" | "nonce" | "config" | "atMs" | "round">,
  prepared: Prepared,
): TaskDraft {
  const { id, spec, firstTry } = state.planOf(unit);
  const { attempt, delivery, nonce, round, config } = dispatch;
  const { generation } = state;
  const instance = instanceOf(state, unit, round);
  const isFirst = generation === 1 && attempt === 1 && delivery === 1 && instance === id;
  const token = isFirst
    ? `${nonce}:${state.id}${firstTry}`
    : formatToken({ nonce, execution: state.id, generation, instance, attempt, delivery });
  const head: { -readonly [Field in keyof TaskText]: TaskText[Field] } = {
    token,
    execution: state.id,
    node: id,
    handler: spec.handler,
    generation,
    attempt,
    delivery,
    idempotencyKey: `${state.id}/${instance}/${keyNumber(state.runs[unit], round ?? 0)}`,
    timeoutMs: timeoutMs(state, unit, dispatch.atMs),
  };
  // What most do not have is put in afterwards: there is one of these for every step.
  if (state.isItem(unit)) head.item = itemNumber(state, unit);
  if (round !== undefined) head.iteration = round;
  if (isRated(state, unit)) head.limited = true;
  if (config !== undefined) head.body = config;
  return new DispatchedTask(head, config === undefined ? prepared : null, spec.queue, spec.priority);
}

const NO_HOLES: readonly Hole[] = Object.freeze([]);

/** About as long as what is said of a task besides what it is given. */
const HEAD_CHARS = 400;

/** What is sent out. Its text is only made where it leaves the process. */
class DispatchedTask implements TaskDraft {
  readonly queue: string;
  readonly priority: number;
  private readonly head: TaskText;
  /** What it is given was written once, for its hash, and goes in as it is. null if it is a blob. */
  private readonly given: Prepared | null;

  constructor(head: TaskText, given: Prepared | null, queue: string, priority: number) {
    this.head = head;
    this.given = given;
    this.queue = queue;
    this.priority = priority;
  }

  get token(): string {
    return this.head.token;
  }

  get chars(): number {
    return HEAD_CHARS + (this.given?.text.length ?? 0);
  }

  get text(): string {
    const head = JSON.stringify(this.head);
    return this.given === null ? head : `${head.slice(0, -1)},${this.given.text.slice(1)}`;
  }

  /** With copies: the state keeps the same values, and a handler may change what it is given. */
  value(): TaskText {
    const { head, given } = this;
    if (given === null) return { ...head };
    const { config, holes, inputs } = given;
    // By their names and all at once: to copy an object and then add to it costs more.
    const task: { -readonly [Field in keyof TaskText]: TaskText[Field] } = {
      token: head.token,
      execution: head.execution,
      node: head.node,
      handler: head.handler,
      generation: head.generation,
      attempt: head.attempt,
      delivery: head.delivery,
      idempotencyKey: head.idempotencyKey,
      timeoutMs: head.timeoutMs,
      config: copyJson(config),
      holes: holes.length === 0 ? NO_HOLES : (copyJson(holes as unknown as Json) as unknown as readonly Hole[]),
    };
    if (inputs !== undefined) task.inputs = copyJson(inputs);
    if (head.item !== undefined) task.item = head.item;
    if (head.iteration !== undefined) task.iteration = head.iteration;
    if (head.limited !== undefined) task.limited = head.limited;
    return task;
  }
}

/** The text of a task, as a worker reads it. */
export interface TaskText {
  readonly token: string;
  readonly execution: string;
  readonly node: string;
  /** Of a map: which item. */
  readonly item?: number;
  /** Of a node that repeats: which round. */
  readonly iteration?: number;
  readonly handler: string;
  readonly generation: number;
  readonly attempt: number;
  readonly delivery: number;
  readonly idempotencyKey: string;
  /** Counts from the start on the worker. */
  readonly timeoutMs: number;
  /** A rate has let it through, and others wait to hear that it has begun. */
  readonly limited?: true;
  readonly config?: Json;
  readonly holes?: readonly Hole[];
  readonly inputs?: Json;
  /** Instead of config, holes and inputs: where they are. */
  readonly body?: BlobRef;
}

/** A node's own timeout, capped by what is left of the workflow's. */
export function timeoutMs(state: ExecutionState, index: number, nowMs: number): number {
  const own = (state.planOf(index).spec.timeout_seconds ?? 30) * 1000;
  return state.deadlineAtMs === null ? own : Math.max(1, Math.min(own, state.deadlineAtMs - nowMs));
}
