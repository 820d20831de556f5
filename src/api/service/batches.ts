import type { ExecutionState } from "../../core/execution/state.ts";
import { PART_ITEMS, sizeOf } from "../../core/execution/maps.ts";
import { viewNode } from "../../core/execution/view.ts";
import type { Labels } from "../../core/message.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import { MAX_INPUT_BYTES } from "../limits.ts";
import { BATCH_NAME, type BatchOf, batchOf, batchStatus, ITEMS } from "./batch-status.ts";
import type { Caller } from "./caller.ts";
import type { Commands } from "./commands.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { iso, shownError } from "./execution-view.ts";
import type { Executions } from "./executions.ts";
import { isExecutionId } from "./ids.ts";
import type { PageOf, PageRequest, Paging } from "./paging.ts";
import { type Payload, type Payloads, sizedInput } from "./payloads.ts";
import { notFound } from "./refusal.ts";
import type { Submissions } from "./submissions.ts";

export const ITEM_STATUSES = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED", "UNKNOWN"] as const;
export type ItemStatus = (typeof ITEM_STATUSES)[number];

/** By this label batches are found among executions. */
const BATCH_LABEL: Labels = { "millrace/batch": "true" };

export interface BatchRequest {
  readonly workflow: string;
  readonly version?: string | number | undefined;
  readonly items: readonly Json[];
  readonly concurrency: number;
  readonly labels?: Labels | undefined;
}

export interface ShownBatch {
  readonly batch_id: string;
  readonly workflow: string;
  readonly workflow_definition_id: string;
  readonly status: string;
  readonly generation: number;
  readonly concurrency: number;
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly running: number;
  readonly pending: number;
  readonly cancelled: number;
  readonly labels: Labels;
  readonly created_at: string | null;
  readonly finished_at: string | null;
}

export interface ListedBatch {
  readonly batch_id: string;
  readonly status: string;
  readonly created_at: string;
  readonly finished_at: string | null;
}

interface Counts {
  readonly total: number;
  readonly completed: number;
  readonly failed: number;
  readonly running: number;
}

/**
 * One workflow over many items. A batch is an execution with one `map`, whose items are child executions: what it may have
 * under way, what has become of each item and what happens when a process dies is all the map's.
 */
export class Batches {
  readonly #submissions: Submissions;
  readonly #commands: Commands;
  readonly #executions: Executions;
  readonly #reader: ExecutionReader;
  readonly #payloads: Payloads;
  readonly #paging: Paging;

  constructor(parts: {
    readonly submissions: Submissions;
    readonly commands: Commands;
    readonly executions: Executions;
    readonly reader: ExecutionReader;
    readonly payloads: Payloads;
    readonly paging: Paging;
  }) {
    this.#submissions = parts.submissions;
    this.#commands = parts.commands;
    this.#executions = parts.executions;
    this.#reader = parts.reader;
    this.#payloads = parts.payloads;
    this.#paging = parts.paging;
  }

  /** Whether an item fits is judged when its turn comes: one that does not is an item that failed. */
  async create(
    caller: Caller,
    { workflow, version, items, concurrency, labels = {} }: BatchRequest,
  ): Promise<{ readonly batch_id: string; readonly status: "RUNNING"; readonly total: number }> {
    const { name, hash } = await this.#submissions.named(workflow, version);
    items.forEach((item, i) => void sizedInput(item, MAX_INPUT_BYTES, `/items/${i}`));
    const of: BatchOf = { workflow: name, definition: hash, concurrency };
    const id = await this.#submissions.startUnnamed(caller, "batch", batchDefinition(of), {
      input: { items },
      labels: { ...labels, ...BATCH_LABEL },
    });
    return { batch_id: id, status: "RUNNING", total: items.length };
  }

  /** Newest first. */
  async list(page: PageRequest): Promise<PageOf<ListedBatch>> {
    const { items, ...rest } = await this.#executions.list({ labels: BATCH_LABEL }, page);
    const shown = items.flatMap(({ execution_id: batch_id, status: stands, batch_status, created_at, finished_at }) => {
      // One that has gone meanwhile, or is none: an earlier release let anybody give the label.
      const status = stands === "COMPLETED" ? batch_status : stands;
      return status === undefined ? [] : [{ batch_id, status, created_at, finished_at }];
    });
    return { items: shown, ...rest };
  }

  async get(id: string): Promise<ShownBatch> {
    const seen = await this.#read(id, (state, of) => ({
      of,
      status: batchStatus(state)!,
      generation: state.generation,
      labels: state.labels ?? {},
      created_at: iso(state.createdAtMs),
      finished_at: iso(state.endedAtMs),
      isEnded: state.isEnded,
      counts: countsOf(state),
      parts: openParts(state),
    }));
    const { of, isEnded, parts, ...shown } = seen;
    let counts = seen.counts ?? { total: await this.#given(id), completed: 0, failed: 0, running: 0 };
    for (const part of parts) {
      const within = await this.#reader.find(part, ({ state }) => countsOf(state));
      if (within !== undefined && within !== null) counts = { ...added(counts, within), total: counts.total };
    }
    const { total, completed, failed } = counts;
    const running = isEnded ? 0 : counts.running;
    const left = total - completed - failed - running;
    const { labels } = shown;
    return {
      batch_id: id,
      workflow: of.workflow,
      workflow_definition_id: of.definition,
      status: shown.status,
      generation: shown.generation,
      concurrency: of.concurrency,
      total,
      completed,
      failed,
      running,
      pending: isEnded ? 0 : left,
      cancelled: isEnded ? left : 0,
      labels: Object.fromEntries(Object.entries(labels).filter(([name]) => !Object.hasOwn(BATCH_LABEL, name))),
      created_at: shown.created_at,
      finished_at: shown.finished_at,
    };
  }

  /** Items in their order, with what has become of each. */
  async items(id: string, status: ItemStatus | undefined, { limit, cursor }: PageRequest): Promise<string> {
    const list = `batch items ${id} ${status ?? ""}`;
    const from = Number((await this.#paging.open(list, cursor)) ?? 0);
    const { total } = await this.get(id);
    const texts: string[] = [];
    let next = from;
    while (next < total && texts.length < limit) {
      const page = await this.#itemsFrom(id, next, total, limit - texts.length, status);
      texts.push(...page.texts);
      next = page.next;
    }
    const sealed = await this.#paging.seal(list, next < total ? String(next) : undefined);
    return `{"items":[${texts.join(",")}],"next_cursor":${JSON.stringify(sealed)}}`;
  }

  /** Ends it, and the executions of its items that run. */
  async cancel(caller: Caller, id: string): Promise<Json> {
    await this.#read(id, () => undefined);
    return ofBatch(await this.#commands.cancel(caller, id));
  }

  /** Tries again what failed or was cancelled; what completed stays. */
  async retry(caller: Caller, id: string): Promise<Json> {
    await this.#read(id, () => undefined);
    return ofBatch(await this.#commands.retry(caller, id, {}));
  }

  /** Some of the items from one on: those that the same execution has, the batch itself or a part of it. */
  async #itemsFrom(
    id: string,
    from: number,
    total: number,
    limit: number,
    status: ItemStatus | undefined,
  ): Promise<{ readonly texts: readonly string[]; readonly next: number }> {
    const place = await this.#read(id, (state) => {
      const map = mapOf(state);
      if (map?.chunked !== true) return { holder: id, first: 0, count: total, untold: untoldOpen(state) };
      const part = Math.floor(from / PART_ITEMS);
      const child = state.runs[map.base + part]?.child?.execution ?? null;
      const untold = untoldIn(state, map.base + part);
      return { holder: child, first: part * PART_ITEMS, count: sizeOf(map, part), untold };
    });
    const { holder, first, count, untold } = place;
    const end = first + count;
    const look = (state: ExecutionState | undefined): { items: readonly Item[]; next: number } => {
      const items: Item[] = [];
      let index = from;
      for (; index < end && items.length < limit; index++) {
        const item = itemOf(state, index, first, untold);
        if (status === undefined || item.status === status) items.push(item);
      }
      return { items, next: index };
    };
    // A part that has not begun, or whose execution is gone, has nothing to tell of its items: the batch does.
    const seen = holder === null ? undefined : await this.#reader.find(holder, ({ state }) => look(state));
    const { items, next } = seen ?? look(undefined);
    const payloads = items.map(({ payload }) => payload);
    const outputs = await this.#payloads.show(holder ?? id, payloads);
    const texts = items.map(({ head }, i) => `${JSON.stringify(head).slice(0, -1)},"output":${outputs[i]}}`);
    return { texts, next };
  }

  /** How many items it was given, for as long as it has not looked at them itself. */
  async #given(id: string): Promise<number> {
    const input = JSON.parse(await this.#executions.input(id)) as { readonly items?: Json } | null;
    return Array.isArray(input?.items) ? input.items.length : 0;
  }

  async #read<Seen>(id: string, look: (state: ExecutionState, of: BatchOf) => Seen): Promise<Seen> {
    if (!isExecutionId(id)) throw notFound("batch", id);
    const seen = await this.#reader.find(id, ({ state }) => {
      const of = batchOf(state);
      return of === undefined ? undefined : { looked: look(state, of) };
    });
    if (seen === undefined) throw notFound("batch", id);
    return seen.looked;
  }
}

/** A batch is an execution, and is called by its own name. */
function ofBatch(answer: Json): Json {
  const { execution_id: batch_id, ...rest } = answer as JsonObject;
  return { batch_id: batch_id!, ...rest };
}

/** Its items are handed over as data, so nothing in them is taken for a template. */
function batchDefinition(of: BatchOf): JsonObject {
  const { workflow, definition, concurrency } = of;
  return {
    name: `${workflow.slice(0, 120).toWellFormed()}${BATCH_NAME}`,
    timeout_seconds: 0,
    dlq: "none",
    "x-millrace-batch": { ...of },
    // Items that failed can be tried again although the whole has completed.
    "x-millrace-part": true,
    nodes: [
      {
        id: ITEMS,
        handler: "map",
        config: {
          items: "{{ input.items }}",
          handler: "workflow",
          config: { name: workflow, version: definition, input: "{{ item }}" },
          max_concurrency: concurrency,
          tolerated_failures: "100%",
          collect: false,
        },
      },
    ],
  };
}

function mapOf(state: ExecutionState): ReturnType<ExecutionState["maps"]["get"]> {
  return state.maps.get(state.plan.graph.indexOf.get(ITEMS)!);
}

/** Of a batch, or of a part of one; null before its items are known. What runs in open parts is not in it. */
function countsOf(state: ExecutionState): Counts | null {
  const map = mapOf(state);
  if (map === undefined) return null;
  const { total, failures } = map;
  const running = state.isEnded ? 0 : map.open;
  if (!map.chunked) return { total, completed: map.completed, failed: map.failed, running };
  let completed = 0;
  for (let place = 0; place < map.count; place++) {
    const unit = map.base + place;
    if (state.statusOf(unit) === "completed") completed += sizeOf(map, place) - (state.runs[unit]?.failures ?? 0);
  }
  return { total, completed, failed: failures, running: 0 };
}

/** The executions of the parts that run. */
function openParts(state: ExecutionState): readonly string[] {
  const map = mapOf(state);
  if (map?.chunked !== true) return [];
  const parts: string[] = [];
  for (let unit = map.base; unit < map.base + map.count; unit++) {
    const child = state.runs[unit]?.child;
    if (child && !state.isNodeEnded(unit)) parts.push(child.execution);
  }
  return parts;
}

function added(one: Counts, other: Counts): Counts {
  return {
    total: one.total,
    completed: one.completed + other.completed,
    failed: one.failed + other.failed,
    running: one.running + other.running,
  };
}

interface Item {
  readonly status: ItemStatus;
  readonly head: JsonObject;
  readonly payload: Payload;
}

/** What a batch itself says of items, where no execution that has them tells. */
interface Untold {
  readonly status: ItemStatus;
  readonly error: Json;
}

/** As it counts those that have not ended. */
function untoldOpen(state: ExecutionState): Untold {
  return { status: state.isEnded ? "CANCELLED" : "PENDING", error: null };
}

/** As it counts those of a part, of which it keeps how many failed and not which. */
function untoldIn(state: ExecutionState, unit: number): Untold {
  const stands = state.statusOf(unit);
  if (stands !== "completed" && stands !== "failed") return untoldOpen(state);
  const { failures, error } = state.runs[unit]!;
  if (stands === "failed") return { status: "FAILED", error: error === null ? null : shownError(error) };
  if (failures === 0) return { status: "COMPLETED", error: null };
  const map = state.mapOf(unit);
  return { status: failures === sizeOf(map, unit - map.base) ? "FAILED" : "UNKNOWN", error: null };
}

function itemOf(state: ExecutionState | undefined, index: number, first: number, untold: Untold): Item {
  const map = state === undefined ? undefined : mapOf(state);
  if (state === undefined || map === undefined) {
    const head = { index, status: untold.status, execution_id: null, error: untold.error };
    return { status: untold.status, head, payload: { value: null, href: "" } };
  }
  const unit = map.base + index - first;
  const { status: stands, output, error, child } = viewNode(state, unit);
  const status = asCounted(stands === "WAITING" ? "RUNNING" : (stands as ItemStatus), untold.status);
  const head = { index, status, execution_id: child ?? null, error: error === null ? null : shownError(error) };
  const href = child === undefined ? "" : `/v1/executions/${child}/output`;
  return { status, head, payload: { value: output, href } };
}

/** A part may not have heard yet that its batch was cancelled, or is tried again. */
function asCounted(inPart: ItemStatus, untold: ItemStatus): ItemStatus {
  if (untold === "CANCELLED" && (inPart === "PENDING" || inPart === "RUNNING")) return "CANCELLED";
  return untold === "PENDING" && inPart === "CANCELLED" ? "PENDING" : inPart;
}
