import type { JsonObject } from "../json/json.ts";

/** What reads pictures: a worker of tesseract.js, in a thread of its own. */
export interface OcrEngine {
  recognize(
    image: Uint8Array,
    options: object,
    output: { readonly text: true; readonly blocks: true },
  ): Promise<{ readonly data: Recognized }>;
  terminate(): Promise<unknown>;
}

interface Recognized {
  readonly text: string;
  /** Of 100. */
  readonly confidence: number;
  readonly blocks: readonly { readonly paragraphs: readonly { readonly lines: readonly Line[] }[] }[] | null;
}

interface Line extends JsonObject {
  readonly text: string;
  readonly confidence: number;
}

export interface Page extends JsonObject {
  readonly text: string;
  /** From 0 to 1. */
  readonly confidence: number;
  readonly lines: readonly Line[];
}

/** The memory of an engine grows with every page, and never shrinks: after so many it is replaced by another. */
const PAGES_PER_ENGINE = 50;

interface Seat {
  readonly languages: string;
  readonly engine: OcrEngine;
  pages: number;
}

/** A few engines that many calls share. One that was stopped in the middle, or failed, is not used again. */
export class OcrPool {
  readonly #slots: number;
  readonly #start: (languages: readonly string[]) => Promise<OcrEngine>;
  readonly #idle: Seat[] = [];
  readonly #waiting: (() => void)[] = [];
  #busy = 0;
  #isClosed = false;

  constructor(slots: number, start: (languages: readonly string[]) => Promise<OcrEngine>) {
    this.#slots = slots;
    this.#start = start;
  }

  /** Undefined if this is no picture that can be read. */
  async read(languages: readonly string[], image: Uint8Array, signal: AbortSignal): Promise<Page | undefined> {
    await this.#enter(signal);
    try {
      const seat = await this.#seat(languages);
      // Nothing can ask an engine to stop, so its thread is ended.
      const stop = (): void => void seat.engine.terminate();
      signal.addEventListener("abort", stop, { once: true });
      try {
        const page = await recognized(seat.engine, image, signal);
        if (page === undefined || ++seat.pages >= PAGES_PER_ENGINE || this.#isClosed) await seat.engine.terminate();
        else this.#idle.push(seat);
        return page;
      } finally {
        signal.removeEventListener("abort", stop);
      }
    } finally {
      this.#busy--;
      this.#waiting.shift()?.();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#idle.splice(0).map(({ engine }) => engine.terminate()));
  }

  async #enter(signal: AbortSignal): Promise<void> {
    while (this.#busy >= this.#slots && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const leave = (): void => {
        const at = this.#waiting.indexOf(resolve);
        // Called already, and gone all the same: the turn is somebody else's.
        if (at < 0) this.#waiting.shift()?.();
        else this.#waiting.splice(at, 1);
        resolve();
      };
      this.#waiting.push(resolve);
      signal.addEventListener("abort", leave, { once: true });
      await promise;
      signal.removeEventListener("abort", leave);
    }
    signal.throwIfAborted();
    this.#busy++;
  }

  async #seat(languages: readonly string[]): Promise<Seat> {
    const name = languages.join("+");
    const at = this.#idle.findIndex((seat) => seat.languages === name);
    if (at >= 0) return this.#idle.splice(at, 1)[0]!;
    // Made for another language, and not needed now: there are never more than slots.
    if (this.#idle.length + this.#busy > this.#slots) await this.#idle.shift()?.engine.terminate();
    return { languages: name, engine: await this.#start(languages), pages: 0 };
  }
}

async function recognized(engine: OcrEngine, image: Uint8Array, signal: AbortSignal): Promise<Page | undefined> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
  // It may settle after the picture was read, when nobody waits for it.
  aborted.catch(() => {});
  try {
    const answer = engine.recognize(image, {}, { text: true, blocks: true });
    const { data } = await Promise.race([answer, aborted]);
    return pageOf(data);
  } catch (error) {
    if (signal.aborted) throw error;
    return undefined;
  }
}

function pageOf({ text, confidence, blocks }: Recognized): Page {
  const lines = (blocks ?? []).flatMap(({ paragraphs }) => paragraphs.flatMap((paragraph) => paragraph.lines));
  return {
    text: text.trimEnd(),
    confidence: share(confidence),
    lines: lines.map((line) => ({ text: line.text.trimEnd(), confidence: share(line.confidence) })),
  };
}

function share(percent: number): number {
  return Math.round(percent * 100) / 10_000;
}
