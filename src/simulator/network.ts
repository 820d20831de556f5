import type {
  CommitBatch,
  CommitOutcome,
  DeadLetter,
  Outgoing,
  PutOutcome,
  RenewOutcome,
  Store,
} from "../store/contract.ts";
import { idsOf } from "../drivers/memory/inbox.ts";
import type { MemoryStore } from "../drivers/memory/memory-store.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import type { Message } from "../core/message.ts";
import type { Json } from "../json/json.ts";
import type { HistoryEntry, Letter } from "./history.ts";
import type { SimProcess } from "./process.ts";
import type { Random } from "./random.ts";
import type { Timeline } from "./timeline.ts";

/** How badly the way between processes and the store behaves just now. */
export interface Weather {
  /** Chance that a request, or its answer, never arrives. */
  loss: number;
  /** Chance that a request arrives twice. */
  duplication: number;
  /** Chance that a request takes longer than its sender waits. */
  delay: number;
  /** Chance that appended messages become visible out of order. */
  disorder: number;
  /** Until when the store does not answer at all. */
  downUntil: number;
  /** Until when the store refuses to grow. */
  fullUntil: number;
  /** Processes that are cut off, and until when. */
  readonly cutUntil: Map<string, number>;
}

export function fairWeather(): Weather {
  return { loss: 0, duplication: 0, delay: 0, disorder: 0, downUntil: 0, fullUntil: 0, cutUntil: new Map() };
}

/** How long a process waits for an answer before it counts as unknown. */
const CALL_TIMEOUT_MS = 2_000;

class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

/** What the network needs of the world. */
export interface Ground {
  readonly timeline: Timeline;
  readonly memory: MemoryStore;
  readonly weather: Weather;
  readonly random: Random;
  /** Chance that a message on the network takes its time. */
  readonly slowness: number;
  /** Mail on its way: committed, and not to be seen yet. Not in a world whose store forgets, for it would not know it. */
  readonly mayHoldMail: boolean;
  heldMail: number;
  /** The nonce that was last given out, by partition. */
  readonly nonces: Map<number, string>;
  /** Batches that the store did not take, for want of room. */
  readonly refused: Set<string>;
  record(entry: HistoryEntry): void;
  /** It holds what this store cannot write down. */
  isRejected(batch: CommitBatch): boolean;
  /** Our own code contradicted itself. */
  bug(message: string): void;
}

/**
 * The store as one process sees it: across a network that loses, repeats, delays and reorders. What happens at the
 * store happens even if its caller is dead by then; an answer reaches only the living.
 */
export function connect(ground: Ground, process: SimProcess, capabilities: Partial<Store["capabilities"]> = {}): Store {
  const { memory } = ground;
  const call = <T>(apply: () => Promise<T>, waitMs = 0, repeatable = true): Promise<T> =>
    carry(ground, process, apply, waitMs, repeatable);
  // Of a store that queues commits: what is sent later does not arrive sooner, as a rule.
  const line: Line | undefined = memory.capabilities.queuesCommits === true ? { arrivedAt: 0 } : undefined;
  return {
    capabilities: { ...memory.capabilities, ...capabilities },
    partitions: {
      acquire: (partition, owner, leaseMs) =>
        call(async () => acquired(ground, process, await memory.partitions.acquire(partition, owner, leaseMs))),
      reacquire: (fence, leaseMs) =>
        call(async () => acquired(ground, process, await memory.partitions.reacquire(fence, leaseMs))),
      renew: (fences, leaseMs) => call(() => renew(ground, process, fences, leaseMs)),
      release: (fence) => call(() => memory.partitions.release(fence)),
    },
    inbox: {
      append: (messages) => call(() => append(ground, messages)),
      read: (requests, waitMs) => call(() => memory.inbox.read(requests, waitMs), waitMs),
      replies: (name, waitMs) => call(() => memory.inbox.replies(name, waitMs), waitMs, false),
    },
    journal: {
      commit: async (batches) => {
        const sentAt = batches.map((batch) => firstSent(ground, batch));
        const outcomes = await carry(ground, process, () => commit(ground, process, batches), 0, true, line);
        acknowledge(ground, process, batches, outcomes, sentAt);
        return outcomes;
      },
      load: (requests) => call(() => memory.journal.load(requests)),
      due: (partition, beforeMs, limit, after) => call(() => memory.journal.due(partition, beforeMs, limit, after)),
      watch: (partition, entity, version, waitMs, options) =>
        call(() => memory.journal.watch(partition, entity, version, waitMs, options), waitMs),
    },
    tasks: {
      lease: (request) => call(() => memory.tasks.lease(request), request.waitMs, false),
      heartbeat: (beats, leaseMs) => call(() => memory.tasks.heartbeat(beats, leaseMs)),
      settle: (results) => call(() => memory.tasks.settle(results)),
      lapse: (limit) => call(() => memory.tasks.lapse(limit)),
      restore: (tasks) => call(() => memory.tasks.restore(tasks)),
    },
    records: {
      put: (records, options) => call(() => put(ground, records, options)),
      get: (keys) => call(() => memory.records.get(keys)),
      publish: (name, hash) => call(() => memory.records.publish(name, hash)),
      published: (name, version) => call(() => memory.records.published(name, version)),
      versions: (name) => call(() => memory.records.versions(name)),
      unpublish: (name) => call(() => memory.records.unpublish(name)),
      register: (registration, ttlMs) => call(() => memory.records.register(registration, ttlMs)),
      registered: () => call(() => memory.records.registered()),
    },
    queries: {
      headers: (query) => call(() => memory.queries.headers(query)),
      header: (partition, entity) => call(() => memory.queries.header(partition, entity)),
      deadLetters: (query) => call(() => memory.queries.deadLetters(query)),
      deadLetter: (id) => call(() => memory.queries.deadLetter(id)),
      listing: (query) => call(() => memory.queries.listing(query)),
      listed: (list, id) => call(() => memory.queries.listed(list, id)),
      workflows: (query) => call(() => memory.queries.workflows(query)),
      counts: () => call(() => memory.queries.counts()),
    },
    close: () => Promise.resolve(),
  };
}

/** Calls that keep their order, and when the last of them arrives. */
interface Line {
  arrivedAt: number;
}

/** Takes one call to the store and its answer back. */
function carry<T>(
  ground: Ground,
  process: SimProcess,
  apply: () => Promise<T>,
  waitMs: number,
  repeatable: boolean,
  line?: Line,
): Promise<T> {
  const { timeline, random, weather } = ground;
  return new Promise((resolve, reject) => {
    if (!process.alive) return;
    let isAnswered = false;
    // An error with its stack is dear: it is made only for who still waits.
    const giveUp = (): void => {
      if (!isAnswered) reject(new NoAnswer("the store did not answer in time"));
    };
    timeline.after(waitMs + CALL_TIMEOUT_MS, giveUp, process);
    const answer = (given: T): void => {
      isAnswered = true;
      resolve(given);
    };
    const arrive = (): void => {
      if (timeline.now < weather.downUntil) {
        timeline.after(latency(ground), () => reject(new NoAnswer("the store is down")), process);
        return;
      }
      const answered = apply();
      const isLost = (): boolean => isCut(ground, process) || random.chance(weather.loss);
      void answered.then(
        (given) => !isLost() && timeline.after(latency(ground), () => answer(given), process),
        (error: unknown) => timeline.after(latency(ground), () => reject(error), process),
      );
    };
    if (isCut(ground, process) || random.chance(weather.loss)) return;
    const late = random.chance(weather.delay);
    const afterMs = late ? random.integer(CALL_TIMEOUT_MS, 4 * CALL_TIMEOUT_MS) : latency(ground);
    timeline.after(line === undefined ? afterMs : inLine(ground, line, afterMs), arrive);
    if (repeatable && random.chance(weather.duplication)) timeline.after(random.integer(1, 5_000), arrive);
  });
}

/** Mostly a moment; how often it is longer is a trait of the world, so that calls overtake each other more or less. */
function latency({ random, slowness }: Ground): number {
  return random.chance(slowness) ? random.integer(5, 60) : random.next() * 2;
}

/** When it arrives behind all that were sent before. Nothing may rely on it: in bad weather some overtake others all the same. */
function inLine({ timeline, random, weather }: Ground, line: Line, afterMs: number): number {
  if (random.chance(weather.disorder)) return afterMs;
  line.arrivedAt = Math.max(line.arrivedAt, timeline.now + afterMs);
  return line.arrivedAt - timeline.now;
}

function isCut(ground: Ground, process: SimProcess): boolean {
  return (ground.weather.cutUntil.get(process.name) ?? 0) > ground.timeline.now;
}

/** Appends, sometimes so that a later message is seen before an earlier one. */
async function append(ground: Ground, messages: readonly Outgoing[]): ReturnType<Store["inbox"]["append"]> {
  const { memory, random, weather, timeline } = ground;
  if (timeline.now < weather.fullUntil && messages.some((message) => message.start)) {
    await memory.inbox.append(messages.filter((message) => !message.start));
    return messages.map((message) => (message.start ? "full" : "appended"));
  }
  if (!random.chance(weather.disorder)) return memory.inbox.append(messages);
  for (const message of messages) {
    const id = memory.inbox.reserve(message.partition);
    timeline.after(random.integer(1, 3_000), () => memory.inbox.appendAt(id, message));
  }
  return messages.map(() => "appended");
}

/** A full store takes no definition and no input; what work needs to end is always taken. */
async function put(ground: Ground, ...args: Parameters<Store["records"]["put"]>): Promise<PutOutcome> {
  const isFull = ground.timeline.now < ground.weather.fullUntil;
  return isFull && args[1]?.refusable === true ? "refused" : ground.memory.records.put(...args);
}

function acquired<T extends Awaited<ReturnType<Store["partitions"]["acquire"]>>>(
  ground: Ground,
  process: SimProcess,
  outcome: T,
): T {
  if (outcome.kind === "acquired") {
    const { partition, epoch, nonce } = outcome.tenure;
    ground.nonces.set(partition, nonce);
    ground.record({
      log: "journal",
      kind: "acquired",
      at: ground.timeline.now,
      partition,
      epoch,
      nonce,
      owner: process.name,
    });
  }
  return outcome;
}

async function renew(
  ground: Ground,
  process: SimProcess,
  ...args: Parameters<Store["partitions"]["renew"]>
): Promise<RenewOutcome> {
  const outcome = await ground.memory.partitions.renew(...args);
  for (const [i, { kind, partition }] of outcome.partitions.entries()) {
    const { nonce } = args[0][i]!;
    if (kind === "lost" || ground.nonces.get(partition) === nonce) continue;
    const at = ground.timeline.now;
    ground.record({ log: "journal", kind: "kept", at, partition, nonce, owner: process.name });
  }
  return outcome;
}

async function commit(
  ground: Ground,
  process: SimProcess,
  batches: readonly CommitBatch[],
): Promise<readonly CommitOutcome[]> {
  if (ground.timeline.now < ground.weather.fullUntil) {
    for (const { id } of batches) ground.refused.add(id);
    return batches.map(() => ({ kind: "refused", reason: "full" }));
  }
  if (batches.some((batch) => ground.isRejected(batch))) throw new RangeError("not such a value");
  const conserved = batches.map((batch) => messagesBefore(ground, batch));
  const held = batches.map((batch) => (holdsMail(ground, batch) ? batch.mail : []));
  const sent = batches.map((batch, i) => (held[i]!.length > 0 ? { ...batch, mail: [] } : batch));
  const outcomes = await ground.memory.journal.commit(sent).catch((error: unknown) => {
    ground.bug(`a commit of ${process.name} was not even refused: ${String(error)}`);
    throw error;
  });
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.kind !== "committed") continue;
    conserved[i]!();
    ground.record(committed(ground, process, batches[i]!));
    deliverLater(ground, held[i]!);
  }
  return outcomes;
}

/** What had been parked is back with the commit of the release: deadlines rely on it. */
function holdsMail({ mayHoldMail, random, weather }: Ground, { mail, records }: CommitBatch): boolean {
  const isRelease = records.some(({ text }) => text.includes('"kind":"released"'));
  return mayHoldMail && mail.length > 0 && !isRelease && random.chance(weather.disorder);
}

/** Each piece of mail comes in its own time, so that a cancel may overtake the start it is about. */
function deliverLater(ground: Ground, mail: readonly Outgoing[]): void {
  const { memory, timeline, random } = ground;
  for (const message of mail) {
    const id = memory.inbox.reserve(message.partition);
    ground.heldMail++;
    timeline.after(random.integer(1, 6_000), () => {
      ground.heldMail--;
      memory.inbox.appendAt(id, message);
    });
  }
}

/** A commit takes out of the inbox what its owner had read, and not a message more. Answers the check for afterwards. */
function messagesBefore(ground: Ground, batch: CommitBatch): () => void {
  const inbox = (): { id: number }[] => ground.memory.data.partitions[batch.fence.partition]!.inbox;
  const before = inbox().map(({ id }) => id);
  return () => {
    const after = new Set(inbox().map(({ id }) => id));
    const read = new Set(batch.consumed === null ? [] : idsOf(batch.consumed));
    const wrong = before.filter((id) => after.has(id) === read.has(id));
    if (wrong.length > 0) ground.bug(`I34 a commit lost or kept ${wrong.length} messages that it had no business with`);
  };
}

function committed(ground: Ground, process: SimProcess, batch: CommitBatch): HistoryEntry {
  const { partition, epoch, nonce, seq } = batch.fence;
  return {
    log: "journal",
    kind: "commit",
    at: ground.timeline.now,
    partition,
    epoch,
    nonce,
    seq,
    batch: batch.id,
    owner: process.name,
    timeMs: batch.timeMs,
    records: batch.records.map(({ entity, version, text }) => ({
      entity,
      version,
      events: JSON.parse(text) as ExecutionEvent[],
    })),
    tasks: batch.tasks.map(({ token, queue, priority, entity }) => ({ token, queue, priority, entity })),
    revoke: batch.revoke,
    mail: batch.mail.map(({ text }) => {
      const { to, by, id, body } = JSON.parse(text) as Message;
      return { to, from: by, id, body: body as unknown as Json };
    }),
    wakes: batch.wakes,
    deadLetters: batch.deadLetters.map(letterOf),
    discard: batch.discard,
    ...(batch.purge.length > 0 && { purge: batch.purge }),
    ...(batch.cut !== undefined && { cut: batch.cut }),
    listings: (batch.listings ?? []).map(({ list, id, text }) => ({ list, id, isOpen: text !== null })),
    replies: batch.replies.map(({ process: to, request, text }) => ({
      process: to,
      request,
      answer: JSON.parse(text) as Json,
    })),
    snapshots: batch.snapshots.map(({ entity, version }) => ({ entity, version })),
    suspect: batch.suspect,
    ...(batch.behind !== undefined && { isBehind: true as const }),
  };
}

/** What people see of a dead letter. One of the shell's own has no status, and stays open. */
export function letterOf({ id, class: kind, entity, text }: DeadLetter): Letter {
  const { status = "open" } = JSON.parse(text) as { status?: string };
  return { id, class: kind, entity, status };
}

const sent = new WeakMap<CommitBatch, number>();

/** A resend is the same batch. */
function firstSent({ timeline }: Ground, batch: CommitBatch): number {
  const known = sent.get(batch);
  if (known === undefined) sent.set(batch, timeline.now);
  return known ?? timeline.now;
}

function acknowledge(
  ground: Ground,
  process: SimProcess,
  batches: readonly CommitBatch[],
  outcomes: readonly CommitOutcome[],
  sentAt: readonly number[],
): void {
  for (const [i, outcome] of outcomes.entries()) {
    const { fence, id: batch, behind } = batches[i]!;
    const { partition, nonce, seq } = fence;
    const entry = { log: "journal" as const, at: ground.timeline.now, partition, nonce, seq, owner: process.name };
    // What was sent behind a batch that was refused says nothing about who has the partition.
    const isTold = outcome.kind === "fenced" && (behind === undefined || !ground.refused.has(behind));
    if (isTold) ground.record({ ...entry, kind: "fenced", firstSentAt: sentAt[i]! });
    if (outcome.kind === "committed" || outcome.kind === "alreadyApplied") {
      ground.record({ ...entry, kind: "acknowledged", batch });
    }
  }
}
