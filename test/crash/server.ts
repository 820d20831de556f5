import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { RETENTION_DAYS } from "../world/history.ts";
import { LEDGER_VARIABLE, PLAN_VARIABLE } from "../world/plan.ts";
import type { CrashPlan } from "./crash-plan.ts";

const ROOT = join(import.meta.dirname, "..", "..");

export interface ServerOptions {
  readonly folder: string;
  /** By the clock that all processes share. */
  readonly startedAt: number;
  readonly clockMs: number;
  readonly death?: CrashPlan["death"];
  readonly mutant?: string | undefined;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The files of a world. */
export function filesOf(folder: string): { readonly store: string; readonly log: string; readonly ledger: string } {
  return { store: join(folder, "store.db"), log: join(folder, "log"), ledger: join(folder, "ledger") };
}

/** `bin/millrace serve` as a process of its own, with a store on disk, that dies where it is told to. */
export class Server {
  readonly startedAt: number;
  readonly clockMs: number;
  listenedAt: number | undefined;
  /** Resolves with undefined if it ends before it listens. */
  readonly url: Promise<string | undefined>;
  readonly exited: Promise<Exit>;
  exit: Exit | undefined;
  /** What it has said that somebody should look at. */
  readonly complaints: string[] = [];
  readonly #process: ChildProcess;

  constructor({ folder, startedAt, clockMs, death, mutant }: ServerOptions) {
    this.startedAt = startedAt;
    this.clockMs = clockMs;
    const { store, log, ledger } = filesOf(folder);
    const plan: CrashPlan = {
      log,
      clockMs,
      ...(death !== undefined && { death }),
      ...(mutant !== undefined && { mutant }),
    };
    this.#process = spawn(
      process.execPath,
      [
        "--import",
        join(import.meta.dirname, "hook.ts"),
        join(ROOT, "bin", "millrace.js"),
        "serve",
        "--port",
        "0",
        "--store",
        `sqlite:${store}`,
        "--handlers",
        join(import.meta.dirname, "..", "world", "handlers.ts"),
        "--concurrency",
        "16",
        "--grace",
        "0.2",
        "--retention-days",
        String(RETENTION_DAYS),
      ],
      {
        cwd: folder,
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: process.env["PATH"],
          HOME: process.env["HOME"],
          // Patched sources must not push the real ones out of the cache that everybody shares.
          NODE_COMPILE_CACHE: join(ROOT, "node_modules", ".cache", "millrace-crash"),
          [PLAN_VARIABLE]: JSON.stringify(plan),
          [LEDGER_VARIABLE]: ledger,
        },
      },
    );
    const { promise: url, resolve } = Promise.withResolvers<string | undefined>();
    this.url = url;
    this.#listen(resolve);
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

  kill(signal: "SIGTERM" | "SIGKILL"): void {
    this.#process.kill(signal);
  }

  #listen(listens: (url: string) => void): void {
    let rest = "";
    this.#process.stdout!.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) {
        if (/"level":"(?:warn|error|fatal)"/.test(line)) this.complaints.push(line);
        const url = /"url":"(http:[^"]+)"/.exec(line)?.[1];
        if (url === undefined) continue;
        this.listenedAt = Number(process.hrtime.bigint()) / 1e6;
        listens(url);
      }
    });
    this.#process.stderr!.setEncoding("utf8").on("data", (text: string) => this.complaints.push(text));
  }
}
