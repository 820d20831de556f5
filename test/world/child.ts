import { appendFileSync } from "node:fs";
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import type { Listening } from "./client.ts";

const ROOT = join(import.meta.dirname, "..", "..");

export interface ChildOptions {
  /** What the sources are patched by. */
  readonly hook: string;
  /** A program of ours, and what it is told. */
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** A file for all that it says. */
  readonly transcript?: string;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export const BIN: string = join(ROOT, "bin", "millrace.js");

/** A program of ours as a process of its own, from patched sources. */
export class Child implements Listening {
  listenedAt: number | undefined;
  /** Where it listens; empty if it says that it has started, and not where; undefined if it ends before. */
  readonly url: Promise<string | undefined>;
  readonly exited: Promise<Exit>;
  exit: Exit | undefined;
  /** What it has said that somebody should look at. */
  readonly complaints: string[] = [];
  readonly #process: ChildProcess;

  constructor({ hook, args, cwd, env, transcript }: ChildOptions) {
    this.#process = spawn(process.execPath, ["--import", hook, ...args], {
      cwd,
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        PATH: process.env["PATH"],
        HOME: process.env["HOME"],
        // Patched sources must not push the real ones out of the cache that everybody shares.
        NODE_COMPILE_CACHE: join(ROOT, "node_modules", ".cache", "millrace-crash"),
        ...env,
      },
    });
    const { promise: url, resolve } = Promise.withResolvers<string | undefined>();
    this.url = url;
    this.#listen(resolve);
    if (transcript !== undefined) this.#transcribe(transcript);
    this.exited = new Promise((done, reject) => {
      this.#process.on("error", reject);
      this.#process.on("close", (code, signal) => {
        this.exit = { code, signal };
        resolve(undefined);
        done(this.exit);
      });
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  kill(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  #transcribe(file: string): void {
    for (const stream of [this.#process.stdout!, this.#process.stderr!]) {
      stream.on("data", (text: string) => appendFileSync(file, text));
    }
  }

  #listen(listens: (url: string) => void): void {
    let rest = "";
    this.#process.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (/"level":"(?:warn|error|fatal)"/.test(line)) this.complaints.push(line);
        if (!line.includes('"msg":"started"')) continue;
        this.listenedAt = Number(process.hrtime.bigint()) / 1e6;
        listens(/"url":"(http:[^"]+)"/.exec(line)?.[1] ?? "");
      }
    });
    this.#process.stderr!.setEncoding("utf8").on("data", (text: string) => this.complaints.push(text));
  }
}
