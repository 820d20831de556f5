import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";
import type { ClientEntry, HistoryEntry, JournalEntry, NemesisEntry, WorkerEntry, World } from "../history.ts";
import type { Given } from "./given.ts";

type Kind<Entry, K> = Extract<Entry, { readonly kind: K }>;
export type CommitEntry = Kind<JournalEntry, "commit">;

/** An entry of the history, with its number in it. */
export interface Numbered<Entry> {
  readonly entry: Entry;
  readonly order: number;
}

/** Something that the store held. `voidedAt` is the entry at which it was lost, or null if it never was. */
export interface Stored<Entry> extends Numbered<Entry> {
  voidedAt: number | null;
}

export type Commit = Stored<CommitEntry>;
export type Tenure = Stored<Kind<JournalEntry, "acquired">>;
export type Rollback = Numbered<Kind<NemesisEntry, "rolledBack">>;

/** Everything that is known of one dispatch. */
export interface TokenFacts {
  /** The commits whose list of tasks named it, lost ones included. */
  readonly tasks: Commit[];
  readonly delivered: Numbered<Kind<WorkerEntry, "delivered">>[];
  readonly starts: Numbered<Kind<WorkerEntry, "handlerStart">>[];
  readonly ends: Numbered<Kind<WorkerEntry, "handlerEnd">>[];
  /** When its worker heard that its result had been posted. */
  settledAt: number | null;
  /** Orders of the commits that called it back. */
  readonly revoked: number[];
  /** What the reference resolver says its handler is to get. Set when the surviving journal is walked through. */
  given: Given | null;
}

/** What clients asked for and heard about one execution. */
export interface ClientFacts {
  readonly submits: Numbered<Kind<ClientEntry, "submit">>[];
  readonly submitted: Numbered<Kind<ClientEntry, "submitted">>[];
  readonly cancels: Numbered<Kind<ClientEntry, "cancel">>[];
  readonly cancelled: Numbered<Kind<ClientEntry, "cancelled">>[];
}

/** The history, sorted once by what each question needs. */
export interface Evidence {
  readonly world: World;
  /** In the order in which they took effect, lost ones included. */
  readonly commits: readonly Commit[];
  /** Those that are in the store at the end. */
  readonly surviving: readonly Commit[];
  readonly tenures: readonly Tenure[];
  readonly acknowledged: readonly Numbered<Kind<JournalEntry, "acknowledged">>[];
  readonly tokens: ReadonlyMap<string, TokenFacts>;
  readonly clients: ReadonlyMap<string, ClientFacts>;
  readonly reads: readonly Numbered<Kind<ClientEntry, "read">>[];
  readonly rollbacks: readonly Rollback[];
  readonly poisoned: ReadonlySet<string>;
  /** A value that became a blob, from the witness who made it; undefined if none did. */
  blob(hash: string): Json | undefined;
}

const PREFIX = "execution/";

export function isExecution(entity: string): boolean {
  return entity.startsWith(PREFIX);
}

/** An execution's id, whether it was named by id or as an entity. */
export function executionOf(name: string): string {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
}

/** The name of a dispatch, as the format of tokens has it. */
export function tokenOf(nonce: string, execution: string, node: string, attempt: number, delivery: number): string {
  return `${nonce}:${execution}:${GENERATION}:${node}:${attempt}:${delivery}`;
}

/** No event opens a second generation yet. */
export const GENERATION = 1;

export function gather(world: World): Evidence {
  const gathering = new Gathering(world);
  for (let order = 0; order < world.history.length; order++) gathering.take(world.history[order]!, order);
  return gathering.evidence();
}

class Gathering {
  private readonly world: World;
  private readonly commits: Commit[] = [];
  private readonly tenures: Tenure[] = [];
  private readonly acknowledged: Numbered<Kind<JournalEntry, "acknowledged">>[] = [];
  private readonly tokens = new Map<string, TokenFacts>();
  private readonly clients = new Map<string, ClientFacts>();
  private readonly reads: Numbered<Kind<ClientEntry, "read">>[] = [];
  private readonly rollbacks: Rollback[] = [];

  constructor(world: World) {
    this.world = world;
  }

  take(entry: HistoryEntry, order: number): void {
    switch (entry.log) {
      case "journal":
        return this.journal(entry, order);
      case "client":
        return this.client(entry, order);
      case "worker":
        return this.worker(entry, order);
      case "nemesis":
        if (entry.kind === "rolledBack") this.rollBack(entry, order);
    }
  }

  private journal(entry: JournalEntry, order: number): void {
    switch (entry.kind) {
      case "acquired":
        this.tenures.push({ entry, order, voidedAt: null });
        return;
      case "commit": {
        const commit: Commit = { entry, order, voidedAt: null };
        this.commits.push(commit);
        for (const { token } of entry.tasks) this.token(token).tasks.push(commit);
        for (const token of entry.revoke) this.token(token).revoked.push(order);
        return;
      }
      case "acknowledged":
        this.acknowledged.push({ entry, order });
        return;
      case "fenced":
        return;
    }
  }

  private client(entry: ClientEntry, order: number): void {
    if (entry.kind === "read") {
      this.reads.push({ entry, order });
      return;
    }
    const id = executionOf(entry.execution);
    let facts = this.clients.get(id);
    if (facts === undefined) {
      this.clients.set(id, (facts = { submits: [], submitted: [], cancels: [], cancelled: [] }));
    }
    switch (entry.kind) {
      case "submit":
        facts.submits.push({ entry, order });
        return;
      case "submitted":
        facts.submitted.push({ entry, order });
        return;
      case "cancel":
        facts.cancels.push({ entry, order });
        return;
      case "cancelled":
        facts.cancelled.push({ entry, order });
    }
  }

  private worker(entry: WorkerEntry, order: number): void {
    const facts = this.token(entry.token);
    switch (entry.kind) {
      case "delivered":
        facts.delivered.push({ entry, order });
        return;
      case "handlerStart":
        facts.starts.push({ entry, order });
        return;
      case "handlerEnd":
        facts.ends.push({ entry, order });
        return;
      case "settled":
        if (entry.outcome === "settled") facts.settledAt = entry.at;
        return;
    }
  }

  private token(token: string): TokenFacts {
    let facts = this.tokens.get(token);
    if (facts === undefined) {
      facts = { tasks: [], delivered: [], starts: [], ends: [], revoked: [], settledAt: null, given: null };
      this.tokens.set(token, facts);
    }
    return facts;
  }

  private rollBack(entry: Rollback["entry"], order: number): void {
    this.rollbacks.push({ entry, order });
    for (const list of [this.commits, this.tenures] as const) {
      for (let i = list.length - 1; i >= 0 && list[i]!.order >= entry.toOrder; i--) list[i]!.voidedAt ??= order;
    }
  }

  evidence(): Evidence {
    const { world, commits, tenures, acknowledged, tokens, clients, reads, rollbacks } = this;
    let blobs: Map<string, Json> | undefined;
    return {
      world,
      commits,
      surviving: rollbacks.length === 0 ? commits : commits.filter((commit) => commit.voidedAt === null),
      tenures,
      acknowledged,
      tokens,
      clients,
      reads,
      rollbacks,
      poisoned: new Set(world.poisoned.map(executionOf)),
      blob: (hash) => (blobs ??= this.blobs()).get(hash),
    };
  }

  /** Made only when a world has blobs at all: most have none, and hashing every output costs more than the rest. */
  private blobs(): Map<string, Json> {
    const blobs = new Map<string, Json>();
    const add = (json: Json | undefined): void => {
      const text = JSON.stringify(json ?? null);
      if (text.length > MIN_BLOB_CHARS) blobs.set(contentHash(text), json ?? null);
    };
    for (const { ends } of this.tokens.values()) for (const { entry } of ends) add(entry.output);
    for (const { submits } of this.clients.values()) for (const { entry } of submits) add(entry.input);
    return blobs;
  }
}

/** A blob has more than 64 KiB; in characters that is a third at least. */
const MIN_BLOB_CHARS = (64 * 1024) / 3;
