import type { TaskText } from "../core/execution/prepare.ts";
import { taskMessage } from "../core/message.ts";
import type { ErrorValue } from "../core/message.ts";
import { INLINE_BYTES, type Value } from "../core/value.ts";
import type { Host } from "../host/host.ts";
import { checkJson } from "../json/check-json.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import type { Heartbeat, LeasedTask, Settlement, Store } from "../store/contract.ts";
import { errorValue } from "./error-value.ts";
import { fillHoles, HoleUnfilled } from "../expression/fill-holes.ts";
import { type Handler, HandlerError } from "./handler.ts";

export interface WorkerOptions {
  readonly store: Store;
  readonly host: Host;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly queues: readonly string[];
  readonly settings?: Partial<WorkerSettings>;
  /** Where `{{ secrets.NAME }}` comes from. */
  readonly secret?: (name: string) => string | undefined;
  readonly observer?: WorkerObserver;
}

export interface WorkerSettings {
  readonly slots: number;
  /** How long a task stays ours without a heartbeat. */
  readonly leaseMs: number;
  readonly heartbeatMs: number;
  /** A task still running after this long is reported as started. */
  readonly startReportMs: number;
  readonly pollMs: number;
  /** How long a stop waits for handlers before their tasks are handed back. */
  readonly graceMs: number;
}

export const DEFAULT_WORKER_SETTINGS: WorkerSettings = {
  slots: 4,
  leaseMs: 15_000,
  heartbeatMs: 5_000,
  startReportMs: 1_000,
  pollMs: 1_000,
  graceMs: 30_000,
};

/** What a history of this worker is made of. */
export interface WorkerObserver {
  delivered?(task: TaskText): void;
  started?(task: TaskText): void;
  ended?(task: TaskText, output: Json | undefined): void;
  settled?(task: TaskText, outcome: string): void;
}

const MAX_OUTPUT_BYTES = 1024 * 1024;
const SETTLE_RETRY_MS = 500;
const ENDED = "ended";

interface Running {
  readonly leased: LeasedTask;
  readonly startedAtMs: number;
  readonly abort: AbortController;
  /** When the start was reported; one report is enough. */
  reported: boolean;
  /** Its time was up: whatever its handler says from then on, that is how it ended. */
  timedOut: boolean;
  /** Why nobody waits for its result any more. */
  gone: "lost" | "cancelled" | null;
}

/**
 * Takes tasks only when it has a free slot, runs their handlers, keeps the leases alive, and posts each result to the
 * owner's inbox. It decides nothing.
 */
export class Worker {
  readonly name: string;
  private readonly store: Store;
  private readonly host: Host;
  private readonly options: WorkerOptions;
  private readonly settings: WorkerSettings;
  private readonly running = new Map<string, Running>();
  private readonly stopping = new AbortController();
  /** After the last hand-back: nothing is left to keep alive. */
  private readonly ended = new AbortController();
  private loops: Promise<unknown> | undefined;
  private freed: (() => void) | undefined;

  constructor(options: WorkerOptions) {
    this.options = options;
    this.store = options.store;
    this.host = options.host;
    this.settings = { ...DEFAULT_WORKER_SETTINGS, ...options.settings };
    this.name = `worker-${options.host.id()}`;
  }

  start(): void {
    this.loops = Promise.all([this.take(), this.beat()]);
  }

  /** Stops taking, waits for what runs, and hands back the rest without using up its attempts. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.freed?.();
    const waitUntilMs = this.host.monotonicMs() + this.settings.graceMs;
    while (this.running.size > 0 && this.host.monotonicMs() < waitUntilMs) await this.host.sleep(50);
    const left = [...this.running.values()];
    for (const one of left) {
      one.gone = "lost";
      one.abort.abort();
    }
    if (left.length > 0) await this.handBack(left.map((one) => one.leased));
    this.ended.abort();
    await this.loops;
  }

  private async take(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const free = this.settings.slots - this.running.size;
      if (free <= 0) {
        await new Promise<void>((resolve) => (this.freed = resolve));
        continue;
      }
      try {
        const { leaseMs, pollMs } = this.settings;
        const { queues } = this.options;
        const request = { worker: this.name, queues, max: free, leaseMs, waitMs: pollMs };
        const tasks = await this.store.tasks.lease(request);
        if (this.stopping.signal.aborted) await this.handBack(tasks);
        else for (const leased of tasks) void this.run(leased);
      } catch {
        await this.host.sleep(SETTLE_RETRY_MS, this.stopping.signal);
      }
    }
  }

  /** One task from beginning to end. Never rejects: whatever goes wrong becomes a result. */
  private async run(leased: LeasedTask): Promise<void> {
    const startedAtMs = this.host.monotonicMs();
    const running: Running = {
      leased,
      startedAtMs,
      abort: new AbortController(),
      reported: false,
      timedOut: false,
      gone: null,
    };
    this.running.set(leased.token, running);
    try {
      const task = JSON.parse(leased.text) as TaskText;
      this.watch("delivered", task);
      const settlement = await this.result(task, running);
      if (running.gone !== "lost") await this.settle(task, settlement, running);
    } catch {
      // A task that cannot even be read, or a bug of ours: its lease runs out, and after three times it is poison.
    } finally {
      this.running.delete(leased.token);
      this.freed?.();
    }
  }

  /** Whoever only watches must not change what comes of a task. */
  private watch<Event extends keyof WorkerObserver>(
    event: Event,
    ...args: Parameters<Required<WorkerObserver>[Event]>
  ): void {
    try {
      (this.options.observer?.[event] as ((...given: unknown[]) => void) | undefined)?.(...args);
    } catch {
      // Theirs, not ours.
    }
  }

  private async result(task: TaskText, running: Running): Promise<Settlement> {
    const { leased } = running;
    const ran = await this.call(task, running);
    const runningMs = Math.round(this.host.monotonicMs() - running.startedAtMs);
    const { ref, token, partition } = leased;
    if ("error" in ran) {
      const { error, retryAfterMs } = ran;
      const body = {
        kind: "taskFailed" as const,
        token,
        error,
        runningMs,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      };
      return { ref, token, partition, outcome: "failed", text: taskMessage(leased, this.name, body) };
    }
    const body = { kind: "taskCompleted" as const, token, output: ran.output, runningMs };
    return { ref, token, partition, outcome: "completed", text: taskMessage(leased, this.name, body) };
  }

  private async call(
    task: TaskText,
    running: Running,
  ): Promise<{ output: Value } | { error: ErrorValue; retryAfterMs?: number }> {
    const handler = this.options.handlers.get(task.handler);
    if (handler === undefined) {
      const message = `This worker has no handler ${task.handler}`;
      return { error: { code: "UNKNOWN_HANDLER", message, retryable: false } };
    }
    try {
      const given = await this.given(task, running);
      this.watch("started", task);
      const output = await this.withTimeout(handler, task, given, running);
      this.watch("ended", task, output);
      return await this.outputValue(running.leased, output);
    } catch (error) {
      if (error instanceof HoleUnfilled) {
        return { error: { code: error.code, message: error.message, retryable: false } };
      }
      return { error: errorValue(error), ...retryAfter(error) };
    }
  }

  /** Config and inputs, fetched if they were too large for the task, with every hole filled. */
  private async given(task: TaskText, running: Running): Promise<{ config: Json; inputs: Json | undefined }> {
    let body = { config: task.config ?? null, holes: task.holes ?? [], inputs: task.inputs };
    if (task.body !== undefined) body = (await this.blob(running.leased, task.body.hash)) as unknown as typeof body;
    const blobs = new Map<string, Json>();
    for (const hole of body.holes) {
      if (hole.kind === "blob") blobs.set(hole.ref.hash, await this.blob(running.leased, hole.ref.hash));
    }
    const secret = this.options.secret ?? (() => undefined);
    const config = fillHoles(body.config, body.holes, { secret, blob: (hash) => blobs.get(hash) });
    return { config, inputs: body.inputs };
  }

  private async blob(leased: LeasedTask, hash: string): Promise<Json> {
    const [text] = await this.patiently(() => this.store.records.get([{ scope: leased.entity, hash }]));
    if (text === null || text === undefined)
      throw new HoleUnfilled("VALUE_MISSING", `The value ${hash} is not in the store`);
    return JSON.parse(text) as Json;
  }

  /** The store's trouble is not the handler's: it is tried again for as long as the lease may hold. */
  private async patiently<T>(call: () => Promise<T>): Promise<T> {
    const untilMs = this.host.monotonicMs() + this.settings.leaseMs;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (this.host.monotonicMs() >= untilMs) throw error;
        await this.host.sleep(SETTLE_RETRY_MS);
      }
    }
  }

  private async withTimeout(
    handler: Handler,
    task: TaskText,
    given: { config: Json; inputs: Json | undefined },
    running: Running,
  ): Promise<Json> {
    const { signal } = running.abort;
    const ended = new AbortController();
    const timeout = this.host.sleep(task.timeoutMs, ended.signal).then((): Json => {
      if (ended.signal.aborted) return null;
      running.timedOut = true;
      running.abort.abort();
      return null;
    });
    try {
      const work = Promise.resolve(
        handler({
          executionId: task.execution,
          nodeId: task.node,
          attempt: task.attempt,
          generation: task.generation,
          config: given.config,
          inputs: given.inputs,
          idempotencyKey: task.idempotencyKey,
          token: task.token,
          timeoutMs: task.timeoutMs,
          signal,
        }),
      );
      const output = (await Promise.race([work, timeout])) ?? null;
      if (running.timedOut) throw timeOut(task);
      return output;
    } catch (error) {
      // A handler that minds the signal throws because of it; that is our doing, not its failure.
      throw running.timedOut ? timeOut(task) : error;
    } finally {
      // With a reason of our own: making up an exception with its stack for every task is dear.
      ended.abort(ENDED);
    }
  }

  /** A result is checked before it is posted: what cannot be stored fails its node and harms nothing else. */
  private async outputValue(leased: LeasedTask, output: Json): Promise<{ output: Value } | { error: ErrorValue }> {
    const fault = checkJson(output);
    if (fault !== undefined) {
      const message = `The output cannot be stored: the value at "${fault.pointer}" ${fault.reason}`;
      return { error: { code: "OUTPUT_INVALID", message, retryable: false } };
    }
    const text = JSON.stringify(output);
    const bytes = Buffer.byteLength(text);
    if (bytes > MAX_OUTPUT_BYTES) {
      const message = `The output is ${bytes} bytes; ${MAX_OUTPUT_BYTES} are allowed`;
      return { error: { code: "OUTPUT_TOO_LARGE", message, retryable: false } };
    }
    if (bytes <= INLINE_BYTES) return { output: bytes >= 1024 ? { json: output, bytes } : { json: output } };
    const hash = contentHash(text);
    await this.patiently(() => this.store.records.put([{ scope: leased.entity, hash, text }]));
    return { output: { blob: { hash, bytes } } };
  }

  /** Posts the result, again and again while the lease may still be ours; after that it is somebody else's task. */
  private async settle(task: TaskText, settlement: Settlement, running: Running): Promise<void> {
    const untilMs = this.host.monotonicMs() + this.settings.leaseMs;
    do {
      try {
        const [outcome] = await this.store.tasks.settle([settlement]);
        this.watch("settled", task, outcome!);
        return;
      } catch {
        await this.host.sleep(SETTLE_RETRY_MS);
      }
    } while (running.gone === null && this.host.monotonicMs() < untilMs);
  }

  private async handBack(tasks: readonly LeasedTask[]): Promise<void> {
    if (tasks.length === 0) return;
    const settlements = tasks.map((leased): Settlement => {
      const { ref, token, partition } = leased;
      const text = taskMessage(leased, this.name, { kind: "taskHandedBack", token });
      return { ref, token, partition, outcome: "handedBack", text };
    });
    try {
      await this.store.tasks.settle(settlements);
    } catch {
      // The leases run out.
    }
  }

  private async beat(): Promise<void> {
    let beatAtMs = this.host.monotonicMs();
    while (!this.ended.signal.aborted) {
      await this.host.sleep(this.settings.startReportMs, this.ended.signal);
      const nowMs = this.host.monotonicMs();
      const all = nowMs - beatAtMs >= this.settings.heartbeatMs;
      if (all) beatAtMs = nowMs;
      const due = [...this.running.values()].filter((one) => all || !one.reported);
      if (due.length > 0) await this.beatOnce(due, nowMs);
    }
  }

  private async beatOnce(due: readonly Running[], nowMs: number): Promise<void> {
    const beats = due.map(({ leased, reported, startedAtMs }): Heartbeat => {
      const { ref, token, partition } = leased;
      if (reported) return { ref, token };
      const body = { kind: "taskStarted" as const, token, runningMs: Math.round(nowMs - startedAtMs) };
      return { ref, token, started: { partition, text: taskMessage(leased, this.name, body) } };
    });
    try {
      const { lost, cancelled } = await this.store.tasks.heartbeat(beats, this.settings.leaseMs);
      for (const one of due) one.reported = true;
      for (const token of lost) this.letGo(token, "lost");
      for (const token of cancelled) this.letGo(token, "cancelled");
    } catch {
      // The next beat will tell; the lease lasts for three.
    }
  }

  private letGo(token: string, why: "lost" | "cancelled"): void {
    const running = this.running.get(token);
    if (running === undefined) return;
    running.gone = why;
    running.abort.abort();
  }
}

function retryAfter(thrown: unknown): { retryAfterMs?: number } {
  try {
    const retryAfterMs = (thrown as { retryAfterMs?: unknown } | null | undefined)?.retryAfterMs;
    return typeof retryAfterMs === "number" && Number.isFinite(retryAfterMs) ? { retryAfterMs } : {};
  } catch {
    return {};
  }
}

function timeOut(task: TaskText): HandlerError {
  return new HandlerError("TIMEOUT", `The handler did not end within ${task.timeoutMs} ms`, { retryable: true });
}
