import { entityId, entityKind } from "../../core/entity.ts";
import { labelList } from "../../core/execution/label-listing.ts";
import { placeInPart } from "../../core/execution/maps.ts";
import { upstreamFailed } from "../../core/execution/reopen.ts";
import type { ExecutionStatus, NodeStatus } from "../../core/execution/moves.ts";
import type { ExecutionState } from "../../core/execution/state.ts";
import { viewNode } from "../../core/execution/view.ts";
import type { Labels } from "../../core/message.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Header, HeaderClass, Page, Store } from "../../store/contract.ts";
import { MAX_WHOLE_OUTPUT_BYTES } from "../limits.ts";
import { BATCH_NAME, batchStatus } from "./batch-status.ts";
import type { Definitions } from "./definitions.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { type AnswerDraft, draftExecution, draftNode, draftOutput, iso, isoTime, nodeHref } from "./execution-view.ts";
import { Lru } from "./lru.ts";
import type { PageOf, PageRequest, Paging } from "./paging.ts";
import { type Payloads, sizeOf } from "./payloads.ts";
import { notFound, Refusal } from "./refusal.ts";
import { SharedLook } from "./shared-look.ts";
import { isName } from "./submissions.ts";

/** The states of an execution, as clients name them, and how lists of the store class them. */
export const STATUSES = {
  PENDING: "open",
  RUNNING: "open",
  PAUSED: "open",
  COMPLETED: "endedWell",
  PARTIAL: "endedBadly",
  FAILED: "endedBadly",
  CANCELLED: "endedBadly",
} as const satisfies Readonly<Record<Uppercase<Exclude<ExecutionStatus, "new">>, HeaderClass>>;

/** Those of a node. */
export const NODE_STATUSES = [
  "PENDING",
  "QUEUED",
  "RUNNING",
  "WAITING",
  "COMPLETED",
  "FAILED",
  "SKIPPED",
  "CANCELLED",
] as const satisfies readonly Uppercase<NodeStatus>[];

export type Status = keyof typeof STATUSES;

export interface ListedExecution {
  readonly execution_id: string;
  readonly workflow: string;
  readonly status: string;
  /** Of a batch that has completed: what it came to by its items. */
  readonly batch_status?: string;
  readonly created_at: string;
  readonly finished_at: string | null;
}

export interface ExecutionFilter {
  readonly status?: Status | undefined;
  readonly workflow?: string | undefined;
  readonly sinceMs?: number | undefined;
  /** All of them. */
  readonly labels?: Labels | undefined;
}

const MAX_OUTCOMES = 10_000;

/** Executions as they are read. Texts are JSON, written once and kept while nothing changes. */
export class Executions {
  readonly #store: Store;
  readonly #reader: ExecutionReader;
  readonly #definitions: Definitions;
  readonly #payloads: Payloads;
  readonly #paging: Paging;
  /** Pages that somebody waits for, by what was asked. */
  readonly #pages = new Map<string, SharedLook<PageOf<ListedExecution>>>();
  /** What batches came to, by id and time of their end. */
  readonly #outcomes = new Lru<string>(MAX_OUTCOMES);

  constructor(parts: {
    readonly store: Store;
    readonly reader: ExecutionReader;
    readonly definitions: Definitions;
    readonly payloads: Payloads;
    readonly paging: Paging;
  }) {
    this.#store = parts.store;
    this.#reader = parts.reader;
    this.#definitions = parts.definitions;
    this.#payloads = parts.payloads;
    this.#paging = parts.paging;
  }

  /** Newest first. Whoever asks for the same page at the same time shares a look at it. */
  async list(filter: ExecutionFilter, page: PageRequest): Promise<PageOf<ListedExecution>> {
    const asked = JSON.stringify([filter, page]);
    const look = this.#pages.get(asked) ?? new SharedLook(() => this.#list(filter, page));
    this.#pages.set(asked, look);
    try {
      return await look.ask();
    } finally {
      if (look.isIdle) this.#pages.delete(asked);
    }
  }

  async #list(filter: ExecutionFilter, page: PageRequest): Promise<PageOf<ListedExecution>> {
    const { status, workflow, sinceMs, labels } = filter;
    const [label] = Object.entries(labels ?? {});
    if (workflow !== undefined && !isName(workflow)) return { items: [], next_cursor: null };
    const { items, ...rest } = await this.#paging.page(
      `executions ${JSON.stringify(filter)}`,
      page,
      (query) =>
        label !== undefined
          ? this.#labelled(labelList(...label), filter, query)
          : this.#store.queries.headers({
              ...query,
              ...(status !== undefined && { class: STATUSES[status] }),
              ...(workflow !== undefined && { workflow }),
              ...(sinceMs !== undefined && { sinceMs }),
            }),
      (header) => (header !== null && passes(header, filter) ? showHeader(header) : undefined),
    );
    const shown: ListedExecution[] = [];
    // One by one: a page of large batches is not to be in memory at once.
    for (const item of items) shown.push(isEndedBatch(item) ? await this.#withOutcome(item) : item);
    return { items: shown, ...rest };
  }

  /** Lists of the store do not know what a batch came to by its items; it is read once. */
  async #withOutcome(item: ListedExecution): Promise<ListedExecution> {
    const { execution_id: id, finished_at } = item;
    const end = `${id} ${finished_at}`;
    const known = this.#outcomes.get(end);
    if (known !== undefined) return { ...item, batch_status: known };
    const seen = await this.#readable(id, (state) => ({ status: batchStatus(state), endedAt: iso(state.endedAtMs) }));
    if (seen?.status === undefined) return item;
    if (seen.endedAt === finished_at) this.#outcomes.set(end, seen.status, 1);
    return { ...item, batch_status: seen.status };
  }

  /** undefined if it was removed meanwhile, or cannot be read: then it is shown as the store lists it. */
  async #readable<Seen>(id: string, look: (state: ExecutionState) => Seen): Promise<Seen | undefined> {
    try {
      return await this.#reader.find(id, ({ state }) => look(state));
    } catch (error) {
      const code = error instanceof MillraceError ? error.code : undefined;
      if (code === "NOT_FOUND" || code === "EXECUTION_UNREADABLE") return undefined;
      throw error;
    }
  }

  /** Those of one label, which tells the others too; what else is asked for stands in their headers. */
  async #labelled(
    list: string,
    { labels = {}, sinceMs = 0 }: ExecutionFilter,
    query: { readonly limit: number; readonly cursor?: string },
  ): Promise<Page<Header | null>> {
    const { items, cursor, ...gap } = await this.#store.queries.listing({ ...query, list });
    const wanted = Object.entries(labels);
    const headers = items.map(async ({ entity, text }) => {
      const own = JSON.parse(text) as Labels;
      if (wanted.some(([name, value]) => own[name] !== value)) return null;
      return this.#store.queries.header(this.#reader.partition(entity), entity);
    });
    // Nobody is on the list before he was created, and it goes back in time.
    const isOver = items.length > 0 && items.at(-1)!.atMs < sinceMs;
    return { items: await Promise.all(headers), cursor: isOver ? null : cursor, ...gap };
  }

  async get(id: string): Promise<string> {
    const seen = await this.#reader.read(id, ({ state, answer, keepAnswer }) => {
      const known = answer("execution");
      if (known !== undefined) return known;
      const { hash } = state.plan;
      const version = this.#definitions.knownVersion(hash);
      return version === undefined ? { hash } : { draft: draftExecution(state, version), keepAnswer };
    });
    if (typeof seen === "string") return seen;
    if ("hash" in seen) {
      // Once for each definition: its number stays the same for ever.
      const version = await this.#definitions.versionOf(seen.hash);
      const draft = await this.#reader.read(id, ({ state }) => draftExecution(state, version));
      return draft.compose(await this.#payloads.show(id, draft.payloads));
    }
    const text = seen.draft.compose(await this.#payloads.show(id, seen.draft.payloads));
    seen.keepAnswer("execution", text);
    return text;
  }

  /** One node or item with its whole output, however large. The items of a large map are in its parts. */
  async node(id: string, name: string): Promise<string> {
    const seen = await this.#reader.read(id, ({ state }) => {
      const unit = state.unitOf(name);
      if (unit !== undefined) return draftNode(state, unit);
      const place = placeInPart(state, name);
      if (place === undefined) throw notFound("node", name);
      const part = state.runs[place.unit]?.child?.execution;
      // While a part has not been called, its items are in the same state as the part itself.
      return part === undefined ? draftNode(state, place.unit, undefined, name) : { part, item: place.name };
    });
    if ("compose" in seen) return this.#nodeText(id, seen);
    const { part, item } = seen;
    const draft = await this.#reader.find(part, ({ state }) => {
      const unit = state.unitOf(item);
      return unit === undefined ? undefined : draftNode(state, unit, undefined, name);
    });
    if (draft !== undefined) return this.#nodeText(part, draft);
    const detail = `"${name}" is "${item}" of the execution ${part}, a part of the map: that has not begun, or is removed.`;
    throw new Refusal("NOT_FOUND", { what: "node", id: name }, { detail });
  }

  async #nodeText(id: string, draft: AnswerDraft): Promise<string> {
    return draft.compose([await this.#payloads.text(id, draft.payloads[0]!.value)]);
  }

  async input(id: string): Promise<string> {
    return this.#payloads.text(id, await this.#reader.read(id, ({ state }) => state.input));
  }

  /** The definition that it runs: it stays, also when nobody has published it, or its name was deleted. */
  async definition(id: string): Promise<string> {
    const hash = await this.#reader.read(id, ({ state }) => state.plan.hash);
    const definition = await this.#definitions.get(hash);
    if (definition === undefined) throw new MillraceError("EXECUTION_UNREADABLE", { id });
    return definition.text;
  }

  async output(id: string): Promise<string> {
    const draft = await this.#reader.read(id, ({ state }) => draftOutput(state));
    const values = draft.payloads.map(({ value }) => value);
    const bytes = values.reduce((sum, value) => sum + (value === null ? 0 : sizeOf(value)), 0);
    if (bytes > MAX_WHOLE_OUTPUT_BYTES) throw outputTooLarge(id);
    return draft.compose(await this.#payloads.texts(id, values));
  }

  /** The nodes of an execution in the order of its definition. */
  async nodes(id: string, status: string | undefined, { limit, cursor }: PageRequest): Promise<string> {
    const list = `nodes ${id} ${status ?? ""}`;
    const from = Number((await this.#paging.open(list, cursor)) ?? 0);
    const { drafts, next } = await this.#reader.read(id, ({ state }) => {
      const spared = upstreamFailed(state);
      const { nodeCount } = state.plan.graph;
      const found: number[] = [];
      let node = from;
      for (; node < nodeCount && found.length < limit; node++) {
        if (status === undefined || viewNode(state, node, spared).status === status) found.push(node);
      }
      return {
        drafts: found.map((unit) => draftNode(state, unit, spared)),
        next: node < nodeCount ? String(node) : undefined,
      };
    });
    const payloads = drafts.flatMap((draft) => draft.payloads);
    const texts = await this.#payloads.show(id, payloads);
    const items = drafts.map((draft, i) => draft.compose([texts[i]!]));
    return `{"items":[${items.join(",")}],"next_cursor":${JSON.stringify(await this.#paging.seal(list, next))}}`;
  }
}

/** By its name: whoever else is called like that is read in vain. */
function isEndedBatch({ status, workflow }: ListedExecution): boolean {
  return status === "COMPLETED" && workflow.endsWith(BATCH_NAME);
}

function outputTooLarge(id: string): Refusal {
  const limitBytes = MAX_WHOLE_OUTPUT_BYTES;
  const detail = `The output is larger than ${limitBytes / 1_048_576} MiB as a whole. Read it node by node: ${nodeHref(id, "")}{node}`;
  return new Refusal("PAYLOAD_TOO_LARGE", { what: "The output", limitBytes }, { detail });
}

function passes(header: Header, { status, workflow, sinceMs = 0 }: ExecutionFilter): boolean {
  if (status !== undefined && header.status !== status) return false;
  return (workflow === undefined || header.workflow === workflow) && header.createdAtMs >= sinceMs;
}

function showHeader({ entity, workflow, status, createdAtMs, endedAtMs }: Header): ListedExecution | undefined {
  if (entityKind(entity) !== "execution") return undefined;
  return {
    execution_id: entityId(entity),
    workflow,
    status,
    created_at: isoTime(createdAtMs),
    finished_at: iso(endedAtMs),
  };
}
