import type { TaskDispatched } from "../../core/execution/events.ts";
import { contentHash } from "../../json/hash.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
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
  /** The key that the reference says its handler is to get; set likewise. */
  key: string | null;
}

/** What clients asked for and heard about one execution. */
export interface ClientFacts {
  readonly submits: Numbered<Kind<ClientEntry, "submit">>[];
  readonly submitted: Numbered<Kind<ClientEntry, "submitted">>[];
  readonly commands: Numbered<Kind<ClientEntry, "command">>[];
  readonly answers: Numbered<Kind<ClientEntry, "answered">>[];
}

/** A message that one entity sent to another. One that was parked comes again with the release of whom it is for. */
export interface Mail {
  readonly from: string;
  readonly id: string;
  readonly body: Readonly<Record<string, Json>> & { readonly kind: Json };
  readonly commit: Commit;
}

/** The history, sorted once by what each question needs. */
export interface Evidence {
  readonly world: World;
  /** In the order in which they took effect, lost ones included. */
  readonly commits: readonly Commit[];
  /** Those that are in the store at the end. */
  readonly surviving: readonly Commit[];
  readonly tenures: readonly Tenure[];
  /** Who was let keep what somebody else was given after it. */
  readonly kept: readonly Numbered<Kind<JournalEntry, "kept">>[];
  readonly acknowledged: readonly Numbered<Kind<JournalEntry, "acknowledged">>[];
  /** Who was told that it is an owner no more. */
  readonly fenced: readonly Numbered<Kind<JournalEntry, "fenced">>[];
  readonly tokens: ReadonlyMap<string, TokenFacts>;
  readonly clients: ReadonlyMap<string, ClientFacts>;
  readonly reads: readonly Numbered<Kind<ClientEntry, "read">>[];
  /** By the entity it went to, in the order in which it was sent; what was lost with the store included. */
  readonly mail: ReadonlyMap<string, readonly Mail[]>;
  /** Whether a piece of mail was only released with whom it is for, and sent before. */
  isSentAgain(commit: Commit, to: string, id: string): boolean;
  readonly rollbacks: readonly Rollback[];
  readonly poisoned: ReadonlySet<string>;
  /** What an owner may have taken the store's clock to be at a moment of simulated time, at most. */
  latestClockMs(at: number): number;
  /** A value that became a blob, from the witness who made it; undefined if none did. */
  blob(hash: string): Json | undefined;
  /** Takes note of a value that the engine must have made. */
  learn(json: Json): void;
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
export function tokenOf(event: TaskDispatched, execution: string, generation: number): string {
  const { nonce, node, round, attempt, delivery } = event;
  const instance = round === undefined ? node : `${node}@${round}`;
  return `${nonce}:${execution}:${generation}:${instance}:${attempt}:${delivery}`;
}

/** What a token says. */
export function dispatchOf(token: string): { execution: string; generation: number; instance: string } {
  const [, execution = "", generation = "", instance = ""] = token.split(":");
  return { execution, generation: Number(generation), instance };
}

/** Where a token belongs. */
export function placeOfToken(token: string): { execution: string; node: string } {
  const { execution, instance } = dispatchOf(token);
  return { execution, node: instance };
}

export function gather(world: World): Evidence {
  const gathering = new Gathering(world);
  for (let order = 0; order < world.history.length; order++) gathering.take(world.history[order]!, order);
  return gathering.evidence();
}

class Gathering {
  private readonly world: World;
  private readonly commits: Commit[] = [];
  private readonly tenures: Tenure[] = [];
  private readonly kept: Numbered<Kind<JournalEntry, "kept">>[] = [];
  private readonly acknowledged: Numbered<Kind<JournalEntry, "acknowledged">>[] = [];
  private readonly fenced: Numbered<Kind<JournalEntry, "fenced">>[] = [];
  private readonly tokens = new Map<string, TokenFacts>();
  private readonly clients = new Map<string, ClientFacts>();
  private readonly reads: Numbered<Kind<ClientEntry, "read">>[] = [];
  private readonly rollbacks: Rollback[] = [];
  private readonly mail = new Map<string, Mail[]>();
  private readonly sent = new Set<string>();
  private readonly again = new Set<string>();
  private readonly clock: { readonly at: number; readonly offsetMs: number }[] = [];

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
        if (entry.kind === "clock") this.clock.push(entry);
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
        for (const { to, from, id, body } of entry.mail) {
          if (this.sent.has(`${to} ${id}`) && isReleased(entry, to)) this.again.add(`${order} ${to} ${id}`);
          else this.post(to, from, id, body, commit);
        }
        return;
      }
      case "kept":
        this.kept.push({ entry, order });
        return;
      case "acknowledged":
        this.acknowledged.push({ entry, order });
        return;
      case "fenced":
        this.fenced.push({ entry, order });
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
      this.clients.set(id, (facts = { submits: [], submitted: [], commands: [], answers: [] }));
    }
    switch (entry.kind) {
      case "submit":
        facts.submits.push({ entry, order });
        return;
      case "submitted":
        facts.submitted.push({ entry, order });
        return;
      case "command":
        facts.commands.push({ entry, order });
        return;
      case "answered":
        facts.answers.push({ entry, order });
    }
  }

  private post(to: string, from: string, id: string, body: Json, commit: Commit): void {
    if (!isJsonObject(body)) return;
    this.sent.add(`${to} ${id}`);
    const mail = { from, id, body: body as Mail["body"], commit };
    const list = this.mail.get(to);
    if (list === undefined) this.mail.set(to, [mail]);
    else list.push(mail);
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
      facts = { tasks: [], delivered: [], starts: [], ends: [], revoked: [], settledAt: null, given: null, key: null };
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
    const { world, commits, tenures, kept, acknowledged, fenced, tokens, clients, reads, rollbacks, mail } = this;
    const learned = new Map<string, Json>();
    let blobs: Map<string, Json> | undefined;
    return {
      world,
      commits,
      surviving: rollbacks.length === 0 ? commits : commits.filter((commit) => commit.voidedAt === null),
      tenures,
      kept,
      acknowledged,
      fenced,
      tokens,
      clients,
      reads,
      mail,
      rollbacks,
      poisoned: new Set(world.poisoned.map(executionOf)),
      isSentAgain: (commit, to, id) => this.again.has(`${commit.order} ${to} ${id}`),
      latestClockMs: (at) => this.latestClockMs(at),
      blob: (hash) => learned.get(hash) ?? (blobs ??= this.blobs()).get(hash),
      learn: (json) => {
        const text = JSON.stringify(json);
        if (text.length > MIN_BLOB_CHARS) learned.set(contentHash(text), json);
      },
    };
  }

  private latestClockMs(at: number): number {
    const since = at - CLOCK_KNOWN_MS;
    let latest = -Infinity;
    for (const [i, { at: from, offsetMs }] of this.clock.entries()) {
      const until = this.clock[i + 1]?.at ?? Infinity;
      if (from <= at && until >= since) latest = Math.max(latest, at + offsetMs);
    }
    return latest;
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

/** What had come for an entity comes again, as mail of the commit of its release: nobody has just sent it. */
function isReleased({ records }: CommitEntry, entity: string): boolean {
  return records.some((record) => record.entity === entity && record.events.some(({ kind }) => kind === "released"));
}

/** For how long an owner may go by a clock that was set since: it hears of it with its next renewal. */
const CLOCK_KNOWN_MS = 30_000;

/** A blob has more than 64 KiB; in characters that is a third at least. */
const MIN_BLOB_CHARS = (64 * 1024) / 3;
