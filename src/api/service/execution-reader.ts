import { setImmediate as nextTurn } from "node:timers/promises";
import { executionMachine } from "../../core/execution/machine.ts";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { ExecutionState } from "../../core/execution/state.ts";
import { partitionOf } from "../../core/entity.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { JsonObject } from "../../json/json.ts";
import type { JournalRecord, Store } from "../../store/contract.ts";
import { snapshotText } from "../../store/snapshot-text.ts";
import { MAX_CACHED_CHARS, SLICE_MS } from "../limits.ts";
import type { Definitions } from "./definitions.ts";
import { executionKey, isExecutionId } from "./ids.ts";
import { Lru } from "./lru.ts";
import { notFound } from "./refusal.ts";

interface Folded {
  readonly state: ExecutionState;
  /** Of what it was folded from. */
  chars: number;
  /** Answers made of it, by what they answer; good for one version. */
  readonly answers: Map<string, string>;
  answersOf: number;
  /** When it was known last to be the one that the store has. */
  knownAtMs: number;
}

/** Within this time an open one hardly ends, is removed for want of room, and is there again under its id. */
const KNOWN_MS = 1_000;

/** From so many events on a tail is read in parts of so many characters. */
const LONG_TAIL = 2_000;
const MAX_TAIL_CHARS = 1024 * 1024;

/** What of an execution is looked at. `answer` keeps a text that follows from this version alone. */
export interface Look {
  readonly state: ExecutionState;
  readonly answer: (of: string) => string | undefined;
  readonly keepAnswer: (of: string, text: string) => void;
}

/** Somebody who wants to look at an execution. */
interface Reading {
  readonly look: (look: Look) => void;
  readonly failed: (error: unknown) => void;
}

/**
 * Executions as any process can read them: folds of their journals. The last ones stay in memory; every read of these asks
 * the store for the version first, so that it sees at least what was committed before it began, and folds only the tail.
 */
export class ExecutionReader {
  readonly #store: Store;
  readonly #definitions: Definitions;
  readonly #cache = new Lru<Folded>(MAX_CACHED_CHARS);
  /** Who waits for the next look at an execution, while one is under way: what that finds may be older than their question. */
  readonly #next = new Map<string, Reading[]>();

  constructor(store: Store, definitions: Definitions) {
    this.#store = store;
    this.#definitions = definitions;
  }

  partition(entity: string): number {
    return partitionOf(entity, this.#store.capabilities.partitionCount);
  }

  /**
   * Looks at an execution as it stands. `look` must not wait: the state moves on with the next read. An unknown one is
   * an error.
   */
  async read<Seen>(id: string, look: (look: Look) => Seen): Promise<Seen> {
    if (!isExecutionId(id)) throw notFound("execution", id);
    return new Promise((resolve, reject) => {
      const reading: Reading = { look: (seen) => resolve(look(seen)), failed: reject };
      const next = this.#next.get(id);
      if (next === undefined) void this.#serve(id, reading);
      else next.push(reading);
    });
  }

  /** The same of an execution that need not be there. */
  async find<Seen>(id: string, look: (look: Look) => Seen): Promise<Seen | undefined> {
    return (await this.#isThere(id)) ? this.read(id, look) : undefined;
  }

  /** Throws if there is no such execution. Whether it can be read is another question. */
  async require(id: string): Promise<void> {
    if (!isExecutionId(id) || !(await this.#isThere(id))) throw notFound("execution", id);
  }

  async #isThere(id: string): Promise<boolean> {
    const entity = executionKey(id);
    return (await this.#store.journal.watch(this.partition(entity), entity, 0, 0)) > 0;
  }

  /** One refresh for all who asked before it began, so that many who watch the same do not wait for each other. */
  async #serve(id: string, first: Reading): Promise<void> {
    for (let group: readonly Reading[] = [first]; group.length > 0; group = this.#next.get(id)!) {
      this.#next.set(id, []);
      try {
        const folded = await this.#refresh(id);
        // Before the next refresh begins: the state moves on with it.
        for (const reading of group) this.#show(id, folded, reading);
      } catch (error) {
        for (const { failed } of group) failed(error);
      }
    }
    this.#next.delete(id);
  }

  #show(id: string, folded: Folded, { look, failed }: Reading): void {
    const { state, answers } = folded;
    const { version } = state;
    try {
      look({
        state,
        answer: (of) => (folded.answersOf === version ? answers.get(of) : undefined),
        keepAnswer: (of, text) => {
          // Made while somebody else read on: it is not worth keeping.
          if (state.version !== version) return;
          if (folded.answersOf !== version) answers.clear();
          folded.answersOf = version;
          answers.set(of, text);
          this.#cache.set(id, folded, folded.chars + text.length);
        },
      });
    } catch (error) {
      failed(error);
    }
  }

  async #refresh(id: string): Promise<Folded> {
    const entity = executionKey(id);
    // What is not in memory is read whole, whatever its version.
    const cached = this.#cache.get(id);
    const [version, isSame] =
      cached === undefined
        ? [undefined, false]
        : await Promise.all([
            this.#store.journal.watch(this.partition(entity), entity, 0, 0),
            this.#isSame(entity, cached),
          ]);
    if (version === 0) {
      this.#cache.delete(id);
      throw notFound("execution", id);
    }
    if (isSame && cached!.state.version === version) return cached!;
    try {
      const isBehind = isSame && cached!.state.version < version!;
      const folded = isBehind ? await this.#foldTail(id, cached!, version!) : await this.#fold(id);
      this.#cache.set(id, folded, folded.chars);
      return folded;
    } catch (error) {
      // Half folded is worse than not at all.
      this.#cache.delete(id);
      throw error;
    }
  }

  /** Whether it is still that execution: what has ended is removed in time, and a key that is used again gives its id to another. */
  async #isSame(entity: string, cached: Folded): Promise<boolean> {
    const { state, knownAtMs } = cached;
    const nowMs = performance.now();
    if (!state.isEnded && nowMs - knownAtMs < KNOWN_MS) return true;
    const header = await this.#store.queries.header(this.partition(entity), entity);
    if (header?.createdAtMs !== state.createdAtMs) return false;
    cached.knownAtMs = nowMs;
    return true;
  }

  /** Tells executions apart that have the same id one after the other; undefined if it was not read of late. */
  createdAtMs(id: string): number | undefined {
    return this.#cache.get(id)?.state.createdAtMs;
  }

  /** At least up to a version. A long tail comes in parts: what of it has been folded is not needed any more. */
  async #foldTail(id: string, folded: Folded, version: number): Promise<Folded> {
    const entity = executionKey(id);
    const { state } = folded;
    do {
      const before = state.version;
      const isLong = version - before > LONG_TAIL;
      const [loaded] = await this.#store.journal.load([
        {
          partition: this.partition(entity),
          entity,
          aboveVersion: before,
          ...(isLong && { maxChars: MAX_TAIL_CHARS }),
        },
      ]);
      folded.chars += await fold(state, loaded!.records);
      // It is gone, or somebody has taken events back: whoever comes next notices.
      if (state.version === before) break;
    } while (state.version < version);
    return folded;
  }

  async #fold(id: string): Promise<Folded> {
    const entity = executionKey(id);
    const request = { partition: this.partition(entity), entity };
    const [loaded] = await this.#store.journal.load([request]);
    const { snapshot } = loaded!;
    const text =
      snapshot?.format === executionMachine.snapshotFormat
        ? await snapshotText(this.#store.records, entity, snapshot.text)
        : null;
    if (text !== null) {
      const plan = await this.#plan(
        id,
        unreadable(id, () => executionMachine.definitionOfSnapshot(text)),
      );
      const state = unreadable(id, () => executionMachine.restore(id, plan, text));
      return newlyFolded(state, text.length + (await fold(state, loaded!.records)));
    }
    const records = snapshot === null ? loaded!.records : await this.events(id, 0);
    const first = records[0] === undefined ? undefined : (JSON.parse(records[0].text) as ExecutionEvent[])[0];
    if (first === undefined) throw notFound("execution", id);
    const state = executionMachine.create(id, await this.#plan(id, executionMachine.definitionOf(first)));
    return newlyFolded(state, await fold(state, records));
  }

  /** The journal above a version; the first record may begin before it. */
  async events(id: string, above: number): Promise<readonly JournalRecord[]> {
    const entity = executionKey(id);
    const [loaded] = await this.#store.journal.load([
      { partition: this.partition(entity), entity, aboveVersion: above },
    ]);
    return loaded!.records;
  }

  async #plan(id: string, hash: string | undefined): Promise<unknown> {
    const definition = hash === undefined ? undefined : await this.#definitions.get(hash);
    if (definition === undefined) throw new MillraceError("EXECUTION_UNREADABLE", { id });
    return unreadable(id, () => definition.plan);
  }
}

function newlyFolded(state: ExecutionState, chars: number): Folded {
  return { state, chars, answers: new Map(), answersOf: 0, knownAtMs: performance.now() };
}

/** An execution in few words, as a refusal that is about it carries it. */
export function standing(state: ExecutionState): JsonObject {
  return { execution_id: state.id, status: state.status.toUpperCase(), generation: state.generation };
}

/** Folds what is beyond the state's version, in slices: a history of 100,000 events keeps nobody else waiting. */
async function fold(state: ExecutionState, records: readonly JournalRecord[]): Promise<number> {
  let chars = 0;
  let sliceMs = performance.now();
  for (const record of records) {
    chars += record.text.length;
    if (record.format > executionMachine.eventFormat) throw new MillraceError("EXECUTION_UNREADABLE", { id: state.id });
    unreadable(state.id, () => {
      const events = JSON.parse(record.text) as ExecutionEvent[];
      for (const event of events.slice(Math.max(0, state.version + 1 - record.version))) {
        executionMachine.evolve(state, event);
      }
    });
    if (performance.now() - sliceMs < SLICE_MS) continue;
    await nextTurn();
    sliceMs = performance.now();
  }
  return chars;
}

/** A journal of a newer release, or one that was tampered with: that execution cannot be shown, all others can. */
function unreadable<Result>(id: string, work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    throw new MillraceError("EXECUTION_UNREADABLE", { id }, { cause });
  }
}
