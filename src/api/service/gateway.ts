import { mockOf } from "../../core/execution/nodes/engine-node.ts";
import type { TaskText } from "../../core/execution/prepare.ts";
import { taskMessage } from "../../core/message.ts";
import { parseToken } from "../../core/token.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import { HoleUnfilled } from "../../expression/fill-holes.ts";
import type { Host } from "../../host/host.ts";
import type { Requests } from "../../inbox/requests.ts";
import { canonicalHash } from "../../json/canonical.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { LeasedTask, Settlement, Store } from "../../store/contract.ts";
import { Concealment } from "../../worker/concealment.ts";
import { heartbeatOf } from "../../worker/delivery.ts";
import type { FarTask } from "../../worker/far-tasks.ts";
import { storableOutput } from "../../worker/output.ts";
import { HEARTBEAT_SECONDS, MAX_LEASE_BYTES, MAX_TASK_BYTES, WORKER_ALIVE_MS } from "../limits.ts";
import type { Caller } from "./caller.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import type { HandlerDirectory } from "./handler-directory.ts";
import { KeptLeases } from "./kept-leases.ts";
import { Lru } from "./lru.ts";
import type { Signing } from "./signing.ts";
import { secretsOf, TaskBodies } from "./task-bodies.ts";
import { type Settled, storedValue, type TaskResult, TaskResults } from "./task-results.ts";
import { type Ticket, Tickets } from "./tickets.ts";

export interface LeaseCall {
  readonly worker_id: string;
  readonly handlers?: readonly string[] | undefined;
  readonly queues?: readonly string[] | undefined;
  readonly max: number;
  readonly wait_ms: number;
  readonly lease_seconds: number;
  /** They go on waiting elsewhere, where others may read them: nobody has begun them yet, and no secret is filled in. */
  readonly isParked?: true;
}

export interface ShownTask extends FarTask {
  readonly deadline: string;
}

export interface Leased {
  readonly tasks: readonly ShownTask[];
  readonly lease_seconds: number;
  readonly heartbeat_seconds: number;
}

/** What a worker takes tasks of. */
export interface Serves {
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
}

/** On what terms tasks are handed out. */
interface Lease {
  readonly handlers: readonly string[] | undefined;
  readonly leaseMs: number;
  readonly isParked: true | undefined;
  /** What is left of the answer. */
  readonly roomBytes: number;
}

/** What becomes of a task that was leased for an answer. */
type Offer =
  | {
      readonly kind: "shown";
      readonly task: LeasedTask;
      readonly ticket: Ticket;
      readonly shown: ShownTask;
      readonly bytes: number;
      /** A rate has let it through. */
      readonly isLimited: boolean;
    }
  /** It needs nobody any more. */
  | { readonly kind: "settled" }
  | { readonly kind: "notForIt" }
  | { readonly kind: "noRoom" };

interface HandedOut {
  readonly tasks: readonly ShownTask[];
  readonly bytes: number;
  /** There were more than one answer takes. */
  readonly isCut: boolean;
}

/** With what its tasks are given, in bytes. */
interface LeaseAnswer {
  readonly leased: Leased;
  readonly bytes: number;
}

/** Why a task fails before anybody works on it. */
interface Reason {
  readonly code: string;
  readonly message: string;
}

/** A task that is still running after this long is reported as started. */
const START_REPORT_MS = 1_000;
/** A wait is made of pieces, so that a client that has gone is not given tasks for long. */
const WAIT_PIECE_MS = 1_000;
const REGISTER_AGAIN_MS = 5_000;

/**
 * A worker in the name of workers elsewhere: they speak HTTP, hold no credentials of the store, and their tokens name one
 * delivery of one attempt. It decides nothing.
 */
export class Gateway {
  readonly #store: Store;
  readonly #host: Host;
  readonly #directory: HandlerDirectory;
  readonly #tickets: Tickets;
  readonly #results: TaskResults;
  readonly #bodies: TaskBodies;
  readonly #keptLeases: KeptLeases<LeaseAnswer>;
  /** When each worker was last said to be alive. */
  readonly #told = new Lru<Serves & { readonly atMs: number }>(10_000);
  /** How many tasks the next answer to a worker may take, where its last one was full of large ones. */
  readonly #fitting = new Lru<number>(10_000);
  #isClosing = false;

  constructor(parts: {
    readonly store: Store;
    readonly host: Host;
    readonly requests: Requests;
    readonly signing: Signing;
    readonly directory: HandlerDirectory;
    readonly reader: ExecutionReader;
    readonly secret: (name: string) => string | undefined;
  }) {
    this.#store = parts.store;
    this.#host = parts.host;
    this.#directory = parts.directory;
    this.#bodies = new TaskBodies(parts.store, parts.secret);
    this.#keptLeases = new KeptLeases(parts.host);
    this.#tickets = new Tickets(parts.signing, parts.host);
    this.#results = new TaskResults({ ...parts, tickets: this.#tickets });
  }

  /** Whoever waits for tasks is answered soon, and nobody is made to wait any more. */
  close(): void {
    this.#isClosing = true;
  }

  /** Tasks for a worker, as soon as there are any. `gone` is aborted when nobody is there to take them. */
  async lease(caller: Caller, call: LeaseCall, gone: AbortSignal): Promise<Leased> {
    const { key, by } = caller;
    if (key === undefined) return (await this.#lease(caller, call, gone)).leased;
    const name = `${by} ${key}`;
    const body = canonicalHash(call as unknown as Json);
    const before = this.#keptLeases.get(name);
    if (before !== undefined) {
      if (before.body !== body) throw new MillraceError("IDEMPOTENCY_KEY_REUSED", {});
      return (await before.answer).leased;
    }
    const answer = this.#lease(caller, call, gone);
    this.#keptLeases.add(name, { body, answer });
    return (await answer).leased;
  }

  async #lease(caller: Caller, call: LeaseCall, gone: AbortSignal): Promise<LeaseAnswer> {
    const { worker_id, handlers, max, wait_ms, lease_seconds } = call;
    const queues = handlers ?? call.queues ?? [];
    // Whoever takes parked tasks names queues only. A queue is called after its handler by default, so those handlers count as served.
    const served = handlers ?? (call.isParked === true ? queues : []);
    if (served.length > 0) await this.#directory.note(served);
    const leaseMs = Math.round(lease_seconds * 1000);
    const untilMs = this.#host.monotonicMs() + wait_ms;
    const answer = (tasks: readonly ShownTask[], bytes: number): LeaseAnswer => {
      return { leased: { tasks, lease_seconds, heartbeat_seconds: heartbeatSeconds(lease_seconds) }, bytes };
    };
    for (;;) {
      await this.#register(worker_id, { handlers: served, queues });
      const leftMs = this.#isClosing ? 0 : untilMs - this.#host.monotonicMs();
      const waitMs = Math.max(0, Math.min(leftMs, WAIT_PIECE_MS));
      const worker = `gateway-${worker_id}`;
      const askedAtMs = this.#host.monotonicMs();
      const fitting = Math.min(max, this.#fitting.get(worker_id) ?? max);
      const leased = await this.#store.tasks.lease({ worker, isFar: true, queues, max: fitting, leaseMs, waitMs });
      if (gone.aborted) {
        await this.#handBack(leased, caller);
        return answer([], 0);
      }
      const handedOut = await this.#handOut(caller, leased, { handlers, leaseMs, isParked: call.isParked });
      const { tasks, bytes } = handedOut;
      this.#noteRoom(worker_id, call, handedOut);
      if (tasks.length > 0 || leftMs <= WAIT_PIECE_MS) return answer(tasks, bytes);
      // It took tasks, and none of them is for this worker: others must have the time to take them. And a store that is
      // being closed answers at once, with nothing.
      const isEarly = this.#host.monotonicMs() - askedAtMs < waitMs / 2;
      if (leased.length > 0 || isEarly) await this.#host.sleep(WAIT_PIECE_MS, gone);
    }
  }

  /** Says of each token whose task counts no more, or never did. */
  async heartbeat(
    _caller: Caller,
    worker: string,
    tokens: readonly string[],
    serves?: Serves,
  ): Promise<{ readonly cancelled: readonly string[] }> {
    if (serves !== undefined) await this.#directory.note(serves.handlers);
    await this.#register(worker, serves);
    const cancelled: string[] = [];
    const byLease = new Map<number, { sealed: string; ticket: Ticket }[]>();
    for (const sealed of tokens) {
      const ticket = await this.#tickets.open(sealed);
      if (ticket === undefined) cancelled.push(sealed);
      else byLease.set(ticket.leaseMs, [...(byLease.get(ticket.leaseMs) ?? []), { sealed, ticket }]);
    }
    for (const [leaseMs, held] of byLease) {
      const beats = held.map(({ ticket }) => {
        const unreportedMs = this.#tickets.isTold(ticket) ? undefined : this.#tickets.begunMs(ticket);
        return heartbeatOf(ticket, `gateway-${worker}`, unreportedMs);
      });
      const outcome = await this.#store.tasks.heartbeat(beats, leaseMs);
      const over = new Set([...outcome.lost, ...outcome.cancelled]);
      for (const { sealed, ticket } of held) {
        this.#tickets.setTold(ticket);
        if (over.has(ticket.token)) cancelled.push(sealed);
      }
    }
    return { cancelled };
  }

  /** Tasks that wait elsewhere are kept for so long without a word of any worker. One that was quicker keeps its own lease. */
  async keep(tokens: readonly string[], leaseMs: number): Promise<void> {
    const tickets = await Promise.all(tokens.map((sealed) => this.#tickets.open(sealed)));
    const waiting = tickets.filter((ticket) => ticket !== undefined).filter((ticket) => !this.#tickets.isTold(ticket));
    if (waiting.length === 0) return;
    await this.#store.tasks.heartbeat(
      waiting.map(({ ref, token }) => ({ ref, token })),
      leaseMs,
    );
  }

  /** Reports results, and tells what the owners made of them. */
  settle(caller: Caller, results: readonly TaskResult[]): Promise<readonly Settled[]> {
    return this.#results.settle(caller, results);
  }

  /** Reports results without waiting for what the owners make of them; says of each token whether it is one of ours. */
  post(caller: Caller, results: readonly TaskResult[]): Promise<readonly boolean[]> {
    return this.#results.post(caller, results);
  }

  /**
   * What does not fit into an answer was leased in vain. So a worker whose answer was cut is leased about as much as was
   * in it, and twice as much each time that all of it fits.
   */
  #noteRoom(worker: string, { max }: LeaseCall, { tasks, isCut }: HandedOut): void {
    const before = this.#fitting.get(worker);
    if (!isCut && before === undefined) return;
    const next = isCut ? tasks.length + 1 : 2 * before!;
    if (next >= max) this.#fitting.delete(worker);
    else this.#fitting.set(worker, next, 1);
  }

  // ── handing out ───────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * As many of the tasks as one answer takes, at least one. The rest goes back, as does everything if anything goes wrong:
   * a worker that was never told of a task must not count as one that was lost with it.
   */
  async #handOut(caller: Caller, leased: readonly LeasedTask[], lease: Omit<Lease, "roomBytes">): Promise<HandedOut> {
    const given = new Map<LeasedTask, Extract<Offer, { kind: "shown" }>>();
    const settled = new Set<LeasedTask>();
    let bytes = 0;
    let isCut = false;
    try {
      for (const task of leased) {
        const roomBytes = given.size === 0 ? MAX_TASK_BYTES : MAX_LEASE_BYTES - bytes;
        const offer = await this.#offer(caller, task, { ...lease, roomBytes });
        if (offer.kind === "settled") settled.add(task);
        if (offer.kind === "shown") {
          given.set(task, offer);
          bytes += offer.bytes;
        }
        isCut = offer.kind === "noRoom";
        if (isCut) break;
      }
      const left = leased.filter((task) => !settled.has(task) && !given.has(task));
      await this.#handBack(left, caller);
    } catch (error) {
      const open = leased.filter((task) => !settled.has(task));
      // A store that does not even take them back gives them out again when their lease is over.
      await this.#handBack(open, caller).catch(() => undefined);
      throw error;
    }
    for (const isLimited of lease.isParked === true ? [] : [true, false]) {
      const own = [...given.values()].filter((offer) => offer.isLimited === isLimited);
      const afterMs = isLimited ? 0 : Math.min(START_REPORT_MS, lease.leaseMs / 2);
      if (own.length > 0) void this.#reportStarts(own, caller, afterMs);
    }
    return { tasks: [...given.values()].map(({ shown }) => shown), bytes, isCut };
  }

  /** What becomes of one task. */
  async #offer(caller: Caller, task: LeasedTask, lease: Lease): Promise<Offer> {
    const { handlers, leaseMs, roomBytes, isParked } = lease;
    const text = JSON.parse(task.text) as TaskText;
    if (handlers !== undefined && !handlers.includes(text.handler)) return { kind: "notForIt" };
    try {
      const body = await this.#bodies.read(task, text);
      if (body.bytes > MAX_TASK_BYTES) {
        await this.#fail(task, caller, tooLarge(body.bytes));
        return { kind: "settled" };
      }
      if (body.bytes > roomBytes) return { kind: "noRoom" };
      const secrets = secretsOf(body);
      if (isParked === true && secrets.length > 0 && !isMocked(body.config)) {
        await this.#fail(task, caller, secretsParked(secrets));
        return { kind: "settled" };
      }
      const config = await this.#bodies.fill(task, body);
      const mock = isJsonObject(config) ? mockOf(config) : undefined;
      if (mock !== undefined && mock !== true) {
        await this.#settleMock(task, caller, mock, this.#bodies.values(secrets));
        return { kind: "settled" };
      }
      if (secrets.length > 0 && caller.secrets !== true) return { kind: "notForIt" };
      const { ref, token, entity, partition } = task;
      const leasedAtMs = this.#host.wallMs();
      const named = secrets.length > 0 ? { secrets } : {};
      const parked = isParked === true ? { isParked } : {};
      const ticket: Ticket = { ref, token, entity, partition, leaseMs, leasedAtMs, ...named, ...parked };
      const shown = {
        ...(await this.#task(text, ticket, config, body.inputs)),
        ...(secrets.length > 0 && { secrets: this.#bodies.values(secrets) }),
      };
      return { kind: "shown", task, ticket, shown, bytes: body.bytes, isLimited: text.limited === true };
    } catch (error) {
      // What cannot be filled fails the node, as with any other worker; the store's own trouble does not.
      if (!(error instanceof HoleUnfilled)) throw error;
      await this.#fail(task, caller, error);
      return { kind: "settled" };
    }
  }

  async #task(text: TaskText, ticket: Ticket, config: Json, inputs: Json | undefined): Promise<ShownTask> {
    const { execution, node, handler, attempt, generation, delivery, timeoutMs, idempotencyKey, item, iteration } =
      text;
    const instance = parseToken(text.token)?.instance ?? node;
    return {
      task_id: `${execution}:${generation}:${instance}:${attempt}:${delivery}`,
      token: await this.#tickets.seal(ticket),
      execution_id: execution,
      node_id: node,
      handler,
      attempt,
      generation,
      config,
      idempotency_key: idempotencyKey,
      deadline: new Date(this.#host.wallMs() + timeoutMs).toISOString(),
      timeout_seconds: timeoutMs / 1000,
      ...(item !== undefined && { item }),
      ...(iteration !== undefined && { iteration }),
      ...(inputs !== undefined && { inputs }),
    };
  }

  async #handBack(tasks: readonly LeasedTask[], caller: Caller): Promise<void> {
    if (tasks.length === 0) return;
    const settlements = tasks.map((task): Settlement => {
      const { ref, token, partition } = task;
      const text = taskMessage(task, caller.by, { kind: "taskHandedBack", token });
      return { ref, token, partition, outcome: "handedBack", text };
    });
    await this.#store.tasks.settle(settlements);
  }

  async #fail(task: LeasedTask, caller: Caller, { code, message }: Reason): Promise<void> {
    const { ref, token, partition } = task;
    const error = { code, message, retryable: false };
    const text = taskMessage(task, caller.by, { kind: "taskFailed", token, error, runningMs: 0 });
    await this.#store.tasks.settle([{ ref, token, partition, outcome: "failed", text }]);
  }

  /** A node that brings its own result needs nobody to work on it. What a worker may not give, it may not either. */
  async #settleMock(task: LeasedTask, caller: Caller, mock: Json, secrets: readonly string[]): Promise<void> {
    const concealment = new Concealment();
    for (const secret of secrets) concealment.add(secret);
    const storable = storableOutput(mock, concealment);
    if ("error" in storable) return this.#fail(task, caller, storable.error);
    const { ref, token, partition } = task;
    const output = await storedValue(this.#store, task.entity, storable);
    const text = taskMessage(task, caller.by, { kind: "taskCompleted", token, output, runningMs: 0 });
    await this.#store.tasks.settle([{ ref, token, partition, outcome: "completed", text }]);
  }

  /**
   * A worker elsewhere does not say that it has begun. What it still has after a moment, it is working on; if a rate has let
   * it through, others wait for that, and it counts as begun with its lease.
   */
  async #reportStarts(
    given: readonly { readonly task: LeasedTask; readonly ticket: Ticket }[],
    caller: Caller,
    afterMs: number,
  ): Promise<void> {
    if (afterMs > 0) await this.#host.sleep(afterMs);
    const running = given.filter(({ ticket }) => !this.#tickets.isTold(ticket));
    if (running.length === 0) return;
    try {
      // Not by a heartbeat: only the worker itself may extend its lease. The owner knows whether it is still out.
      await this.#store.inbox.append(
        running.map(({ task, ticket }) => {
          const runningMs = this.#tickets.runningMs(ticket);
          const text = taskMessage(task, caller.by, { kind: "taskStarted", token: task.token, runningMs });
          return { partition: task.partition, start: false, text };
        }),
      );
      for (const { ticket } of running) this.#tickets.setTold(ticket);
    } catch {
      // The worker's heartbeat tells it.
    }
  }

  /** Says that a worker is alive, and what it serves: a worker may have several leases under way, for different queues. */
  async #register(worker: string, serves: Serves | undefined): Promise<void> {
    const nowMs = this.#host.monotonicMs();
    const known = this.#told.get(worker);
    const before = known !== undefined && nowMs - known.atMs < WORKER_ALIVE_MS ? known : undefined;
    const handlers = [...new Set([...(before?.handlers ?? []), ...(serves?.handlers ?? [])])];
    const queues = [...new Set([...(before?.queues ?? []), ...(serves?.queues ?? [])])];
    const isNews = handlers.length !== before?.handlers.length || queues.length !== before.queues.length;
    if (!isNews && nowMs - before.atMs < REGISTER_AGAIN_MS) return;
    this.#told.set(worker, { atMs: nowMs, handlers, queues }, 1);
    const process = `gateway-${worker}`;
    const isHeard = handlers.length > 0 || queues.length > 0;
    // Another process may have heard what it serves. If nobody has, it is not ours to tell.
    const text = isHeard ? JSON.stringify({ handlers, queues, via: "gateway" }) : await this.#heardElsewhere(process);
    if (text === undefined) return;
    await this.#store.records.register({ process, role: "worker", text }, WORKER_ALIVE_MS);
  }

  async #heardElsewhere(process: string): Promise<string | undefined> {
    return (await this.#store.records.registered()).find((one) => one.process === process)?.text;
  }
}

/** It needs nobody to work on it. */
function isMocked(config: Json): boolean {
  const mock = isJsonObject(config) ? mockOf(config) : undefined;
  return mock !== undefined && mock !== true;
}

function tooLarge(bytes: number): Reason {
  const message = `What this node is given is ${bytes} bytes; a worker over HTTP can be given ${MAX_TASK_BYTES}`;
  return { code: "RESOLVED_INPUT_TOO_LARGE", message };
}

function secretsParked(names: readonly string[]): Reason {
  const named = names.map((name) => `secrets.${name}`).join(", ");
  const message = `The config names ${named}, and no secret is written to the bus: let workers take this queue over HTTP or from the store`;
  return { code: "SECRET_NOT_SENT", message };
}

function heartbeatSeconds(leaseSeconds: number): number {
  return Math.min(HEARTBEAT_SECONDS, leaseSeconds / 3);
}
