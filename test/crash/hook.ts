import { openSync, writeSync } from "node:fs";
import { registerHooks } from "node:module";
import { isMainThread } from "node:worker_threads";
import type { CommitBatch, CommitOutcome } from "../../src/store/contract.ts";
import type { TaskText } from "../../src/core/execution/prepare.ts";
import type { Json } from "../../src/json/json.ts";
import type { Handler, HandlerCall } from "../../src/worker/handler.ts";
import { failpointOf } from "./failpoints.ts";
import { instruments } from "./instruments.ts";
import { MUTANTS } from "./mutants.ts";
import type { NotedCommit, Told } from "./notes.ts";
import { type Patch, patched } from "./patch.ts";
import { type Plan, PLAN_VARIABLE } from "./plan.ts";

/**
 * Makes a process die where it is told to: `node --import ./test/crash/hook.ts bin/millrace.js …`, with a plan in the
 * environment. The failpoint, and what writes the history down, are put into the sources as they are loaded, in every
 * thread; production code has no switches.
 */
const plan = JSON.parse(process.env[PLAN_VARIABLE]!) as Plan;
const log = openSync(plan.log, "a");

/** By the clock that all processes of this machine share. */
function nowMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function tell(entry: DistributiveOmit<Told, "at" | "pid">): void {
  writeSync(log, `\n${JSON.stringify({ at: nowMs(), pid: process.pid, ...entry })}\n`);
}

type DistributiveOmit<All, Key extends PropertyKey> = All extends unknown ? Omit<All, Key> : never;

function withoutText<Item extends { readonly text: string }>(item: Item): Omit<Item, "text"> {
  const { text: _, ...rest } = item;
  return rest;
}

let hits = 0;

const millraceCrash = {
  nowMs,

  point(name: string): void {
    if (++hits !== plan.death!.hit) return;
    tell({ kind: "died", name });
    process.kill(process.pid, "SIGKILL");
    for (;;);
  },

  commitText(batch: CommitBatch): string {
    const { consumed: _, purge: __, snapshots, tasks, mail, listings = [], ...rest } = batch;
    return JSON.stringify({
      ...rest,
      snapshots: snapshots.map(withoutText),
      tasks: tasks.map(withoutText),
      mail: mail.map(({ text }) => text),
      listings: listings.map(({ list, id, text }) => ({ list, id, isOpen: text !== null })),
    } satisfies NotedCommit);
  },

  acknowledged(batches: readonly CommitBatch[], outcomes: readonly CommitOutcome[]): void {
    for (const [i, { fence, id }] of batches.entries()) {
      tell({ kind: "acknowledged", nonce: fence.nonce, seq: fence.seq, batch: id, outcome: outcomes[i]!.kind });
    }
  },

  /** Runs a handler, and tells what it was given and gave. */
  async run(worker: string, call: HandlerCall, handler: Handler): Promise<Json> {
    const { token, config, inputs } = call;
    tell({ kind: "handlerStart", worker, token, config, inputs });
    try {
      const output = await handler(call);
      tell({ kind: "handlerEnd", worker, token, output, failed: false });
      return output;
    } catch (error) {
      tell({ kind: "handlerEnd", worker, token, failed: true });
      throw error;
    }
  },

  seenByWorker(worker: string, event: string, [task, outcome]: readonly [TaskText, string]): void {
    if (event === "settled") tell({ kind: event, worker, token: task.token, outcome });
    if (event !== "delivered") return;
    const { token, execution, node, attempt, delivery, idempotencyKey } = task;
    tell({ kind: event, worker, token, execution, node, attempt, delivery, idempotencyKey });
  },
};

Object.assign(globalThis, { millraceCrash });

// Whoever started us is gone, and nobody else will end us.
const parent = process.ppid;
if (isMainThread) setInterval(() => process.ppid === parent || process.kill(process.pid, "SIGKILL"), 1_000).unref();

const byFile = Map.groupBy(patches(), ({ file }) => file);

registerHooks({
  load(url, context, next) {
    const file = url.split("/src/").at(-1)!;
    const own = byFile.get(file);
    if (own === undefined || !url.endsWith(`/src/${file}`)) return next(url, context);
    return { format: "module-typescript", source: patched(file, own), shortCircuit: true };
  },
});

function patches(): readonly Patch[] {
  const { death, mutant, clockMs } = plan;
  const bug = MUTANTS.find(({ name }) => name === mutant);
  if (mutant !== undefined && bug === undefined) throw new Error(`there is no mutant ${mutant}`);
  const failpoint = death === undefined ? undefined : failpointOf(death.name);
  if (death !== undefined && failpoint === undefined) throw new Error(`there is no failpoint ${death.name}`);
  // A bug first: it may move the place at which to die.
  return [...(bug?.patches ?? []), ...instruments(clockMs), ...(failpoint === undefined ? [] : [failpoint.patch])];
}
