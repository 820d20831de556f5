import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** A program of this folder, run as the real thing: a process of its own that can be killed. */
export class Child {
  readonly process: ChildProcess;
  readonly #exited: Promise<unknown>;
  #output = "";
  #errors = "";

  constructor(program: string, ...args: readonly string[]) {
    this.process = spawn(process.execPath, [join(import.meta.dirname, program), ...args]);
    this.#exited = once(this.process, "close");
    this.process.stdout!.on("data", (chunk: Buffer) => (this.#output += chunk.toString()));
    this.process.stderr!.on("data", (chunk: Buffer) => (this.#errors += chunk.toString()));
  }

  /** What it has said so far, line by line; the last one may be cut off by its end. */
  get lines(): readonly string[] {
    return this.#output.split("\n").slice(0, -1);
  }

  get errors(): string {
    return this.#errors;
  }

  /** Waits until it has said something that fits, or fails when it ends without. */
  async until(fits: (line: string) => boolean): Promise<string> {
    let read = 0;
    for (;;) {
      for (; read < this.lines.length; read++) if (fits(this.lines[read]!)) return this.lines[read]!;
      const ended = this.#exited.then(() => "ended" as const);
      const next = await Promise.race([once(this.process.stdout!, "data"), ended]);
      if (next === "ended" && read === this.lines.length) throw new Error(`it ended: ${this.#errors}`);
    }
  }

  /** Answers its exit code, or null if a signal ended it. */
  async exit(): Promise<number | null> {
    await this.#exited;
    return this.process.exitCode;
  }

  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.#exited;
  }
}
