import { setTimeout as sleep } from "node:timers/promises";
import { type Output, outputOf, type Shape, sinksOf } from "./shapes.ts";

/** When a handler began and ended, in milliseconds that all processes of this machine share. */
export interface Stamp {
  readonly node: string;
  readonly startedMs: number;
  readonly endedMs: number;
}

/** What crosses from a process that runs handlers to the one that measures. */
export interface Progress {
  readonly sinks: number;
  readonly stamps: readonly Stamp[];
}

/** The clock of every process, comparable between them. */
export function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

/** The handler that every contender runs, and the count of what it has done. */
export class Probe {
  /** For whoever measures latencies; a stamp for every step would slow the rest. */
  readonly stamping: boolean;
  onSink: (() => void) | undefined;
  readonly #shape: Shape;
  readonly #sinks: ReadonlySet<string>;
  #sinkRuns = 0;
  #stamps: Stamp[] = [];
  #waiting: { readonly executions: number; readonly resolve: () => void }[] = [];

  constructor(shape: Shape, stamping: boolean) {
    this.stamping = stamping;
    this.#shape = shape;
    this.#sinks = sinksOf(shape);
  }

  get shape(): Shape {
    return this.#shape;
  }

  /** Executions whose last node has run. */
  get executions(): number {
    return Math.floor(this.#sinkRuns / this.#sinks.size);
  }

  reset(): void {
    this.#sinkRuns = 0;
    this.#stamps = [];
  }

  /** The stamps since they were last taken. */
  takeStamps(): readonly Stamp[] {
    const stamps = this.#stamps;
    this.#stamps = [];
    return stamps;
  }

  /** One step. Contenders whose handlers are given their inputs call this and nothing else. */
  step(node: string, inputs: Iterable<Output>): Output | Promise<Output> {
    if (!this.stamping && this.#shape.taskMs === 0) {
      const output = outputOf(inputs);
      this.#ended(node);
      return output;
    }
    return this.#stamped(node, inputs);
  }

  /** Executions of which nobody runs a node: those of a bare limit. */
  skip(executions: number): void {
    this.#sinkRuns += executions * this.#sinks.size;
    this.#wake();
  }

  /** Sinks that ran in another process. */
  add({ sinks, stamps }: Progress): void {
    this.#stamps.push(...stamps);
    this.#sinkRuns += sinks;
    this.#wake();
  }

  async until(executions: number): Promise<void> {
    if (this.executions >= executions) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ executions, resolve });
    await promise;
  }

  async #stamped(node: string, inputs: Iterable<Output>): Promise<Output> {
    const startedMs = nowMs();
    if (this.#shape.taskMs > 0) await sleep(this.#shape.taskMs);
    const output = outputOf(inputs);
    if (this.stamping) this.#stamps.push({ node, startedMs, endedMs: nowMs() });
    this.#ended(node);
    return output;
  }

  #ended(node: string): void {
    if (!this.#sinks.has(node)) return;
    this.#sinkRuns++;
    this.onSink?.();
    this.#wake();
  }

  #wake(): void {
    if (this.#waiting.length === 0) return;
    const { executions } = this;
    for (const one of this.#waiting) if (one.executions <= executions) one.resolve();
    this.#waiting = this.#waiting.filter((one) => one.executions > executions);
  }
}
