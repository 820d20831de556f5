import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import type { InputMark } from "./batch-input.ts";
import type { Segment, SegmentSize } from "./segments.ts";

/** What a batch is, written down when it begins. */
export interface BatchHead {
  /** Names its segments to the server: the same one sent again is the same. */
  readonly batch: string;
  readonly workflow: string;
  readonly version: string;
  readonly input: InputMark;
  readonly total: number;
  readonly lanes: number;
  readonly each: number;
  readonly size: SegmentSize;
}

export interface Outcome {
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
}

/** A segment that somebody has begun with. */
export interface Begun {
  readonly segment: Segment;
  id?: string;
  /** What became of it, once its results are written. */
  outcome?: Outcome;
  /** How often what failed of it was to be tried again. */
  retries: number;
}

type Entry =
  | { readonly kind: "head"; readonly head: BatchHead }
  | { readonly kind: "planned"; readonly segment: Segment }
  | { readonly kind: "posted"; readonly number: number; readonly id: string }
  | { readonly kind: "written"; readonly number: number; readonly outcome: Outcome }
  | { readonly kind: "again"; readonly number: number };

function entriesOf(file: string, texts: readonly string[]): readonly Entry[] {
  try {
    return texts.map((text) => JSON.parse(text) as Entry);
  } catch {
    throw notOurs(file);
  }
}

function notOurs(file: string): Failure {
  return new Failure(EXIT.usage, `${file} does not tell how far a batch is.`, {
    hint: "remove it, or write over it with --fresh",
  });
}

/**
 * How far a batch has come, one line for each step, beside its results: whoever runs it again goes on from there. It
 * grows with the number of segments, not of items.
 */
export class BatchLog {
  readonly head: BatchHead;
  readonly begun: Begun[] = [];
  readonly #file: string;

  private constructor(file: string, head: BatchHead) {
    this.#file = file;
    this.head = head;
  }

  static begin(file: string, head: BatchHead): BatchLog {
    writeFileSync(file, line({ kind: "head", head }));
    return new BatchLog(file, head);
  }

  /** Undefined if there is none. A last line that was cut off is as if it had not been written. */
  static read(file: string): BatchLog | undefined {
    if (!existsSync(file)) return undefined;
    const texts = readFileSync(file, "utf8").split("\n");
    texts.pop();
    const [first, ...rest] = entriesOf(file, texts);
    if (first === undefined) return undefined;
    if (first.kind !== "head") throw notOurs(file);
    const log = new BatchLog(file, first.head);
    // What was cut off must not stand before what comes next.
    writeFileSync(file, texts.map((text) => `${text}\n`).join(""));
    for (const entry of rest) log.#apply(entry);
    return log;
  }

  /** Everything that was planned is written, and nothing is left to plan. */
  get isComplete(): boolean {
    return this.planned.from === this.head.total && this.begun.every(({ outcome }) => outcome !== undefined);
  }

  /** Where the next segment begins. */
  get planned(): { readonly number: number; readonly from: number; readonly start: number } {
    const last = this.begun.at(-1)?.segment;
    if (last === undefined) return { number: 0, from: 0, start: 0 };
    return { number: last.number + 1, from: last.from + last.count, start: last.end };
  }

  plan(segment: Segment): Begun {
    this.#add({ kind: "planned", segment });
    return this.begun.at(-1)!;
  }

  posted({ segment }: Begun, id: string): void {
    this.#add({ kind: "posted", number: segment.number, id });
  }

  written({ segment }: Begun, outcome: Outcome): void {
    this.#add({ kind: "written", number: segment.number, outcome });
  }

  again({ segment }: Begun): void {
    this.#add({ kind: "again", number: segment.number });
  }

  #add(entry: Entry): void {
    appendFileSync(this.#file, line(entry));
    this.#apply(entry);
  }

  #apply(entry: Entry): void {
    if (entry.kind === "head") return;
    if (entry.kind === "planned") return void this.begun.push({ segment: entry.segment, retries: 0 });
    const begun = this.begun[entry.number]!;
    if (entry.kind === "posted") begun.id = entry.id;
    else if (entry.kind === "written") begun.outcome = entry.outcome;
    else {
      delete begun.outcome;
      begun.retries++;
    }
  }
}

function line(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`;
}
