import { openSync, writeSync } from "node:fs";
import { registerHooks } from "node:module";
import { isMainThread } from "node:worker_threads";
import type { TaskText } from "../../src/core/execution/prepare.ts";
import type { Json } from "../../src/json/json.ts";
import type { CommitBatch, CommitOutcome } from "../../src/store/contract.ts";
import type { Handler, HandlerCall } from "../../src/worker/handler.ts";
import type { NotedCommit, Told } from "./notes.ts";
import { type Patch, patched } from "./patch.ts";
import { dispatchName } from "./sealed-token.ts";

type DistributiveOmit<All, Key extends PropertyKey> = All extends unknown ? Omit<All, Key> : never;

/** What patched sources call to write the history down; the hook brings it into every thread as `millraceWitness`. */
export class Witness {
  readonly #log: number;

  constructor(log: string) {
    this.#log = openSync(log, "a");
  }

  /** By the clock that all processes of this machine share. */
  nowMs(): number {
    return Number(process.hrtime.bigint()) / 1e6;
  }

  tell(entry: DistributiveOmit<Told, "at" | "pid">): void {
    writeSync(this.#log, `\n${JSON.stringify({ at: this.nowMs(), pid: process.pid, ...entry })}\n`);
  }

  commitText(batch: CommitBatch): string {
    return JSON.stringify(notedCommit(batch));
  }

  /** What may be stored from now on, whether its sender hears of it or not. */
  sent(batches: readonly CommitBatch[]): void {
    for (const batch of batches) this.tell({ kind: "sent", commit: notedCommit(batch) });
  }

  acknowledged(batches: readonly CommitBatch[], outcomes: readonly CommitOutcome[] | undefined): void {
    for (const [i, { fence, id }] of batches.entries()) {
      const { partition, nonce, seq } = fence;
      const outcome = outcomes?.[i]?.kind ?? "unknown";
      this.tell({ kind: "acknowledged", partition, nonce, seq, batch: id, outcome });
    }
  }

  /** Runs a handler, and tells what it was given and gave. */
  async run(worker: string, call: HandlerCall, handler: Handler): Promise<Json> {
    const { config, inputs } = call;
    const token = dispatchName(call.token);
    this.tell({ kind: "handlerStart", worker, token, config, inputs });
    try {
      const output = await handler(call);
      this.tell({ kind: "handlerEnd", worker, token, output, failed: false });
      return output;
    } catch (error) {
      this.tell({ kind: "handlerEnd", worker, token, failed: true });
      throw error;
    }
  }

  seenByWorker(worker: string, event: string, [task, outcome]: readonly [TaskText, string]): void {
    if (event !== "settled" && event !== "delivered") return;
    const token = dispatchName(task.token);
    if (event === "settled") return this.tell({ kind: event, worker, token, outcome });
    const { execution, attempt, idempotencyKey } = task;
    // A gateway names neither the instance nor the delivery; the token does.
    const [, , , node, , delivery] = token.split(":") as [string, string, string, string, string, string];
    this.tell({ kind: event, worker, token, execution, node, attempt, delivery: Number(delivery), idempotencyKey });
  }
}

/**
 * Patches the sources as they are loaded, in every thread: production code has no switches. A process whose parent is
 * gone ends, as nobody else will end it.
 */
export function instrument(witness: object, patches: readonly Patch[]): void {
  Object.assign(globalThis, { millraceWitness: witness });
  const parent = process.ppid;
  if (isMainThread) setInterval(() => process.ppid === parent || process.kill(process.pid, "SIGKILL"), 1_000).unref();
  const byFile = Map.groupBy(patches, ({ file }) => file);
  registerHooks({
    load(url, context, next) {
      const file = url.split("/src/").at(-1)!;
      const own = byFile.get(file);
      if (own === undefined || !url.endsWith(`/src/${file}`)) return next(url, context);
      return { format: "module-typescript", source: patched(file, own), shortCircuit: true };
    },
  });
}

function notedCommit(batch: CommitBatch): NotedCommit {
  const { consumed: _, purge, snapshots, tasks, mail, listings = [], headers: __, ...rest } = batch;
  return {
    ...rest,
    // Executions stay until they are looked at; a place in the cache of which nothing came is gone at once.
    purge: purge.filter((entity) => entity.startsWith("cache/")),
    snapshots: snapshots.map(withoutText),
    tasks: tasks.map(withoutText),
    mail: mail.map(({ text }) => text),
    listings: listings.map(({ list, id, text }) => ({ list, id, isOpen: text !== null })),
  };
}

function withoutText<Item extends { readonly text: string }>(item: Item): Omit<Item, "text"> {
  const { text: _, ...rest } = item;
  return rest;
}
