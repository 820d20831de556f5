import type { Json } from "../../src/json/json.ts";
import type { CommitBatch, Snapshot, Task } from "../../src/store/contract.ts";

/** A commit as it notes itself in its own transaction: all of it but the bytes of tasks and snapshots. */
export interface NotedCommit extends Pick<
  CommitBatch,
  | "fence"
  | "id"
  | "timeMs"
  | "suspect"
  | "records"
  | "wakes"
  | "revoke"
  | "deadLetters"
  | "discard"
  | "replies"
  | "purge"
> {
  readonly snapshots: readonly Omit<Snapshot, "text">[];
  readonly tasks: readonly Omit<Task, "text">[];
  /** Texts of messages. */
  readonly mail: readonly string[];
  readonly listings: readonly { readonly list: string; readonly id: string; readonly isOpen: boolean }[];
}

export interface NotedTenure {
  readonly epoch: number;
  readonly nonce: string;
  readonly owner: string;
}

/** What a process tells the log. `at` is by the clock that all processes of the machine share. */
export type Told = { readonly at: number; readonly pid: number } & (
  | { readonly kind: "died"; readonly name: string }
  /** This process is an engine, and is called so in the store. */
  | { readonly kind: "engine"; readonly name: string }
  | { readonly kind: "sent"; readonly commit: NotedCommit }
  | {
      readonly kind: "acknowledged";
      readonly partition: number;
      readonly nonce: string;
      readonly seq: number;
      readonly batch: string;
      readonly outcome: string;
    }
  | {
      readonly kind: "delivered";
      readonly worker: string;
      readonly token: string;
      readonly execution: string;
      readonly node: string;
      readonly attempt: number;
      readonly delivery: number;
      readonly idempotencyKey: string;
    }
  | {
      readonly kind: "handlerStart";
      readonly worker: string;
      readonly token: string;
      readonly config: Json;
      readonly inputs?: Json | undefined;
    }
  | {
      readonly kind: "handlerEnd";
      readonly worker: string;
      readonly token: string;
      readonly output?: Json | undefined;
      readonly failed: boolean;
    }
  | { readonly kind: "settled"; readonly worker: string; readonly token: string; readonly outcome: string }
);

/** A line of the ledger: what a handler has begun, and done to the world outside, under which key. */
export interface LedgerLine {
  readonly at: number;
  readonly pid: number;
  readonly kind: "begun" | "done";
  readonly execution: string;
  readonly node: string;
  readonly attempt: number;
  readonly key: string;
}
