import type { TaskText } from "../core/execution/prepare.ts";
import { taskMessage } from "../core/message.ts";
import { SlotMap } from "../core/slot-map.ts";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { LeasedTask, Settlement, Store } from "../store/contract.ts";
import { Delivery, heartbeatOf, type LogEntry } from "./delivery.ts";
import type { Handler } from "./handler.ts";
import { type HeartbeatSource, HeartbeatThread } from "./heartbeat-thread.ts";
import { AvoidedQueues } from "./avoided-queues.ts";
import { Running } from "./running.ts";
import { settlementOf } from "./settlement.ts";
import { type Slots, slotsOf } from "./slots.ts";
import { type Called, type Outcome, TaskCaller } from "./task-caller.ts";

export interface WorkerOptions {
  readonly store: Store;
  readonly host: Host;
  readonly handlers: ReadonlyMap<string, Handler>;
  /** Looked into whenever tasks are taken: it may change. */
  readonly queues: readonly string[];
  /** How many tasks of a handler run at a time, in slots of its own instead of the shared ones; by handler. */
  readonly ownSlots?: ReadonlyMap<string, number>;
  readonly settings?: Partial<WorkerSettings>;
  /** Where `{{ secrets.NAME }}` comes from. */
  readonly secret?: (name: string) => string | undefined;
  readonly observer?: WorkerObserver;
  /** By default the event loop. */
  readonly leases?: LeaseKeeping;
}

/**
 * Who keeps the leases while a handler keeps the event loop busy.
 *
 * - `loop`: nobody. A handler that blocks for longer than a lease loses all tasks of its worker.
 * - `thread`: a thread with a connection of its own, for as long as the process lives. For stores that several
 *   processes share.
 * - `process`: nobody has to. The queues are in the memory of this very process, so that the worker cannot be lost
 *   without them; its leases last until it has had time to say something.
 */
export type LeaseKeeping =
  | { readonly kind: "loop" }
  | { readonly kind: "thread"; readonly source: HeartbeatSource }
  | { readonly kind: "process" };

export interface WorkerSettings {
  readonly slots: number;
  /** How long a task stays ours without a heartbeat. */
  readonly leaseMs: number;
  /** Also how long a handler that was asked to stop may take before its attempt ends without it. */
  readonly heartbeatMs: number;
  /** A task still running after this long is reported as started. */
  readonly startReportMs: number;
  /** The same for a task that a rate has let through: others wait to hear that it has begun. */
  readonly limitedReportMs: number;
  readonly pollMs: number;
  /** How long a stop waits for handlers before their tasks are handed back. */
  readonly graceMs: number;
  /** A task whose handler nobody has known for so many deliveries fails: nothing may go round for ever. */
  readonly maxUnknownDeliveries: number;
}

const DEFAULT_WORKER_SETTINGS: WorkerSettings = {
  slots: 4,
  leaseMs: 15_000,
  heartbeatMs: 5_000,
  startReportMs: 1_000,
  limitedReportMs: 20,
  pollMs: 1_000,
  graceMs: 30_000,
  maxUnknownDeliveries: 1_000,
};

/** What a history of this worker is made of. No secret is in it. */
export interface WorkerObserver {
  delivered?(task: TaskText): void;
  started?(task: TaskText): void;
  ended?(task: TaskText, output: Json | undefined): void;
  settled?(task: TaskText, outcome: string): void;
  logged?(task: TaskText, entry: LogEntry): void;
  /**
   * How many handlers were given up and still keep their slots. Told when the handler of this task becomes one of them, and when it
   * ends at last. 0 = all is well again.
   */
  degraded?(deaf: number, task: TaskText, hasEnded: boolean): void;
  /** A task that was given back, since nobody here knows its handler. */
  unknownHandler?(task: TaskText, queue: string): void;
  /** The thread that kept the leases has ended; the event loop does it from now on. */
  heartbeatThreadLost?(reason: string): void;
  /** It does not reach the store, and the worker keeps the leases itself; or it does again. */
  heartbeatThreadSilent?(isSilent: boolean): void;
}

const SETTLE_RETRY_MS = 500;
/** Longer than any handler blocks; and an embedded worker that is dropped without a stop does not hold tasks for ever. */
const IN_PROCESS_LEASE_MS = 3_600_000;

/** How many dispatches are remembered after their results were posted. */
const MAX_REPORTED = 1_000;

/** How many results are posted in one call. */
const MAX_POSTED = 250;

/** A result on its way. */
class Finished {
  readonly task: TaskText;
  readonly delivery: Delivery;
  readonly settlement: Settlement;
  readonly slots: Slots;
  readonly deaf: Promise<void> | undefined;

  constructor(task: TaskText, delivery: Delivery, settlement: Settlement, slots: Slots, deaf?: Promise<void>) {
    this.task = task;
    this.delivery = delivery;
    this.settlement = settlement;
    this.slots = slots;
    this.deaf = deaf;
  }
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
  private readonly running = new Running();
  /** What runs, by its dispatch, where leases have tokens of their own. */
  private readonly dispatched = new SlotMap<string, Delivery>();
  /** The last dispatches whose results the store has. */
  private readonly reported = new Set<string>();
  private readonly slots: readonly [Slots, ...Slots[]];
  private readonly avoided = new AvoidedQueues();
  private readonly stopping = new AbortController();
  /** After the last hand-back: nothing is left to keep alive. */
  private readonly ended = new AbortController();
  private loops: Promise<unknown> | undefined;
  private thread: HeartbeatThread | undefined;
  private isThreadSilent = false;
  private readonly caller: TaskCaller;
  /** Tasks that have begun and of which somebody waits to hear it; they are told together. */
  private begun: Delivery[] = [];
  /** What came of this turn of the event loop; it is posted together. */
  private finished: Finished[] = [];
  /** Handlers that were given up and still run, with the slots that they keep. */
  private readonly deaf = new Set<{ readonly task: TaskText; readonly slots: Slots }>();

  constructor(options: WorkerOptions) {
    this.options = options;
    this.store = options.store;
    this.host = options.host;
    const settings = { ...DEFAULT_WORKER_SETTINGS, ...options.settings };
    const leaseMs = options.leases?.kind === "process" ? IN_PROCESS_LEASE_MS : settings.leaseMs;
    this.settings = { ...settings, leaseMs: Math.max(leaseMs, settings.leaseMs) };
    this.name = `worker-${options.host.id()}`;
    this.slots = slotsOf(settings.slots, options.ownSlots ?? new Map(), options.queues);
    this.caller = new TaskCaller({
      store: options.store,
      host: options.host,
      secret: options.secret,
      hardMs: this.settings.heartbeatMs,
      patienceMs: this.settings.leaseMs,
      retryMs: SETTLE_RETRY_MS,
      started: (task) => this.watch("started", task),
      ended: (task, output) => this.watch("ended", task, output),
      logged: (task, entry) => this.watch("logged", task, entry),
    });
  }

  /** How many tasks it is working on. */
  get load(): number {
    return this.running.size;
  }

  /** Handlers that were asked to end and have not still keep their slots: fewer tasks run here than could. */
  get degraded(): boolean {
    return this.deaf.size > 0;
  }

  /** What those handlers were called for. */
  get notStopping(): readonly TaskText[] {
    return [...this.deaf].map(({ task }) => task);
  }

  /** The queues from which it takes nothing until one of them ends: they keep every slot there is for these. */
  get stuckQueues(): readonly string[] {
    const kept = (slots: Slots): number => [...this.deaf].filter((one) => one.slots === slots).length;
    return this.slots.filter((slots) => kept(slots) >= slots.size).flatMap((slots) => slots.queues());
  }

  start(): void {
    if (this.options.leases?.kind === "thread") this.startThread(this.options.leases.source);
    this.loops = Promise.all([...this.slots.map((slots) => this.take(slots)), this.beat()]);
  }

  /** Stops taking, waits for what runs, and hands back the rest without using up its attempts. */
  async stop(): Promise<void> {
    this.stopping.abort();
    for (const slots of this.slots) slots.wake();
    const waitUntilMs = this.host.monotonicMs() + this.settings.graceMs;
    while (this.unsettled().length > 0 && this.host.monotonicMs() < waitUntilMs) await this.host.sleep(50);
    const left = this.unsettled();
    for (const one of left) {
      one.gone = "lost";
      one.abort.abort();
    }
    if (left.length > 0) await this.handBack(left.map((one) => one.leased));
    this.ended.abort();
    await this.thread?.close();
    // A poll that is still waiting gives back what it is given. Where tasks live in the process, nobody has to wait for it:
    // if the process ends first, they are put back from the state.
    if (!this.store.capabilities.volatileTasks) await this.loops;
  }

  private unsettled(): Delivery[] {
    return this.running.all.filter((one) => !one.settled);
  }

  private async take(slots: Slots): Promise<void> {
    while (!this.stopping.signal.aborted) {
      if (slots.free <= 0) {
        await slots.wait();
        continue;
      }
      try {
        const fresh = (await this.lease(slots)).filter((leased) => !this.isKnown(leased));
        this.thread?.add(fresh);
        // By index, as all loops over a batch (see `Owner.take`).
        for (let i = 0; i < fresh.length; i++) this.run(fresh[i]!, slots);
      } catch {
        await this.host.sleep(SETTLE_RETRY_MS, this.stopping.signal);
      }
    }
  }

  /**
   * A server that keeps its queues in memory and has started again puts back what was out, and may give it to the worker
   * that still has it, or whose result it was just told. It is the same dispatch: it is not run again, but its lease is
   * the new one from now on.
   */
  private isKnown(leased: LeasedTask): boolean {
    const { dispatch } = leased;
    if (dispatch === undefined) return false;
    if (this.reported.has(dispatch)) return true;
    const delivery = this.dispatched.get(dispatch);
    if (delivery === undefined || delivery.gone !== null) return false;
    this.thread?.remove(delivery.leased.token);
    this.running.leaseAnew(delivery, leased);
    this.thread?.add([leased]);
    return true;
  }

  private remember({ dispatch }: LeasedTask): void {
    if (dispatch === undefined) return;
    this.reported.add(dispatch);
    if (this.reported.size > MAX_REPORTED) this.reported.delete(this.reported.keys().next().value!);
  }

  private async lease(slots: Slots): Promise<readonly LeasedTask[]> {
    const { leaseMs, pollMs } = this.settings;
    const { queues, moreInMs } = this.avoided.open(slots.queues(), this.host.monotonicMs());
    const waitMs = Math.min(pollMs, Math.ceil(moreInMs), Math.floor(leaseMs / 2));
    const isAvoided = queues.length === 0 && Number.isFinite(moreInMs);
    if (isAvoided || (queues.length === 0 && slots !== this.slots[0])) {
      await this.host.sleep(waitMs, this.stopping.signal);
      return [];
    }
    const untilMs = this.host.monotonicMs() + leaseMs;
    const tasks = await this.store.tasks.lease({ worker: this.name, queues, max: slots.free, leaseMs, waitMs });
    // The answer was long on its way, or this process stood still: the leases may be over, and others may have been given the tasks. Limits
    // on how many run at a time count on them not being begun here as well.
    const mayBeLost = this.host.monotonicMs() >= untilMs;
    if (!this.stopping.signal.aborted && !mayBeLost) return tasks;
    await this.handBack(tasks);
    return [];
  }

  /** One task from beginning to end. Never throws: whatever goes wrong becomes a result. */
  private run(leased: LeasedTask, slots: Slots): void {
    const delivery = new Delivery(leased, this.host.monotonicMs());
    this.running.add(delivery);
    if (leased.dispatch !== undefined) this.dispatched.set(leased.dispatch, delivery);
    slots.take();
    try {
      const task = (leased.value?.() ?? JSON.parse(leased.text)) as TaskText;
      this.watch("delivered", task);
      const handler = this.options.handlers.get(task.handler);
      if (handler === undefined) return void this.refuse(task, delivery, slots);
      this.avoided.welcome(leased.queue);
      const called = this.caller.call(handler, task, delivery);
      if (called instanceof Promise) {
        if (task.limited === true) this.tellBegun(delivery);
        void this.finishLater(task, delivery, slots, called);
      } else this.finish(task, delivery, slots, called);
    } catch {
      // A task that cannot even be read, or a bug of ours: its lease runs out, and after three times it is poison.
      this.end(delivery, slots);
    }
  }

  private async finishLater(task: TaskText, delivery: Delivery, slots: Slots, called: Promise<Called>): Promise<void> {
    try {
      this.finish(task, delivery, slots, await called);
    } catch {
      this.end(delivery, slots);
    }
  }

  private finish(task: TaskText, delivery: Delivery, slots: Slots, { outcome, deaf }: Called): void {
    if (delivery.gone === "lost") return this.end(delivery, slots, deaf && { task, over: deaf });
    this.finished.push(new Finished(task, delivery, this.settlementOf(delivery, outcome), slots, deaf));
    if (this.finished.length === 1) queueMicrotask(() => this.post());
  }

  private end(
    delivery: Delivery,
    slots: Slots,
    deaf?: { readonly task: TaskText; readonly over: Promise<void> },
  ): void {
    const { token, dispatch } = delivery.leased;
    delivery.settled = true;
    // One that was lost may run here again: that is another delivery of the same dispatch.
    if (dispatch !== undefined && this.dispatched.get(dispatch) === delivery) this.dispatched.delete(dispatch);
    this.thread?.remove(token);
    if (deaf === undefined) this.free(delivery, slots);
    else void this.keepUntil(deaf.over, deaf.task, delivery, slots);
  }

  private free(delivery: Delivery, slots: Slots): void {
    this.running.remove(delivery);
    slots.give();
  }

  /** Another worker may know the handler: the task goes back, and its attempt is not used up. */
  private async refuse(task: TaskText, delivery: Delivery, slots: Slots): Promise<void> {
    const { leased } = delivery;
    this.avoided.avoid(leased.queue, this.host.monotonicMs());
    this.watch("unknownHandler", task, leased.queue);
    if (task.delivery >= this.settings.maxUnknownDeliveries) {
      const message = `No worker that serves queue ${leased.queue} knows the handler ${task.handler}`;
      const outcome: Outcome = { error: { code: "UNKNOWN_HANDLER", message, retryable: false } };
      return this.finish(task, delivery, slots, { outcome });
    }
    await this.handBack([leased]);
    this.end(delivery, slots);
  }

  private tellBegun(delivery: Delivery): void {
    this.begun.push(delivery);
    if (this.begun.length === 1) void this.tellAllBegun();
  }

  private async tellAllBegun(): Promise<void> {
    await this.host.sleep(this.settings.limitedReportMs);
    const open = this.begun.filter((one) => !one.settled && !one.reported && one.gone === null);
    const due = open.filter((one) => one.hasBegun);
    // The others are still being fetched what they are to be called with.
    this.begun = open.filter((one) => !one.hasBegun);
    if (this.begun.length > 0) void this.tellAllBegun();
    if (due.length === 0) return;
    await this.beatOnce(due, this.host.monotonicMs());
    const told = due.filter(({ reported }) => reported).map(({ leased }) => leased.token);
    if (told.length > 0) this.thread?.reported(told);
  }

  /** A handler that does not listen still uses what it uses: its slot is not given to another before it ends. */
  private async keepUntil(over: Promise<void>, task: TaskText, delivery: Delivery, slots: Slots): Promise<void> {
    const kept = { task, slots };
    this.deaf.add(kept);
    this.watch("degraded", this.deaf.size, task, false);
    await over;
    this.deaf.delete(kept);
    this.watch("degraded", this.deaf.size, task, true);
    this.free(delivery, slots);
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

  private settlementOf(delivery: Delivery, outcome: Outcome): Settlement {
    const runningMs = Math.round(this.host.monotonicMs() - delivery.startedAtMs);
    return settlementOf(delivery, outcome, runningMs, this.name, this.store.capabilities.sameProcess === true);
  }

  /** Posts what has come up in one turn. */
  private post(): void {
    const results = this.finished;
    this.finished = [];
    const untilMs = this.host.monotonicMs() + this.settings.leaseMs;
    for (let from = 0; from < results.length; from += MAX_POSTED) {
      void this.settle(results.slice(from, from + MAX_POSTED), untilMs);
    }
  }

  /** Again and again while the leases may still be ours; after that they are somebody else's tasks. */
  private async settle(results: readonly Finished[], untilMs: number): Promise<void> {
    try {
      const outcomes = await this.store.tasks.settle(results.map(({ settlement }) => settlement));
      for (let i = 0; i < results.length; i++) {
        const { task, delivery, slots, deaf } = results[i]!;
        this.watch("settled", task, outcomes[i]!);
        this.remember(delivery.leased);
        this.end(delivery, slots, deaf && { task, over: deaf });
      }
    } catch {
      await this.host.sleep(SETTLE_RETRY_MS);
      // Each by itself: one that the store does not take keeps nobody else back.
      for (const one of results) {
        const isOurs = one.delivery.gone === null && this.host.monotonicMs() < untilMs;
        if (isOurs) void this.settle([one], untilMs);
        else this.end(one.delivery, one.slots, one.deaf && { task: one.task, over: one.deaf });
      }
    }
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

  private startThread(source: HeartbeatSource): void {
    this.thread = new HeartbeatThread({
      source,
      host: this.host,
      worker: this.name,
      settings: this.settings,
      gone: (token, why) => this.letGo(token, why),
      failed: (reason) => {
        this.thread = undefined;
        this.isThreadSilent = false;
        this.watch("heartbeatThreadLost", reason);
      },
    });
  }

  private async beat(): Promise<void> {
    let beatAtMs = this.host.monotonicMs();
    while (!this.ended.signal.aborted) {
      await this.host.sleep(this.settings.startReportMs, this.ended.signal);
      if (this.thread !== undefined && !(await this.isSilent(this.thread))) continue;
      const nowMs = this.host.monotonicMs();
      const all = nowMs - beatAtMs >= this.settings.heartbeatMs;
      if (all) beatAtMs = nowMs;
      const due = this.unsettled().filter((one) => all || (one.hasBegun && !one.reported));
      if (due.length > 0) await this.beatOnce(due, nowMs);
    }
  }

  /** It is told of once, when something depends on it; and that it is heard again. */
  private async isSilent(thread: HeartbeatThread): Promise<boolean> {
    // After a handler has kept the event loop, timers come first: what the thread has said meanwhile is heard after them.
    if (thread.isSilent) await new Promise(setImmediate);
    const { isSilent } = thread;
    const isNews = isSilent ? !this.isThreadSilent && this.running.size > 0 : this.isThreadSilent;
    if (isNews && thread === this.thread) this.watch("heartbeatThreadSilent", (this.isThreadSilent = isSilent));
    return isSilent;
  }

  private async beatOnce(due: readonly Delivery[], nowMs: number): Promise<void> {
    const told = new Set(due.filter(({ hasBegun, reported }) => hasBegun && !reported));
    const beats = due.map((one) => {
      return heartbeatOf(one.leased, this.name, told.has(one) ? nowMs - one.startedAtMs : undefined);
    });
    try {
      const { lost, cancelled } = await this.store.tasks.heartbeat(beats, this.settings.leaseMs);
      for (const one of told) one.reported = true;
      for (const token of lost) this.letGo(token, "lost");
      for (const token of cancelled) this.letGo(token, "cancelled");
    } catch {
      // The next beat will tell; the lease lasts for three.
    }
  }

  private letGo(token: string, why: "lost" | "cancelled"): void {
    const delivery = this.running.withToken(token);
    if (delivery === undefined) return;
    delivery.gone = why;
    delivery.abort.abort();
  }
}
