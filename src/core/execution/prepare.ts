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
import type { PlanNode } from "./plan-node.ts";
import type { ExecutionState } from "./state.ts";
import { keyNumber } from "./units.ts";

/** Everything a handler gets from the workflow, resolved: templates filled in, secrets and large outputs left as holes. */
export class Prepared {
  readonly config: Json;
  readonly holes: readonly Hole[];
  readonly inputs: Json | undefined;
  /** Of config, holes and inputs together: equal hashes mean equal work. */
  readonly inputHash: string;
  readonly text: string;

  constructor(config: Json, holes: readonly Hole[], inputs: Json | undefined, inputHash: string, text: string) {
    this.config = config;
    this.holes = holes;
    this.inputs = inputs;
    this.inputHash = inputHash;
    this.text = text;
  }
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
  const { inputs, inputHash, text } = preparation.prepared;
  return { kind: "prepared", prepared: new Prepared(filled, NO_HOLES, inputs, inputHash, text) };
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
  return { kind: "prepared", prepared: new Prepared(config, holes, inputs, given.hash(text), text) };
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

type Dispatch = Pick<TaskDispatched, "attempt" | "delivery" | "nonce" | "config" | "atMs" | "round">;

/** What goes to the queue for a dispatch. A large input travels as a blob that is written before the commit. */
export function taskOf(state: ExecutionState, unit: number, dispatch: Dispatch, prepared: Prepared): TaskDraft {
  const node = state.planOf(unit);
  const { attempt, delivery, nonce, round, config } = dispatch;
  const { generation } = state;
  const instance = instanceOf(state, unit, round);
  const isFirst = generation === 1 && attempt === 1 && delivery === 1 && instance === node.id;
  const token = isFirst
    ? `${nonce}:${state.id}${node.firstTry}`
    : formatToken({ nonce, execution: state.id, generation, instance, attempt, delivery });
  const task = new DispatchedTask(token, state, node, dispatch, config === undefined ? prepared : null);
  task.idempotencyKey = `${state.id}/${instance}/${keyNumber(state.runs[unit], round ?? 0)}`;
  task.timeoutMs = timeoutMs(state, unit, dispatch.atMs);
  if (state.isItem(unit)) task.item = itemNumber(state, unit);
  if (isRated(state, unit)) task.limited = true;
  return task;
}

const NO_HOLES: readonly Hole[] = Object.freeze([]);

/** About as long as what is said of a task besides what it is given. */
const HEAD_CHARS = 400;

type Writable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** What is sent out. Its text is only made where it leaves the process. */
class DispatchedTask implements TaskDraft {
  readonly token: string;
  readonly queue: string;
  readonly priority: number;
  idempotencyKey = "";
  timeoutMs = 0;
  item: number | undefined = undefined;
  limited: true | undefined = undefined;
  private readonly execution: string;
  private readonly node: string;
  private readonly handler: string;
  private readonly generation: number;
  private readonly attempt: number;
  private readonly delivery: number;
  private readonly iteration: number | undefined;
  private readonly body: BlobRef | undefined;
  /** What it is given was written once, for its hash, and goes in as it is. null if it is a blob. */
  private readonly given: Prepared | null;

  constructor(
    token: string,
    { id, generation }: ExecutionState,
    node: PlanNode,
    dispatch: Dispatch,
    given: Prepared | null,
  ) {
    this.token = token;
    this.queue = node.spec.queue;
    this.priority = node.spec.priority;
    this.execution = id;
    this.node = node.id;
    this.handler = node.spec.handler;
    this.generation = generation;
    this.attempt = dispatch.attempt;
    this.delivery = dispatch.delivery;
    this.iteration = dispatch.round;
    this.body = dispatch.config;
    this.given = given;
  }

  get chars(): number {
    return HEAD_CHARS + (this.given?.text.length ?? 0);
  }

  get text(): string {
    const head = JSON.stringify(this.head());
    return this.given === null ? head : `${head.slice(0, -1)},${this.given.text.slice(1)}`;
  }

  /** With copies: the state keeps the same values, and a handler may change what it is given. */
  value(): TaskText {
    if (this.given === null) return this.head();
    const { config, holes, inputs } = this.given;
    // By their names and all at once: to make a head and then add to it costs more.
    const task: Writable<TaskText> = {
      token: this.token,
      execution: this.execution,
      node: this.node,
      handler: this.handler,
      generation: this.generation,
      attempt: this.attempt,
      delivery: this.delivery,
      idempotencyKey: this.idempotencyKey,
      timeoutMs: this.timeoutMs,
      config: copyJson(config),
      holes: holes.length === 0 ? NO_HOLES : (copyJson(holes as unknown as Json) as unknown as readonly Hole[]),
    };
    if (inputs !== undefined) task.inputs = copyJson(inputs);
    return this.withRest(task);
  }

  /** All but what it is given. */
  private head(): TaskText {
    const { token, execution, node, handler, generation, attempt, delivery, idempotencyKey, timeoutMs } = this;
    const head = { token, execution, node, handler, generation, attempt, delivery, idempotencyKey, timeoutMs };
    return this.withRest(head);
  }

  /** What most do not have is put in afterwards: there is one of these for every step. */
  private withRest(task: Writable<TaskText>): TaskText {
    if (this.item !== undefined) task.item = this.item;
    if (this.iteration !== undefined) task.iteration = this.iteration;
    if (this.limited !== undefined) task.limited = this.limited;
    if (this.body !== undefined) task.body = this.body;
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
