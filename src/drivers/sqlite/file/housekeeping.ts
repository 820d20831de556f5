import type { FileWriter } from "./writer.ts";

/** Nobody has asked for anything this long: time for what nobody waits for. Some of it is done at least every second. */
const IDLE_MS = 20;
const SECOND_MS = 1000;

/** What the writer's thread does by itself: finishes purges, makes the file smaller, looks after disk and file. */
export class Housekeeping {
  readonly #writer: FileWriter;
  readonly #tellFull: (isFull: boolean) => void;
  readonly #looking: NodeJS.Timeout;
  #tidying: NodeJS.Timeout | undefined;
  #tidiedAtMs = performance.now();
  #isFull = false;
  #hasLostFile = false;

  constructor(writer: FileWriter, tellFull: (isFull: boolean) => void) {
    this.#writer = writer;
    this.#tellFull = tellFull;
    this.#look();
    this.#looking = setInterval(() => this.#look(), SECOND_MS);
  }

  /** The file has no name any more: what is written to it is lost. */
  get hasLostFile(): boolean {
    return this.#hasLostFile;
  }

  /** Somebody has been served. */
  postpone(): void {
    clearTimeout(this.#tidying);
    const isLate = performance.now() - this.#tidiedAtMs > SECOND_MS;
    this.#tidying = setTimeout(() => this.#tidy(), isLate ? 0 : IDLE_MS);
  }

  stop(): void {
    clearTimeout(this.#tidying);
    clearInterval(this.#looking);
  }

  #tidy(): void {
    this.#tidiedAtMs = performance.now();
    // A disk without room is no reason to end: who writes next hears of it, and this is tried again after that.
    if (isTrue(() => this.#writer.tidy())) this.#tidying = setTimeout(() => this.#tidy(), 0);
  }

  #look(): void {
    this.#hasLostFile = isTrue(() => this.#writer.hasLostFile());
    const isFull = isTrue(() => this.#writer.isNearlyFull());
    if (isFull !== this.#isFull) this.#tellFull(isFull);
    this.#isFull = isFull;
  }
}

/** false also if it cannot be found out. */
function isTrue(question: () => boolean): boolean {
  try {
    return question();
  } catch {
    return false;
  }
}
