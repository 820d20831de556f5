import { join } from "node:path";
import { BIN, Child } from "../world/child.ts";
import { RETENTION_DAYS } from "../world/history.ts";
import { LEDGER_VARIABLE, PLAN_VARIABLE } from "../world/plan.ts";
import type { CrashPlan } from "./crash-plan.ts";

export interface ServerOptions {
  readonly folder: string;
  /** By the clock that all processes share. */
  readonly startedAt: number;
  readonly clockMs: number;
  readonly death?: CrashPlan["death"];
  readonly mutant?: string | undefined;
}

/** The files of a world. */
export function filesOf(folder: string): { readonly store: string; readonly log: string; readonly ledger: string } {
  return { store: join(folder, "store.db"), log: join(folder, "log"), ledger: join(folder, "ledger") };
}

/** `bin/millrace serve` as a process of its own, with a store on disk, that dies where it is told to. */
export class Server extends Child {
  readonly startedAt: number;
  readonly clockMs: number;

  constructor({ folder, startedAt, clockMs, death, mutant }: ServerOptions) {
    const { store, log, ledger } = filesOf(folder);
    const plan: CrashPlan = {
      log,
      clockMs,
      ...(death !== undefined && { death }),
      ...(mutant !== undefined && { mutant }),
    };
    super({
      hook: join(import.meta.dirname, "hook.ts"),
      args: [
        BIN,
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
      cwd: folder,
      env: { [PLAN_VARIABLE]: JSON.stringify(plan), [LEDGER_VARIABLE]: ledger },
    });
    this.startedAt = startedAt;
    this.clockMs = clockMs;
  }
}
