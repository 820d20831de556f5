import { closeSync, existsSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";

/** From this size on the file is written anew with what is out. */
const REWRITTEN_BYTES = 1024 * 1024;

/**
 * Which tasks the workers of this process have, in a file beside the store that is there while the process is. Who finds it
 * at its start knows that the process before died, and from then on writes down what it gives out: so a task that kills
 * its process is lost like that of any worker that dies, and is poison in the end.
 *
 * Never synced, and only written after a death: what a machine loses with its power is no task's fault.
 */
export class TasksOut {
  /** What the process before had when it died. */
  readonly lost: Set<string>;
  readonly #file: string;
  /** null as long as nobody has died. */
  readonly #out: Set<string> | null;
  #handle: number;
  #bytes = 0;

  constructor(file: string) {
    this.#file = file;
    const isLeft = existsSync(file);
    this.lost = new Set(isLeft ? outOf(readFileSync(file, "utf8")) : []);
    this.#out = isLeft ? new Set(this.lost) : null;
    this.#handle = openSync(file, "w");
    if (this.lost.size > 0) this.#write("+", [...this.lost]);
  }

  given(tokens: readonly string[]): void {
    if (this.#out === null || tokens.length === 0) return;
    for (const token of tokens) this.#out.add(token);
    this.#write("+", tokens);
  }

  returned(tokens: readonly string[]): void {
    const known = tokens.filter((token) => this.#out?.delete(token));
    if (known.length > 0) this.#write("-", known);
  }

  /** What was lost and is not yet told stays for whoever tells it: not everybody who opens a store runs it. */
  close(): void {
    closeSync(this.#handle);
    if (this.lost.size === 0) rmSync(this.#file, { force: true });
  }

  #write(sign: "+" | "-", tokens: readonly string[]): void {
    try {
      this.#append(sign, tokens);
    } catch {
      // A full disk must not keep anybody from working; what is not noted is put back as if nothing had happened.
    }
  }

  #append(sign: "+" | "-", tokens: readonly string[]): void {
    if (this.#bytes > REWRITTEN_BYTES) {
      closeSync(this.#handle);
      this.#handle = openSync(this.#file, "w");
      this.#bytes = 0;
      return this.#append("+", [...this.#out!]);
    }
    this.#bytes += writeSync(this.#handle, tokens.map((token) => `${sign}${token}\n`).join(""));
  }
}

function outOf(text: string): readonly string[] {
  const out = new Set<string>();
  for (const line of text.split("\n")) {
    if (line.startsWith("+")) out.add(line.slice(1));
    else out.delete(line.slice(1));
  }
  return [...out];
}
