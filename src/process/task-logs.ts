import type { ExecutionEvent } from "../core/execution/events.ts";
import type { TaskText } from "../core/execution/prepare.ts";
import { entityKey } from "../core/entity.ts";
import { parseToken } from "../core/token.ts";
import type { Host } from "../host/host.ts";
import type { JsonObject } from "../json/json.ts";
import type { JournalRecord, Store } from "../store/contract.ts";
import type { LogEntry } from "../worker/delivery.ts";
import type { WorkerObserver } from "../worker/worker.ts";

/** A line that a handler has logged, or where it threw what. */
export interface LogLine {
  readonly at: string;
  readonly level?: "error";
  readonly message: string;
  readonly fields?: JsonObject;
}

/** One delivery of one attempt. */
export interface Attempt {
  readonly execution: string;
  readonly generation: number;
  readonly instance: string;
  readonly attempt: number;
  readonly delivery: number;
}

/** What is kept of one delivery: the beginning, with a last line that says it was cut. */
const MAX_LINES = 500;
const MAX_CHARS = 64 * 1024;
/** How often what a handler logs is written while it runs. */
const FLUSH_MS = 1_000;
/** Deliveries of which lines are held at a time. */
const MAX_HELD = 10_000;

interface Held {
  readonly lines: LogLine[];
  count: number;
  chars: number;
  /** How many parts of it are written. */
  parts: number;
  /** The next part, of which nobody knows whether it was: it is written again as it was, since what is there stays as it is. */
  unsure: string | undefined;
  timer: NodeJS.Timeout | undefined;
  isWriting: boolean;
}

/**
 * Keeps what handlers log with the execution they ran for, in parts: a record is never changed, so each flush writes the
 * next. They go when the execution goes. Best effort: a log that cannot be written holds up nothing.
 */
export class TaskLogs {
  readonly #store: Store;
  readonly #host: Host;
  readonly #held = new Map<string, Held>();
  readonly #writing = new Set<Promise<unknown>>();

  constructor(store: Store, host: Host) {
    this.#store = store;
    this.#host = host;
  }

  /** Most tasks log nothing, and each of them is settled. */
  readonly observer: Required<Pick<WorkerObserver, "logged" | "settled">> = {
    logged: (task, entry) => this.#add(task, entry),
    settled: ({ token }) => {
      if (this.#held.size > 0) this.#forget(token);
    },
  };

  /** What is held is written, and what is being written is waited for. */
  async close(): Promise<void> {
    for (const token of this.#held.keys()) this.#flush(token);
    await Promise.allSettled(this.#writing);
  }

  #add({ token }: TaskText, { level, message, fields }: LogEntry): void {
    let held = this.#held.get(token);
    if (held === undefined) {
      if (this.#held.size >= MAX_HELD) this.#forget(this.#held.keys().next().value!);
      held = { lines: [], count: 0, chars: 0, parts: 0, unsure: undefined, timer: undefined, isWriting: false };
      this.#held.set(token, held);
    }
    const at = new Date(this.#host.wallMs()).toISOString();
    // There is one for each delivery, and it is what somebody will look for.
    if (level !== undefined) held.lines.push({ at, level, message });
    else if (held.count > MAX_LINES || held.chars > MAX_CHARS) return;
    else {
      const line: LogLine = { at, message, ...(fields !== undefined && { fields }) };
      held.chars += JSON.stringify(line).length;
      const isLast = ++held.count > MAX_LINES || held.chars > MAX_CHARS;
      held.lines.push(isLast ? { at, message: "… what was logged after this is not kept" } : line);
    }
    held.timer ??= setTimeout(() => this.#flush(token), FLUSH_MS);
  }

  /** It is over; or, of those that were lost and are never settled, so old that others need the room. */
  #forget(token: string): void {
    this.#flush(token);
    this.#held.delete(token);
  }

  #flush(token: string): void {
    const held = this.#held.get(token);
    const place = held === undefined ? undefined : parseToken(token);
    if (held === undefined || place === undefined) return;
    clearTimeout(held.timer);
    held.timer = undefined;
    // Whoever writes goes on with what has come meanwhile.
    if (held.isWriting) return;
    const writing = this.#write(held, place);
    this.#writing.add(writing);
    void writing.finally(() => this.#writing.delete(writing));
  }

  /**
   * One part after the other: whoever reads them stops at the first that is not there. What could not be written is tried again before
   * what comes next; what comes last is tried once.
   */
  async #write(held: Held, place: Attempt): Promise<void> {
    held.isWriting = true;
    while (held.unsure !== undefined || held.lines.length > 0) {
      held.unsure ??= JSON.stringify(held.lines.splice(0));
      const key = { scope: entityKey("execution", place.execution), hash: partKey(place, held.parts) };
      try {
        await this.#store.records.put([{ ...key, text: held.unsure }]);
      } catch {
        break;
      }
      held.unsure = undefined;
      held.parts++;
    }
    held.isWriting = false;
  }
}

/** The lines that were kept of some attempts, in the order of the attempts. */
export async function readLogs(
  store: Store,
  attempts: readonly Attempt[],
): Promise<readonly { readonly attempt: Attempt; readonly lines: readonly LogLine[] }[]> {
  const found = attempts.map((attempt) => ({ attempt, lines: [] as LogLine[] }));
  let open = found;
  for (let part = 0; open.length > 0; part++) {
    const texts: (string | null)[] = [];
    for (let i = 0; i < open.length; i += CHUNK) {
      const keys = open.slice(i, i + CHUNK).map(({ attempt }) => ({
        scope: entityKey("execution", attempt.execution),
        hash: partKey(attempt, part),
      }));
      texts.push(...(await store.records.get(keys)));
    }
    for (const [i, text] of texts.entries()) if (text !== null) open[i]!.lines.push(...(JSON.parse(text) as LogLine[]));
    // Most attempts have logged nothing, and few more than one part.
    open = open.filter((_, i) => texts[i] !== null);
  }
  return found.filter(({ lines }) => lines.length > 0);
}

/** Under which names lines may be kept of the deliveries that a journal tells of. */
export function logNames(records: readonly JournalRecord[]): readonly ((part: number) => string)[] {
  const names: ((part: number) => string)[] = [];
  let generation = 1;
  for (const event of records.flatMap(({ text }) => JSON.parse(text) as ExecutionEvent[])) {
    if (event.kind === "generationOpened") generation = event.generation;
    if (event.kind !== "taskDispatched") continue;
    const { node, round, attempt, delivery } = event;
    const place = { generation, instance: round === undefined ? node : `${node}@${round}`, attempt, delivery };
    names.push((part) => partKey(place, part));
  }
  return names;
}

/** Records asked for at a time. */
const CHUNK = 500;

function partKey({ generation, instance, attempt, delivery }: Omit<Attempt, "execution">, part: number): string {
  return `log ${generation} ${instance} ${attempt} ${delivery} ${part}`;
}
