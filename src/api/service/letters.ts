import type { DiscardLetter, Retry } from "../../core/message.ts";
import { entityId, entityKind } from "../../core/entity.ts";
import { isReopened } from "../../core/execution/letters.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import { canonicalHash } from "../../json/canonical.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import type { DeadLetter, Incomplete, Store } from "../../store/contract.ts";
import { MAX_BULK_REPLAYS, MAX_REPLAYS_PER_SECOND } from "../limits.ts";
import type { Caller } from "./caller.ts";
import type { CommandId, Decisions } from "./decisions.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { executionKey, isExecutionId, keyedId } from "./ids.ts";
import { KeptAnswers } from "./kept-answers.ts";
import type { PageOf, PageRequest, Paging } from "./paging.ts";
import { notFound, Refusal } from "./refusal.ts";

export interface LetterFilter {
  readonly queue?: string | undefined;
  readonly class?: "poison" | "exhausted" | undefined;
  readonly execution_id?: string | undefined;
  readonly status?: "open" | "replayed" | undefined;
}

/** A dead letter as clients see it. */
export interface ShownLetter {
  readonly id: string;
  readonly class: "poison" | "exhausted";
  readonly queue: string;
  readonly execution_id: string | null;
  readonly generation: number | null;
  readonly node_id: string | null;
  readonly handler: string | null;
  readonly attempts: number;
  readonly error: Json;
  readonly config: Json;
  readonly original_message_id: string;
  readonly rejected_at: string;
  readonly status: "open" | "replayed";
}

/** How many were replayed, and which could not be. */
export interface Replayed {
  readonly count: number;
  readonly errors?: readonly JsonObject[];
  /** Only if some that pass the filter may have been missed. */
  readonly incomplete?: Incomplete;
}

/** Another config for a node of an execution, checked; undefined if there is nothing to check it by. */
export type EditCheck = (execution: string, node: string, config: JsonObject) => Promise<JsonObject | undefined>;

interface Collected {
  readonly found: readonly DeadLetter[];
  readonly gap: Pick<Replayed, "incomplete">;
}

const PAGE = 500;

/** The dead letters: looked at here, replayed and thrown away by the owners of their executions. */
export class Letters {
  readonly #store: Store;
  readonly #host: Host;
  readonly #decisions: Decisions;
  readonly #reader: ExecutionReader;
  readonly #paging: Paging;
  readonly #checked: EditCheck;
  readonly #answers: KeptAnswers<Replayed>;

  constructor(parts: {
    readonly store: Store;
    readonly host: Host;
    readonly decisions: Decisions;
    readonly reader: ExecutionReader;
    readonly paging: Paging;
    /** Tells another config for a node as it would be stored, or what is wrong with it. */
    readonly checked: EditCheck;
  }) {
    this.#store = parts.store;
    this.#host = parts.host;
    this.#decisions = parts.decisions;
    this.#reader = parts.reader;
    this.#paging = parts.paging;
    this.#checked = parts.checked;
    this.#answers = new KeptAnswers(parts.store, parts.host);
  }

  list(filter: LetterFilter, page: PageRequest): Promise<PageOf<ShownLetter>> {
    return this.#paging.page(
      `dlq ${JSON.stringify(filter)}`,
      page,
      async (query) => {
        const { items, ...rest } = await this.#store.queries.deadLetters({ ...query, ...storeFilter(filter) });
        return { items: await this.#shown(items), ...rest };
      },
      (shown) => (filter.status === undefined || shown.status === filter.status ? shown : undefined),
    );
  }

  async get(id: string): Promise<ShownLetter> {
    const [shown] = await this.#shown([await this.#find(id)]);
    return shown!;
  }

  /** The store knows of replays. Of what a retry has opened again only the executions do: it is dealt with, too. */
  async #shown(letters: readonly DeadLetter[]): Promise<readonly ShownLetter[]> {
    const shown = letters.map(showLetter);
    const open = letters.filter((letter, i) => shown[i]!.status === "open" && isOfNode(letter));
    const byExecution = Map.groupBy(open, ({ entity }) => entity);
    const reopened = new Set<string>();
    // One after the other: a page may be of hundreds of executions, and any of them may be large.
    for (const [entity, own] of byExecution) for (const id of await this.#reopened(entity, own)) reopened.add(id);
    return shown.map((letter) => (reopened.has(letter.id) ? { ...letter, status: "replayed" } : letter));
  }

  async #reopened(entity: string, letters: readonly DeadLetter[]): Promise<readonly string[]> {
    const header = await this.#store.queries.header(this.#reader.partition(entity), entity);
    const hasGoneOn = letters.some(({ atMs }) => header?.endedAtMs !== atMs);
    // Most ended with what left the letter, and nobody has touched them since: that needs no fold.
    if (header === null || !hasGoneOn) return [];
    const ids = letters.map(({ id }) => id);
    try {
      return await this.#reader.read(entityId(entity), ({ state }) => ids.filter((id) => isReopened(state, id)));
    } catch (error) {
      // It was removed meanwhile, or cannot be read: its letters are shown as they were written.
      const code = error instanceof MillraceError ? error.code : undefined;
      if (code === "NOT_FOUND" || code === "EXECUTION_UNREADABLE") return [];
      throw error;
    }
  }

  /** A new generation of its execution, which opens that node again; with another config if one is given. */
  async replay(caller: Caller, id: string, config?: JsonObject): Promise<Json> {
    const letter = await this.#find(id);
    const execution = executionOf(letter);
    if (!isOfNode(letter)) {
      const detail = `${id} tells why ${execution} is in quarantine, where no node can run again: release it, or cancel it.`;
      throw new Refusal("NOT_RETRYABLE", { id: execution }, { detail });
    }
    if (config === undefined) return this.#replay(caller, execution, [letter], `dlq/${id}/retry`);
    const node = showLetter(letter).node_id ?? "";
    if (node === "" || node.includes("[")) {
      const reason = "Only the config of a node can be changed: this letter is of an item, which has that of its map";
      throw new MillraceError("BAD_REQUEST", { reason });
    }
    const edit = { from: node, config: (await this.#checked(execution, node, config)) ?? config };
    return this.#replay(caller, execution, [letter], `dlq/${id}/retry`, edit);
  }

  /** Every letter that passes the filter, oldest last; those of one execution make one generation. */
  async replayAll(caller: Caller, filter: LetterFilter, limit: number, dryRun: boolean): Promise<Replayed> {
    const letters = (): Promise<Collected> =>
      this.#collect({ ...filter, status: "open" }, Math.min(limit, MAX_BULK_REPLAYS));
    const answer = async (): Promise<Replayed> => {
      const { found, gap } = await letters();
      return dryRun ? { count: found.length, ...gap } : this.#replayEach(caller, { found, gap });
    };
    const { key, tenant } = caller;
    if (key === undefined) return answer();
    const id = keyedId(tenant, "dlq/retry", key);
    const body = canonicalHash([filter as Json, limit, ...(dryRun ? ["dry_run"] : [])]);
    return this.#answers.once(id, body, answer);
  }

  async #replayEach(caller: Caller, { found, gap }: Collected): Promise<Replayed> {
    const byExecution = new Map<string, DeadLetter[]>();
    for (const letter of found) {
      const execution = entityId(letter.entity);
      byExecution.set(execution, [...(byExecution.get(execution) ?? []), letter]);
    }
    let count = 0;
    const errors: JsonObject[] = [];
    const beganAtMs = this.#host.monotonicMs();
    let done = 0;
    for (const [execution, own] of byExecution) {
      // What failed together must not come back together.
      const dueMs = beganAtMs + (done++ * 1_000) / MAX_REPLAYS_PER_SECOND - this.#host.monotonicMs();
      if (dueMs > 0) await this.#host.sleep(dueMs);
      try {
        await this.#replay(caller, execution, own, `dlq/retry/${execution}`);
        count += own.length;
      } catch (error) {
        // One that cannot be replayed now must not keep the others from it.
        if (!(error instanceof MillraceError) || error.kind === "unavailable") throw error;
        errors.push({ execution_id: execution, code: error.code, message: error.message });
      }
    }
    return { count, ...(errors.length > 0 && { errors }), ...gap };
  }

  async discard(caller: Caller, id: string): Promise<void> {
    const letter = await this.#find(id);
    const make = (command: CommandId): DiscardLetter => ({ kind: "discardLetter", ...command, letter: id });
    if (isOfNode(letter)) await this.#decisions.command(caller, executionOf(letter), `dlq/${id}`, {}, make);
    else await this.#decisions.about(caller, letter.entity, make);
  }

  #replay(
    caller: Caller,
    execution: string,
    letters: readonly DeadLetter[],
    route: string,
    edit: { readonly from?: string; readonly config?: JsonObject } = {},
  ): Promise<Json> {
    const named = letters.map(({ id, class: kind, queue, text }) => ({ id, class: kind, queue, text }));
    return this.#decisions.command(caller, execution, route, [letters.map(({ id }) => id), edit], (command): Retry => ({
      kind: "retry",
      ...command,
      scope: "letters",
      letters: named,
      ...edit,
    }));
  }

  async #collect(filter: LetterFilter, limit: number): Promise<Collected> {
    const found: DeadLetter[] = [];
    let gap: Collected["gap"] = {};
    let cursor: string | undefined;
    do {
      const query = { limit: PAGE, ...(cursor !== undefined && { cursor }), ...storeFilter(filter) };
      const page = await this.#store.queries.deadLetters(query);
      const shown = await this.#shown(page.items);
      for (const [i, letter] of page.items.entries()) {
        const isOpen = isOfNode(letter) && shown[i]!.status === filter.status;
        if (isOpen && found.length < limit) found.push(letter);
      }
      if (page.incomplete !== undefined) gap = { incomplete: page.incomplete };
      cursor = page.cursor ?? undefined;
    } while (cursor !== undefined && found.length < limit);
    return { found, gap };
  }

  async #find(id: string): Promise<DeadLetter> {
    const isId = id.length <= 512 && !/\p{Cc}/u.test(id) && id.isWellFormed();
    const letter = isId ? await this.#store.queries.deadLetter(id) : null;
    if (letter === null) throw notFound("dead letter", id);
    return letter;
  }
}

/** Others tell of what could not be read or decided at all: there is no node to run again. */
function isOfNode({ id, entity }: DeadLetter): boolean {
  return entityKind(entity) === "execution" && id.startsWith(`${entityId(entity)}:`);
}

/** What the engine could not even read belongs to no execution, so there is nobody to replay it. */
function executionOf({ id, entity }: DeadLetter): string {
  if (entityKind(entity) !== "execution") throw notFound("execution behind the dead letter", id);
  return entityId(entity);
}

function storeFilter({ queue, class: kind, execution_id: execution }: LetterFilter): {
  queue?: string;
  class?: "poison" | "exhausted";
  entity?: string;
} {
  return {
    ...(queue !== undefined && { queue }),
    ...(kind !== undefined && { class: kind }),
    // An id that cannot be is looked for under a name that nothing has.
    ...(execution !== undefined && { entity: executionKey(isExecutionId(execution) ? execution : keyedId("nobody")) }),
  };
}

function showLetter({ id, class: kind, queue, entity, atMs, text }: DeadLetter): ShownLetter {
  const told = JSON.parse(text) as Json;
  const {
    generation = null,
    node_id = null,
    handler = null,
    attempts = 0,
    error = null,
    config = null,
    original_message_id = id,
    // What the store sorts by is when it was last written: a replay writes it again.
    rejected_at_ms = atMs,
    status,
  } = isJsonObject(told) ? told : ({} as JsonObject);
  return {
    id,
    class: kind,
    queue,
    execution_id: entityKind(entity) === "execution" ? entityId(entity) : null,
    generation: generation as number | null,
    node_id: node_id as string | null,
    handler: handler as string | null,
    attempts: attempts as number,
    error,
    config,
    original_message_id: original_message_id as string,
    rejected_at: new Date(rejected_at_ms as number).toISOString(),
    status: status === "replayed" ? "replayed" : "open",
  };
}
