import { mockOf } from "../../core/execution/nodes/engine-node.ts";
import type { TaskText } from "../../core/execution/prepare.ts";
import { entityId } from "../../core/entity.ts";
import type { Answer } from "../../core/machine.ts";
import { type Message, messageText, taskMessage } from "../../core/message.ts";
import { parseToken } from "../../core/token.ts";
import { INLINE_BYTES, type Value } from "../../core/value.ts";
import { fillHoles, HoleUnfilled } from "../../expression/fill-holes.ts";
import type { Host } from "../../host/host.ts";
import { DECISION_TIMEOUT_MS, type Expected, type Requests } from "../../inbox/requests.ts";
import { canonicalHash } from "../../json/canonical.ts";
import { contentHash } from "../../json/hash.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { LeasedTask, Settlement, Store } from "../../store/contract.ts";
import { Concealment } from "../../worker/concealment.ts";
import { heartbeatOf } from "../../worker/delivery.ts";
import { errorValue } from "../../worker/error-value.ts";
import { HandlerError } from "../../worker/handler.ts";
import { storableOutput } from "../../worker/output.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import { HEARTBEAT_SECONDS, WORKER_ALIVE_MS } from "../limits.ts";
import type { Caller } from "./caller.ts";
import { eventsOf } from "./event-view.ts";
import { type ExecutionReader, standing } from "./execution-reader.ts";
import type { HandlerDirectory } from "./handler-directory.ts";
import { Lru } from "./lru.ts";
import { Refusal } from "./refusal.ts";
import type { Signing } from "./signing.ts";

export interface LeaseCall {
  readonly worker_id: string;
  readonly handlers?: readonly string[] | undefined;
  readonly queues?: readonly string[] | undefined;
  readonly max: number;
  readonly wait_ms: number;
  readonly lease_seconds: number;
}

export interface ShownTask {
  readonly task_id: string;
  readonly token: string;
  readonly execution_id: string;
  readonly node_id: string;
  readonly handler: string;
  readonly attempt: number;
  readonly generation: number;
  readonly config: Json;
  readonly idempotency_key: string;
  readonly deadline: string;
  readonly timeout_seconds: number;
  readonly item?: number;
  readonly iteration?: number;
  readonly inputs?: Json;
}

export interface Leased {
  readonly tasks: readonly ShownTask[];
  readonly lease_seconds: number;
  readonly heartbeat_seconds: number;
}

export type TaskResult =
  | { readonly token: string; readonly output: Json; readonly usage?: Json | undefined }
  | { readonly token: string; readonly error: ReportedError };

export interface ReportedError {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly retry_after_seconds?: number | undefined;
  readonly details?: Json | undefined;
}

export interface Settled {
  readonly token: string;
  readonly accepted: boolean;
  readonly recorded?: boolean;
  readonly code?: string;
  /** Of a result that counts no more: how its execution stands. */
  readonly execution?: Json;
}

/** All that any process needs to settle a task, sealed into the token that its worker holds. */
interface Ticket {
  readonly ref: string;
  readonly token: string;
  readonly entity: string;
  readonly partition: number;
  readonly leaseMs: number;
  /** By the clock of the process that leased it. */
  readonly leasedAtMs: number;
  /** The secrets that were filled in, by name: they are cut out of what is reported. */
  readonly secrets?: readonly string[];
}

const PURPOSE = "task";
/** A task that is still running after this long is reported as started. */
const START_REPORT_MS = 1_000;
/** A wait is made of pieces, so that a client that has gone is not given tasks for long. */
const WAIT_PIECE_MS = 1_000;
const REGISTER_AGAIN_MS = 5_000;
const KEPT_LEASES = 1_000;

/**
 * A worker in the name of workers elsewhere: they speak HTTP, hold no credentials of the store, and their tokens name one
 * delivery of one attempt. It decides nothing.
 */
export class Gateway {
  readonly #store: Store;
  readonly #host: Host;
  readonly #requests: Requests;
  readonly #signing: Signing;
  readonly #directory: HandlerDirectory;
  readonly #reader: ExecutionReader;
  readonly #secret: (name: string) => string | undefined;
  /** What was answered to leases with a key: a repeated one must not take other tasks. */
  readonly #leases = new Lru<{ readonly body: string; readonly leased: Promise<Leased> }>(KEPT_LEASES);
  /** When each worker was last said to be alive. */
  readonly #told = new Lru<{ readonly atMs: number; readonly text: string }>(10_000);
  /** Tasks whose start was reported from here. */
  readonly #started = new Lru<true>(100_000);
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
    this.#requests = parts.requests;
    this.#signing = parts.signing;
    this.#directory = parts.directory;
    this.#reader = parts.reader;
    this.#secret = parts.secret;
  }

  /** Whoever waits for tasks is answered soon, and nobody is made to wait any more. */
  close(): void {
    this.#isClosing = true;
  }

  /** Tasks for a worker, as soon as there are any. `gone` is aborted when nobody is there to take them. */
  lease(caller: Caller, call: LeaseCall, gone: AbortSignal): Promise<Leased> {
    const { key, by } = caller;
    if (key === undefined) return this.#lease(caller, call, gone);
    const name = `${by} ${key}`;
    const body = canonicalHash(call as unknown as Json);
    const before = this.#leases.get(name);
    if (before !== undefined) {
      if (before.body !== body) throw new MillraceError("IDEMPOTENCY_KEY_REUSED", {});
      return before.leased;
    }
    const leased = this.#lease(caller, call, gone);
    this.#leases.set(name, { body, leased }, 1);
    leased.catch(() => this.#leases.delete(name));
    return leased;
  }

  async #lease(caller: Caller, call: LeaseCall, gone: AbortSignal): Promise<Leased> {
    const { worker_id, handlers, max, wait_ms, lease_seconds } = call;
    const queues = handlers ?? call.queues ?? [];
    await this.#register(worker_id, { handlers: handlers ?? [], queues });
    if (handlers !== undefined) await this.#directory.note(handlers);
    const leaseMs = Math.round(lease_seconds * 1000);
    const untilMs = this.#host.monotonicMs() + wait_ms;
    const tasks: ShownTask[] = [];
    const answer = (): Leased => ({ tasks, lease_seconds, heartbeat_seconds: heartbeatSeconds(lease_seconds) });
    for (;;) {
      const leftMs = this.#isClosing ? 0 : untilMs - this.#host.monotonicMs();
      const waitMs = Math.max(0, Math.min(leftMs, WAIT_PIECE_MS));
      const worker = `gateway-${worker_id}`;
      const askedAtMs = this.#host.monotonicMs();
      const leased = await this.#store.tasks.lease({ worker, queues, max, leaseMs, waitMs });
      if (gone.aborted) {
        await this.#handBack(leased, caller);
        return answer();
      }
      tasks.push(...(await this.#shown(caller, leased, handlers, leaseMs)));
      if (tasks.length > 0 || leftMs <= WAIT_PIECE_MS) return answer();
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
  ): Promise<{ readonly cancelled: readonly string[] }> {
    await this.#register(worker, undefined);
    const cancelled: string[] = [];
    const byLease = new Map<number, { sealed: string; ticket: Ticket }[]>();
    for (const sealed of tokens) {
      const ticket = await this.#open(sealed);
      if (ticket === undefined) cancelled.push(sealed);
      else byLease.set(ticket.leaseMs, [...(byLease.get(ticket.leaseMs) ?? []), { sealed, ticket }]);
    }
    for (const [leaseMs, held] of byLease) {
      const beats = held.map(({ ticket }) => {
        const isNews = this.#started.get(ticket.token) === undefined;
        return heartbeatOf(ticket, `gateway-${worker}`, isNews ? this.#runningMs(ticket) : undefined);
      });
      const outcome = await this.#store.tasks.heartbeat(beats, leaseMs);
      const over = new Set([...outcome.lost, ...outcome.cancelled]);
      for (const { sealed, ticket } of held) {
        this.#started.set(ticket.token, true, 1);
        if (over.has(ticket.token)) cancelled.push(sealed);
      }
    }
    return { cancelled };
  }

  /** Reports results, and tells what the owners made of them: one call of the store for all. */
  async settle(caller: Caller, results: readonly TaskResult[]): Promise<readonly Settled[]> {
    const drafts = await Promise.all(results.map((result) => this.#draft(caller, result)));
    const valid = drafts.filter((draft) => "settlement" in draft);
    let outcomes: readonly string[] = [];
    try {
      if (valid.length > 0) outcomes = await this.#store.tasks.settle(valid.map(({ settlement }) => settlement));
    } catch (cause) {
      for (const { expected } of valid) void expected.wait(0);
      throw new Refusal("STORE_UNAVAILABLE", {}, { retryAfterSeconds: 1 }, { cause });
    }
    return Promise.all(
      results.map(async ({ token }, i): Promise<Settled> => {
        const draft = drafts[i]!;
        if (!("settlement" in draft)) return { token, accepted: false, code: "TASK_TOKEN_INVALID" };
        const isStale = outcomes[valid.indexOf(draft)] === "stale";
        const answer = await draft.expected.wait(isStale ? 0 : DECISION_TIMEOUT_MS);
        const settled = isStale ? await this.#repeated(draft.ticket) : verdict(answer, draft.unfit);
        if (settled.code !== "STALE_ATTEMPT") return { token, ...settled };
        const execution = await this.#reader.read(entityId(draft.ticket.entity), ({ state }) => standing(state));
        return { token, ...settled, execution };
      }),
    );
  }

  // ── handing out ───────────────────────────────────────────────────────────────────────────────────────────────

  async #shown(
    caller: Caller,
    leased: readonly LeasedTask[],
    handlers: readonly string[] | undefined,
    leaseMs: number,
  ): Promise<readonly ShownTask[]> {
    const shown: ShownTask[] = [];
    const notForIt: LeasedTask[] = [];
    const given: { task: LeasedTask; ticket: Ticket }[] = [];
    for (const task of leased) {
      const text = JSON.parse(task.text) as TaskText;
      if (handlers !== undefined && !handlers.includes(text.handler)) {
        notForIt.push(task);
        continue;
      }
      try {
        const { config, inputs, secrets } = await this.#given(task, text);
        const mock = isJsonObject(config) ? mockOf(config) : undefined;
        if (mock !== undefined && mock !== true) {
          await this.#settleMock(task, caller, mock);
          continue;
        }
        if (secrets.length > 0 && caller.secrets !== true) {
          notForIt.push(task);
          continue;
        }
        const { ref, token, entity, partition } = task;
        const leasedAtMs = this.#host.wallMs();
        const ticket: Ticket = {
          ref,
          token,
          entity,
          partition,
          leaseMs,
          leasedAtMs,
          ...(secrets.length > 0 && { secrets }),
        };
        given.push({ task, ticket });
        shown.push(await this.#task(text, ticket, config, inputs));
      } catch (error) {
        // What cannot be filled fails the node, as with any other worker; the store's own trouble does not.
        if (!(error instanceof HoleUnfilled)) {
          await this.#handBack(leased, caller);
          throw error;
        }
        await this.#fail(task, caller, error);
      }
    }
    if (notForIt.length > 0) await this.#handBack(notForIt, caller);
    if (given.length > 0) void this.#reportStarts(given, caller, leaseMs);
    return shown;
  }

  async #task(text: TaskText, ticket: Ticket, config: Json, inputs: Json | undefined): Promise<ShownTask> {
    const { execution, node, handler, attempt, generation, delivery, timeoutMs, idempotencyKey, item, iteration } =
      text;
    const instance = parseToken(text.token)?.instance ?? node;
    return {
      task_id: `${execution}:${generation}:${instance}:${attempt}:${delivery}`,
      token: await this.#signing.seal(PURPOSE, JSON.stringify(ticket)),
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

  /** Config and inputs, fetched if they were too large for the task, with every hole filled. */
  async #given(
    task: LeasedTask,
    text: TaskText,
  ): Promise<{ config: Json; inputs: Json | undefined; secrets: readonly string[] }> {
    let body = { config: text.config ?? null, holes: text.holes ?? [], inputs: text.inputs };
    if (text.body !== undefined) body = (await this.#blob(task, text.body.hash)) as unknown as typeof body;
    const blobs = new Map<string, Json>();
    const secrets = new Set<string>();
    for (const hole of body.holes) {
      if (hole.kind === "blob") blobs.set(hole.ref.hash, await this.#blob(task, hole.ref.hash));
      else for (const part of hole.parts) if ("secret" in part) secrets.add(part.secret);
    }
    const config = fillHoles(body.config, body.holes, { secret: this.#secret, blob: (hash) => blobs.get(hash) });
    return { config, inputs: body.inputs, secrets: [...secrets] };
  }

  async #blob(task: LeasedTask, hash: string): Promise<Json> {
    const [text] = await this.#store.records.get([{ scope: task.entity, hash }]);
    if (typeof text !== "string") throw new HoleUnfilled("VALUE_MISSING", `The value ${hash} is not in the store`);
    return JSON.parse(text) as Json;
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

  async #fail(task: LeasedTask, caller: Caller, { code, message }: HoleUnfilled): Promise<void> {
    const { ref, token, partition } = task;
    const error = { code, message, retryable: false };
    const text = taskMessage(task, caller.by, { kind: "taskFailed", token, error, runningMs: 0 });
    await this.#store.tasks.settle([{ ref, token, partition, outcome: "failed", text }]);
  }

  /** A node that brings its own result needs nobody to work on it. */
  async #settleMock(task: LeasedTask, caller: Caller, mock: Json): Promise<void> {
    const { ref, token, partition } = task;
    const output = await this.#value(task, { json: mock, text: JSON.stringify(mock) });
    const text = taskMessage(task, caller.by, { kind: "taskCompleted", token, output, runningMs: 0 });
    await this.#store.tasks.settle([{ ref, token, partition, outcome: "completed", text }]);
  }

  /** A worker elsewhere does not say that it has begun. What it still has after a moment, it is working on. */
  async #reportStarts(
    given: readonly { readonly task: LeasedTask; readonly ticket: Ticket }[],
    caller: Caller,
    leaseMs: number,
  ): Promise<void> {
    await this.#host.sleep(Math.min(START_REPORT_MS, leaseMs / 2));
    const running = given.filter(({ ticket }) => this.#started.get(ticket.token) === undefined);
    if (running.length === 0) return;
    try {
      // Not by a heartbeat: only the worker itself may extend its lease. The owner knows whether it is still out.
      await this.#store.inbox.append(
        running.map(({ task, ticket }) => {
          const runningMs = this.#runningMs(ticket);
          const text = taskMessage(task, caller.by, { kind: "taskStarted", token: task.token, runningMs });
          return { partition: task.partition, start: false, text };
        }),
      );
      for (const { ticket } of running) this.#started.set(ticket.token, true, 1);
    } catch {
      // The worker's heartbeat tells it.
    }
  }

  async #register(
    worker: string,
    serves: { readonly handlers: readonly string[]; readonly queues: readonly string[] } | undefined,
  ): Promise<void> {
    const before = this.#told.get(worker);
    const text = serves === undefined ? (before?.text ?? "{}") : JSON.stringify({ ...serves, via: "gateway" });
    const nowMs = this.#host.monotonicMs();
    if (before !== undefined && before.text === text && nowMs - before.atMs < REGISTER_AGAIN_MS) return;
    this.#told.set(worker, { atMs: nowMs, text }, 1);
    // Without having heard what it serves, it is not ours to tell.
    if (text === "{}") return;
    await this.#store.records.register({ process: `gateway-${worker}`, role: "worker", text }, WORKER_ALIVE_MS);
  }

  // ── taking back ───────────────────────────────────────────────────────────────────────────────────────────────

  async #draft(caller: Caller, result: TaskResult): Promise<Draft | { readonly token: string }> {
    const ticket = await this.#open(result.token);
    if (ticket === undefined) return { token: result.token };
    this.#started.set(ticket.token, true, 1);
    const { ref, token, partition } = ticket;
    const concealment = this.#concealment(ticket);
    const runningMs = this.#runningMs(ticket);
    const expected = this.#requests.expect();
    const settlement = (body: Message["body"]): Settlement => ({
      ref,
      token,
      partition,
      outcome: body.kind === "taskCompleted" ? "completed" : "failed",
      text: messageText({
        id: `${body.kind}:${token}`,
        to: ticket.entity,
        by: caller.by,
        trace: caller.trace,
        tenant: caller.tenant,
        reply: expected.address,
        body,
      }),
    });
    if ("error" in result) {
      const { code = "HANDLER_ERROR", message = "", retryable = true, details, retry_after_seconds } = result.error;
      const error = errorValue(
        new HandlerError(code, message, { retryable, ...(details !== undefined && { details }) }),
        concealment,
      );
      const retryAfterMs = retry_after_seconds === undefined ? {} : { retryAfterMs: retry_after_seconds * 1000 };
      return {
        ticket,
        expected,
        settlement: settlement({ kind: "taskFailed", token, error, runningMs, ...retryAfterMs }),
      };
    }
    const output = storableOutput(result.output, concealment);
    if ("error" in output) {
      const { error } = output;
      return {
        ticket,
        expected,
        unfit: error.code,
        settlement: settlement({ kind: "taskFailed", token, error, runningMs }),
      };
    }
    const value = await this.#value(ticket, output);
    const usage = result.usage === undefined ? {} : { usage: result.usage };
    return {
      ticket,
      expected,
      settlement: settlement({ kind: "taskCompleted", token, output: value, runningMs, ...usage }),
    };
  }

  async #value({ entity }: { readonly entity: string }, { json, text }: { json: Json; text: string }): Promise<Value> {
    const bytes = Buffer.byteLength(text);
    if (bytes <= INLINE_BYTES) return bytes >= 1024 ? { json, bytes } : { json };
    const hash = contentHash(text);
    await this.#store.records.put([{ scope: entity, hash, text }]);
    return { blob: { hash, bytes } };
  }

  #concealment({ secrets = [] }: Ticket): Concealment {
    const concealment = new Concealment();
    for (const name of secrets) {
      const secret = this.#secret(name);
      if (secret !== undefined) concealment.add(secret);
    }
    return concealment;
  }

  /** A failure whose task is gone: the very same one that was reported before, or one that counts no more. */
  async #repeated({ entity, token }: Ticket): Promise<{ readonly accepted: boolean; readonly code?: string }> {
    const stale = { accepted: false, code: "STALE_ATTEMPT" };
    const dispatch = parseToken(token);
    if (dispatch === undefined) return { accepted: false, code: "TASK_TOKEN_INVALID" };
    const node = dispatch.instance.replace(/@\d+$/, "");
    let generation = 1;
    for (const [, event] of eventsOf(await this.#reader.events(entityId(entity), 0), 0)) {
      if (event.kind === "generationOpened") ({ generation } = event);
      const isIt =
        event.kind === "taskFailed" &&
        generation === dispatch.generation &&
        event.node === node &&
        event.attempt === dispatch.attempt &&
        event.delivery === dispatch.delivery &&
        event.deadline === undefined;
      if (isIt) return { accepted: true };
    }
    return stale;
  }

  #runningMs({ leasedAtMs }: Ticket): number {
    return Math.max(0, Math.round(this.#host.wallMs() - leasedAtMs));
  }

  async #open(sealed: string): Promise<Ticket | undefined> {
    const text = await this.#signing.open(PURPOSE, sealed);
    return text === undefined ? undefined : (JSON.parse(text) as Ticket);
  }
}

interface Draft {
  readonly ticket: Ticket;
  readonly expected: Expected;
  readonly settlement: Settlement;
  /** Why the output failed its node. */
  readonly unfit?: string;
}

/** What the owner's answer means to the worker. */
function verdict(answer: Answer | undefined, unfit: string | undefined): Omit<Settled, "token"> {
  if (answer === undefined) return { accepted: false, code: "NO_OWNER" };
  if ("refused" in answer) {
    return { accepted: false, code: answer.refused === "NOT_FOUND" ? "TASK_TOKEN_INVALID" : answer.refused };
  }
  if (unfit !== undefined) return { accepted: false, code: unfit };
  const { accepted, recorded } = answer.ok as { readonly accepted: boolean; readonly recorded?: boolean };
  return { accepted, ...(recorded !== undefined && { recorded }) };
}

function heartbeatSeconds(leaseSeconds: number): number {
  return Math.min(HEARTBEAT_SECONDS, leaseSeconds / 3);
}
