import type { Resident } from "./resident.ts";

/**
 * The tasks of a partition that are out, by queue, and who waits for room: beyond so many to a queue, what is ready
 * waits in the owner, in the order in which it came.
 */
export class TaskWindow {
  private readonly size: number;
  /** Called with everybody who may go on. */
  private readonly letThrough: (key: string) => void;
  private readonly out = new Map<string, { count: number }>();
  private readonly waiting = new Map<string, Set<string>>();
  /** Of whom is being counted. */
  private counting: Resident["countedTasks"] | undefined;

  constructor(size: number, letThrough: (key: string) => void) {
    this.size = size;
    this.letThrough = letThrough;
  }

  room(queue: string): number {
    return Math.max(0, this.size - (this.out.get(queue)?.count ?? 0));
  }

  /** Keeps count of what an entity has out, and lets those go on who waited for the room it leaves. */
  count(entity: Resident): void {
    const now = entity.machine.liveTasks(entity.state);
    const counted = entity.countedTasks;
    // Called with every decision: by `forEach`, which makes no pairs, with a function that is there already.
    this.counting = counted;
    const changed = now.takeChanged?.();
    if (changed !== undefined && counted.size > 0) {
      for (const queue of changed) this.countOne(now.get(queue) ?? 0, queue);
      return;
    }
    now.forEach(this.countOne);
    if (counted.size === now.size) return;
    counted.forEach((before, queue) => {
      if (now.has(queue)) return;
      counted.delete(queue);
      this.change(queue, -before);
    });
  }

  private readonly countOne = (count: number, queue: string): void => {
    const before = this.counting!.get(queue) ?? 0;
    if (count === before) return;
    this.counting!.set(queue, count);
    this.change(queue, count - before);
  };

  /** An entity leaves memory: others may use its room. */
  uncount(entity: Resident): void {
    entity.countedTasks.forEach((count, queue) => this.change(queue, -count));
  }

  private change(queue: string, by: number): void {
    if (by === 0) return;
    const out = this.out.get(queue);
    if (out === undefined) this.out.set(queue, { count: by });
    else out.count += by;
    if (by < 0) this.unblock(queue, -by);
  }

  block(queue: string, key: string): void {
    let waiting = this.waiting.get(queue);
    if (waiting === undefined) this.waiting.set(queue, (waiting = new Set()));
    waiting.add(key);
  }

  isBlocked(key: string): boolean {
    return this.waiting.values().some((keys) => keys.has(key));
  }

  /** It waits for nothing any more, or is to be looked at anew. */
  drop(key: string): void {
    for (const keys of this.waiting.values()) keys.delete(key);
  }

  /** Whether anybody waits for room, in whatever queue. */
  get isWaitedFor(): boolean {
    return this.waiting.values().some((keys) => keys.size > 0);
  }

  /** Whoever was let through and did not use the room (a condition, a failure, an end) has left it for the next. */
  passRoomOn(): boolean {
    let passed = false;
    for (const [queue, keys] of this.waiting) {
      const room = this.room(queue);
      if (room === 0 || keys.size === 0) continue;
      this.unblock(queue, room);
      passed = true;
    }
    return passed;
  }

  private unblock(queue: string, count: number): void {
    if (this.waiting.size === 0) return;
    const keys = this.waiting.get(queue);
    if (keys === undefined) return;
    let left = count;
    for (const key of keys) {
      if (left-- === 0) return;
      keys.delete(key);
      this.letThrough(key);
    }
  }
}
