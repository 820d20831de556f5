import { taskMessage } from "../../core/message.ts";
import type {
  Heartbeat,
  HeartbeatOutcome,
  LeasedTask,
  LeaseRequest,
  Settlement,
  SettleOutcome,
  Task,
  Tasks,
} from "../../store/contract.ts";
import { isMostlyStale, popHeap, pushHeap, rebuildHeap } from "./heap.ts";
import { post, postValue } from "./inbox.ts";
import { type Lapse, type QueueData, StoredTask, type TaskData } from "./memory-data.ts";
import type { Memory } from "./memory.ts";
import { isBefore } from "./sorted-places.ts";

/** From so many queues on those that are empty are not kept. */
const MOST_EMPTY = 1_000;

/** How long after a start somebody may still speak of a task that is not put back yet. */
const CLAIMING_MS = 60_000;

interface Claim {
  readonly ref: string;
  readonly untilMs: number;
}

/**
 * A lease is named by its task and its worker. Where tasks do not outlive the process, a worker far away may: what it was
 * given by the process before is put back with the same token, and is still its task, unless another was given it meanwhile.
 */
export class MemoryTasks implements Tasks {
  readonly #memory: Memory;
  /** Tasks from the life before that a worker says it has and that nobody has put back yet. */
  readonly #claims = new Map<string, Claim>();
  readonly #claimedUntilMs: number;

  constructor(memory: Memory) {
    this.#memory = memory;
    this.#claimedUntilMs = memory.leaseClock.nowMs() + CLAIMING_MS;
  }

  async lease(request: LeaseRequest): Promise<readonly LeasedTask[]> {
    if (request.max <= 0) return [];
    const found = await this.#memory.waiters.until(request.queues.map(queueKey), request.waitMs, () => {
      const tasks = this.#take(request);
      return tasks.length > 0 ? tasks : undefined;
    });
    return found ?? [];
  }

  async heartbeat(beats: readonly Heartbeat[], leaseMs: number): Promise<HeartbeatOutcome> {
    const untilMs = this.#memory.leaseClock.nowMs() + leaseMs;
    const lost: string[] = [];
    const cancelled: string[] = [];
    for (const { ref, token, started } of beats) {
      const stored = this.#leased(ref, token);
      if (stored === undefined && !this.#claim(token, { ref, untilMs })) {
        lost.push(token);
        continue;
      }
      if (stored !== undefined) stored.leaseUntilMs = untilMs;
      if (stored?.isRevoked === true) cancelled.push(token);
      if (started !== undefined) post(this.#memory, started.partition, started.text);
    }
    return { lost, cancelled };
  }

  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    return results.map(({ ref, token, partition, outcome, text, message, messageChars = 0 }) => {
      const stored = this.#leased(ref, token);
      if (stored !== undefined) this.#remove(stored);
      else if (outcome !== "completed") return "stale";
      if (message === undefined) post(this.#memory, partition, text);
      else postValue(this.#memory, partition, message, messageChars);
      return stored === undefined ? "posted" : "settled";
    });
  }

  async lapse(limit: number): Promise<number> {
    const { byToken, lapses } = this.#memory.data.tasks;
    const nowMs = this.#memory.leaseClock.nowMs();
    let count = 0;
    while (count < limit) {
      const top = lapses[0];
      if (top === undefined || top.atMs > nowMs) break;
      popHeap(lapses, isBefore);
      const stored = byToken.get(top.key);
      if (stored === undefined || stored.leaseUntilMs === null) continue;
      if (stored.leaseUntilMs > nowMs) {
        this.#fileLapse(stored, stored.leaseUntilMs);
        continue;
      }
      this.#remove(stored);
      count++;
      // The owner has withdrawn it: there is nobody to tell.
      if (stored.isRevoked) continue;
      const text = taskMessage(stored.task, "store", { kind: "deliveryLost", token: stored.task.token });
      post(this.#memory, stored.task.partition, text);
    }
    return count;
  }

  async restore(tasks: readonly Task[]): Promise<void> {
    for (const task of tasks) {
      addTask(this.#memory, task);
      const claim = this.#claims.get(task.token);
      if (claim === undefined) continue;
      this.#claims.delete(task.token);
      const stored = this.#memory.data.tasks.byToken.get(task.token)!;
      if (stored.leaseUntilMs === null) this.#give(stored, claim.ref, claim.untilMs);
    }
  }

  #take(request: LeaseRequest): readonly LeasedTask[] {
    const { tasks } = this.#memory.data;
    const untilMs = this.#memory.leaseClock.nowMs() + request.leaseMs;
    const holder = `${this.#memory.life}/${request.worker}`;
    const taken: LeasedTask[] = [];
    for (const name of request.queues) {
      const queue = tasks.queues.get(name);
      if (queue === undefined) continue;
      while (queue.size > 0 && taken.length < request.max) {
        const stored = popHeap(queue.heap, comesFirst)!;
        if (!isQueued(stored)) continue;
        const ref = `${stored.order}/${holder}`;
        this.#give(stored, ref, untilMs);
        taken.push(leaseOf(stored.task, ref));
      }
    }
    return taken;
  }

  #give(stored: StoredTask, ref: string, untilMs: number): void {
    const { tasks } = this.#memory.data;
    const { queue } = stored.task;
    shrink(tasks, queue, tasks.queues.get(queue)!);
    stored.ref = ref;
    stored.leaseUntilMs = untilMs;
    tasks.leased += 1;
    this.#fileLapse(stored, untilMs);
  }

  #fileLapse(stored: StoredTask, atMs: number): void {
    stored.lapse = { atMs, key: stored.task.token, isGone: false };
    pushHeap(this.#memory.data.tasks.lapses, stored.lapse, isBefore);
  }

  /** The task, if it is still this worker's. */
  #leased(ref: string, token: string): StoredTask | undefined {
    const stored = this.#memory.data.tasks.byToken.get(token);
    if (stored === undefined || stored.ref === ref) return stored;
    if (!this.#isFromBefore(ref)) return undefined;
    if (stored.leaseUntilMs === null) this.#give(stored, ref, this.#memory.leaseClock.nowMs());
    return holderOf(stored.ref).worker === holderOf(ref).worker ? stored : undefined;
  }

  /** Not yet put back, it cannot be told from one that counts no more; but that is soon over. */
  #claim(token: string, claim: Claim): boolean {
    if (this.#memory.data.tasks.byToken.has(token) || !this.#isFromBefore(claim.ref)) return false;
    if (this.#memory.leaseClock.nowMs() < this.#claimedUntilMs) this.#claims.set(token, claim);
    else this.#claims.clear();
    return this.#claims.has(token);
  }

  #isFromBefore(ref: string): boolean {
    const { life } = this.#memory;
    return life !== "" && holderOf(ref).life !== life;
  }

  #remove(stored: StoredTask): void {
    const { tasks } = this.#memory.data;
    tasks.byToken.delete(stored.task.token);
    tasks.leased -= 1;
    if (stored.lapse !== null) stored.lapse.isGone = true;
    if (!isMostlyStale(tasks.lapses.length, tasks.leased)) return;
    rebuildHeap(tasks.lapses, tasks.lapses.filter(isLive), isBefore);
  }
}

function leaseOf(task: Task, ref: string): LeasedTask {
  return task.value === undefined ? { ...task, ref } : new LeaseInHand(task, ref);
}

/** Of a task that nobody has written down. */
class LeaseInHand implements LeasedTask {
  readonly ref: string;
  readonly token: string;
  readonly entity: string;
  readonly partition: number;
  readonly queue: string;
  readonly priority: number;
  readonly #task: Task;

  constructor(task: Task, ref: string) {
    this.ref = ref;
    this.token = task.token;
    this.entity = task.entity;
    this.partition = task.partition;
    this.queue = task.queue;
    this.priority = task.priority;
    this.#task = task;
  }

  get text(): string {
    return this.#task.text;
  }

  value(): unknown {
    return this.#task.value!();
  }
}

/** A task that is there already, queued or leased, is left alone. */
export function addTask(memory: Memory, task: Task): void {
  const { data } = memory;
  const { byToken, queues } = data.tasks;
  const stored = new StoredTask(task, data.nextTaskOrder, memory.host.wallMs());
  if (!byToken.insert(task.token, stored)) return;
  data.nextTaskOrder += 1;
  let queue = queues.get(task.queue);
  if (queue === undefined) {
    queue = { waitKey: queueKey(task.queue), size: 0, heap: [] };
    queues.set(task.queue, queue);
  }
  queue.size += 1;
  pushHeap(queue.heap, stored, comesFirst);
  memory.waiters.wakeOne(queue.waitKey);
}

/** Gone if nobody has it, else its worker is told at its next heartbeat. */
export function revokeTask(memory: Memory, token: string): void {
  const { tasks } = memory.data;
  const stored = tasks.byToken.get(token);
  if (stored === undefined) return;
  if (stored.leaseUntilMs !== null) {
    stored.isRevoked = true;
    return;
  }
  stored.isRevoked = true;
  tasks.byToken.delete(token);
  shrink(tasks, stored.task.queue, tasks.queues.get(stored.task.queue)!);
}

/** One task of the queue was leased or revoked. */
function shrink(tasks: TaskData, name: string, queue: QueueData): void {
  queue.size -= 1;
  if (queue.size === 0) {
    // What is empty now is filled again in a moment, as a rule: it stays, unless there are very many.
    queue.heap.length = 0;
    if (tasks.queues.size > MOST_EMPTY) tasks.queues.delete(name);
  } else if (isMostlyStale(queue.heap.length, queue.size)) {
    rebuildHeap(queue.heap, queue.heap.filter(isQueued), comesFirst);
  }
}

function holderOf(ref: string): { readonly life: string; readonly worker: string } {
  const [, life = "", ...worker] = ref.split("/");
  return { life, worker: worker.join("/") };
}

/** Whether it still waits in its queue: a heap forgets lazily. */
function isQueued({ leaseUntilMs, isRevoked }: StoredTask): boolean {
  return leaseUntilMs === null && !isRevoked;
}

function isLive({ isGone }: Lapse): boolean {
  return !isGone;
}

function comesFirst(a: StoredTask, b: StoredTask): boolean {
  return a.priority !== b.priority ? a.priority > b.priority : a.order < b.order;
}

function queueKey(queue: string): string {
  return `queue/${queue}`;
}
