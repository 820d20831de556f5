import { shownDuration } from "../../drawing/states.ts";
import type { Terminal } from "../call.ts";

export interface BatchCounts {
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly running: number;
}

const LINE_EVERY_MS = 5_000;

/** How a batch goes on, on stderr: a line that is drawn over, or off a terminal one now and then. */
export class BatchProgress {
  readonly #terminal: Terminal;
  readonly #total: number;
  readonly #beganAtMs = performance.now();
  /** Done before this process began: they say nothing about how fast it is. */
  #before: number;
  #saidAtMs = -Infinity;
  #said = "";

  constructor(terminal: Terminal, total: number, before: number) {
    this.#terminal = terminal;
    this.#total = total;
    this.#before = before;
  }

  /** These were done before this process began, as it turned out. */
  without(count: number): void {
    this.#before += count;
  }

  show(counts: BatchCounts): void {
    const nowMs = performance.now();
    const text = progressText(this.#total, counts, doneOf(counts) - this.#before, nowMs - this.#beganAtMs);
    if (this.#terminal.isLive) return this.#terminal.err(`\r${text.slice(0, this.#terminal.columns - 1)}\u001b[K`);
    if (nowMs - this.#saidAtMs < LINE_EVERY_MS || text === this.#said) return;
    this.#saidAtMs = nowMs;
    this.#said = text;
    this.#terminal.err(`${new Date().toISOString()} ${text}\n`);
  }

  end(): void {
    if (this.#terminal.isLive) this.#terminal.err("\r\u001b[K");
  }
}

function doneOf({ completed, failed, cancelled }: BatchCounts): number {
  return completed + failed + cancelled;
}

/** `412/1000 completed 411 failed 1 running 100 52.3/s ETA 11s` */
export function progressText(total: number, counts: BatchCounts, done: number, elapsedMs: number): string {
  const rate = elapsedMs > 0 ? (done / elapsedMs) * 1_000 : 0;
  const left = total - doneOf(counts);
  const parts = [
    `${doneOf(counts)}/${total}`,
    `completed ${counts.completed}`,
    ...(counts.failed > 0 ? [`failed ${counts.failed}`] : []),
    ...(counts.cancelled > 0 ? [`cancelled ${counts.cancelled}`] : []),
    `running ${counts.running}`,
    `${rate.toFixed(1)}/s`,
    ...(left > 0 && rate > 0 ? [`ETA ${shownDuration(Math.ceil(left / rate) * 1_000)}`] : []),
  ];
  return parts.join(" ");
}
