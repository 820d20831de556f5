import type { ExecutionEvent } from "../core/execution/events.ts";
import type { MessageBody } from "../core/message.ts";
import type { Workflow } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";

/**
 * Everything that happened in a simulated world, in the order in which it happened. Journal entries are written by the
 * store when a commit takes effect, the rest by independent witnesses; the checker compares them and knows nothing of
 * the engine.
 */
export type HistoryEntry = JournalEntry | ClientEntry | WorkerEntry | NemesisEntry;

/** `at` is simulated time in ms; entries are in order even where it is equal. */
interface Entry {
  readonly at: number;
}

export type JournalEntry = Entry & { readonly log: "journal" } & (
    | {
        readonly kind: "acquired";
        readonly partition: number;
        readonly epoch: number;
        readonly nonce: string;
        readonly owner: string;
      }
    | {
        /** A commit took effect in the store. */
        readonly kind: "commit";
        readonly partition: number;
        readonly epoch: number;
        readonly nonce: string;
        readonly seq: number;
        readonly batch: string;
        /** Which engine process had built it. */
        readonly owner: string;
        readonly timeMs: number;
        readonly records: readonly {
          readonly entity: string;
          readonly version: number;
          readonly events: readonly ExecutionEvent[];
        }[];
        readonly tasks: readonly {
          readonly token: string;
          readonly queue: string;
          readonly priority: number;
          readonly entity: string;
        }[];
        readonly revoke: readonly string[];
        /** Texts of the mail it sent, parsed. */
        readonly mail: readonly {
          readonly to: string;
          /** Who says that it sent it. */
          readonly from: string;
          readonly id: string;
          readonly body: Json;
        }[];
        readonly wakes: readonly { readonly entity: string; readonly atMs: number | null }[];
        readonly deadLetters: readonly Letter[];
        /** Ids of dead letters that are gone with it. */
        readonly discard: readonly string[];
        /** Entities that were removed whole. */
        readonly purge?: readonly string[];
        /** Journals of which what ends before a version was removed. */
        readonly cut?: readonly { readonly entity: string; readonly belowVersion: number }[];
        /** What it put on lists, or took off them. */
        readonly listings: readonly { readonly list: string; readonly id: string; readonly isOpen: boolean }[];
        readonly replies: readonly { readonly process: string; readonly request: string; readonly answer: Json }[];
        readonly snapshots: readonly { readonly entity: string; readonly version: number }[];
        readonly suspect: string | null;
        /** It was sent while another of its owner was under way. */
        readonly isBehind?: true;
      }
    /** The store let an owner keep a partition that somebody else was given after it. */
    | {
        readonly kind: "kept";
        readonly partition: number;
        readonly nonce: string;
        readonly owner: string;
      }
    /** The store answered `committed` or `alreadyApplied` to this owner, and the owner got the answer. */
    | {
        readonly kind: "acknowledged";
        readonly partition: number;
        readonly nonce: string;
        readonly seq: number;
        readonly owner: string;
        /** The batch it had sent: another one under this number is the owner's memory gone astray (M1). */
        readonly batch?: string;
      }
    /** The store answered that this owner is one no more. */
    | {
        readonly kind: "fenced";
        readonly partition: number;
        readonly nonce: string;
        readonly seq: number;
        readonly owner: string;
        /** When the batch was sent for the first time: another may have been under way. */
        readonly firstSentAt: number;
      }
  );

/** What people ask for. */
export type Command = Extract<
  MessageBody,
  {
    readonly kind:
      | "cancel"
      | "trigger"
      | "pause"
      | "resume"
      | "retry"
      | "signal"
      | "decideReview"
      | "assignReview"
      | "discardLetter";
  }
>;

export type ClientEntry = Entry & { readonly log: "client" } & (
    | {
        readonly kind: "submit";
        readonly execution: string;
        readonly definition: string;
        readonly bodyHash: string;
        readonly input: Json;
        readonly parent?: string;
        /** It is not to run before it is triggered. */
        readonly hold?: boolean;
      }
    | {
        readonly kind: "submitted";
        readonly execution: string;
        readonly bodyHash: string;
        readonly outcome: "ok" | "refused" | "overloaded" | "unknown";
        readonly code?: string;
      }
    | {
        /** Somebody asks something of an execution. Sent again it is the same request. */
        readonly kind: "command";
        readonly execution: string;
        readonly request: string;
        readonly command: Command;
        /** Who asks, if it matters. */
        readonly by?: string;
      }
    | {
        readonly kind: "answered";
        readonly execution: string;
        readonly request: string;
        readonly command: Command["kind"];
        readonly outcome: "ok" | "refused" | "overloaded" | "unknown";
        readonly code?: string;
        readonly answer?: Json;
      }
    | {
        /** A read through a process that owns nothing. */
        readonly kind: "read";
        readonly reader: string;
        readonly execution: string;
        readonly found: boolean;
        readonly version: number;
        readonly status: string;
        /** Order of the history when the read was sent: what was committed and answered before must be in it. */
        readonly sentAfter: number;
      }
  );

export type WorkerEntry = Entry & { readonly log: "worker"; readonly worker: string; readonly token: string } & (
    | {
        readonly kind: "delivered";
        readonly execution: string;
        readonly node: string;
        readonly attempt: number;
        readonly delivery: number;
        readonly idempotencyKey: string;
      }
    /** `config` is what the handler really got, after holes were filled. */
    | { readonly kind: "handlerStart"; readonly config: Json; readonly inputs: Json | undefined }
    | { readonly kind: "handlerEnd"; readonly output: Json | undefined; readonly failed: boolean }
    | { readonly kind: "settled"; readonly outcome: string }
  );

export type NemesisEntry = Entry & { readonly log: "nemesis" } & (
    | { readonly kind: "fault"; readonly fault: string; readonly target: string }
    /** The store's clock was set: it shows simulated time and this. */
    | { readonly kind: "clock"; readonly offsetMs: number }
    /** The store went back to what it was after `toOrder` entries of this history; later commits are forgotten. */
    | { readonly kind: "rolledBack"; readonly toOrder: number }
    /** No fault happens after this. */
    | { readonly kind: "healed" }
    /** The world stood still: everything that was to happen has happened, or the time for it is over. */
    | { readonly kind: "quiet" }
  );

export interface Letter {
  readonly id: string;
  readonly class: string;
  readonly entity: string;
  /** `open` or `replayed`. */
  readonly status: string;
}

/** What is left in the store when the world has come to rest. */
export interface Remains {
  /** Tasks still queued or leased, by token. */
  readonly tasks: readonly string[];
  readonly inbox: number;
  readonly wakes: readonly string[];
  readonly deadLetters: readonly Letter[];
  /** What is on lists, as `list id`. */
  readonly listed: readonly string[];
  readonly headers: readonly {
    readonly entity: string;
    readonly class: string;
    readonly status: string;
    readonly version: number;
  }[];
  /** Per execution: hash of the fold of the whole journal, of the newest snapshot and its tail, and of the same twice. */
  readonly folds: readonly {
    readonly entity: string;
    readonly whole: string;
    readonly fromSnapshot: string;
    readonly again: string;
  }[];
}

export interface World {
  readonly seed: number;
  /** By hash; those that the engine stored for the insides of maps too. */
  readonly definitions: Readonly<Record<string, Workflow>>;
  /** The definitions that were published under a name, oldest first. */
  readonly published: Readonly<Record<string, readonly string[]>>;
  readonly history: readonly HistoryEntry[];
  readonly remains: Remains;
  /** Liveness mode: faults were healed and enough time was given, so everything must have ended. */
  readonly liveness: boolean;
  /** What the store still wakes an owner for when that time is over, besides executions, where all of it was waited for. */
  readonly restless?: readonly string[];
  /** The store may have lost acknowledged commits (it was rolled back). */
  readonly lossy: boolean;
  /** Executions whose messages were built to kill or to throw: they end in quarantine, not in a state. */
  readonly poisoned: readonly string[];
  /** The secrets that workers had, by name; without them no handler's config with a secret in it can be judged. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** Tasks lived in the process only: one may be put back and delivered again under the same token. */
  readonly volatileTasks?: boolean;
}

export interface Violation {
  /** I1 … I45 of the reliability page. */
  readonly invariant: string;
  readonly message: string;
  readonly execution?: string;
}
