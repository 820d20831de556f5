import type { LeasedTask, LeaseRequest, Task } from "../../store/contract.ts";

/** A task that a commit leases as it writes it, and whom to. */
export interface Seated {
  readonly task: Task;
  readonly leaseMs: number;
  readonly seat: Seat;
}

export type SeatRequest = Pick<LeaseRequest, "queues" | "max" | "leaseMs">;

/** Batches that are sent once more, as a rule a moment later. */
const MOST_DOUBTS = 1000;

/**
 * Workers in this process that have looked for tasks in vain and wait. A commit leases its tasks to them as it writes them:
 * so nobody has to be woken, and the lease costs no transaction of its own. If nobody learns what became of the commit
 * those leases run out, like those of anybody whose answer was lost.
 */
export class Seats {
  readonly #seats = new Set<Seat>();
  readonly #doubts = new Map<string, readonly string[]>();

  take(request: SeatRequest, wake: () => void): Seat {
    const seat = new Seat(request, wake);
    this.#seats.add(seat);
    return seat;
  }

  /**
   * For a worker in another process, which waits for no more than one commit: nothing else is asked for on its behalf.
   *
   * @param fits whether it takes one more, apart from its room
   */
  takeForGuest(request: SeatRequest, fits: (task: Task) => boolean): Seat {
    const seat = new Seat(request, () => {}, fits, true);
    this.#seats.add(seat);
    return seat;
  }

  /** One of this process who waits and has room. */
  waiting(): Seat | undefined {
    return this.#seats.values().find((seat) => seat.hasRoom && !seat.isGuest);
  }

  leave(seat: Seat): void {
    this.#seats.delete(seat);
  }

  /** Those of these tasks for which somebody waits; they have to be given, or not, with `Seat.give`, in this order. */
  reserve(tasks: readonly Task[]): ReadonlyMap<string, Seated> {
    const seated = new Map<string, Seated>();
    let left = tasks;
    for (const seat of this.#seats) {
      if (left.length === 0) break;
      for (const task of seat.reserve(left)) seated.set(task.token, { task, leaseMs: seat.leaseMs, seat });
      left = left.filter(({ token }) => !seated.has(token));
    }
    return seated;
  }

  /** Nobody knows what became of a batch that would have leased these: tasks by their tokens, packs by their names. */
  doubt(batch: string, names: readonly string[]): void {
    // Doubted twice, nobody knows which of both it has leased: those leases run out.
    if (this.#doubts.delete(batch) || names.length === 0) return;
    this.#doubts.set(batch, names);
    if (this.#doubts.size > MOST_DOUBTS) this.#doubts.delete(this.#doubts.keys().next().value!);
  }

  /** What was leased to nobody by a batch whose outcome is known now, if it was committed. */
  settleDoubt(batch: string): readonly string[] {
    const names = this.#doubts.get(batch) ?? [];
    this.#doubts.delete(batch);
    return names;
  }
}

/** One who waits. */
export class Seat {
  readonly leaseMs: number;
  /** It is of a worker in another process. */
  readonly isGuest: boolean;
  /** The place of each queue in the order in which it asks. */
  readonly #places: ReadonlyMap<string, number>;
  readonly #max: number;
  readonly #wake: () => void;
  readonly #fits: (task: Task) => boolean;
  #isWaiting = false;
  /** What it would take at this moment: nothing while it looks for itself. */
  #room = 0;
  #reserved = 0;
  #given: LeasedTask[] = [];
  #over = Promise.withResolvers<void>();

  constructor(
    { queues, max, leaseMs }: SeatRequest,
    wake: () => void,
    fits: (task: Task) => boolean = () => true,
    isGuest = false,
  ) {
    this.isGuest = isGuest;
    this.#fits = fits;
    this.#places = new Map(queues.map((queue, place) => [queue, place]));
    this.#max = max;
    this.leaseMs = leaseMs;
    this.#wake = wake;
  }

  /** From now on it may be given tasks. */
  wait(): void {
    this.#isWaiting = true;
    this.#room = this.#max;
  }

  get hasRoom(): boolean {
    return this.#room > 0;
  }

  /** Keeps up to so many places for what may come from another process. Tells what may come. */
  hold(most: number): SeatRequest {
    const max = Math.min(most, this.#room);
    if (this.#reserved === 0) this.#over = Promise.withResolvers();
    this.#room -= max;
    this.#reserved += max;
    return { queues: [...this.#places.keys()], max, leaseMs: this.leaseMs };
  }

  /** What has come for the places that were held. Nobody is woken if it is nothing. */
  fill(held: number, tasks: readonly LeasedTask[]): void {
    this.#given.push(...tasks);
    this.#reserved -= held;
    if (this.#isWaiting) this.#room += held - tasks.length;
    if (this.#reserved === 0) this.#over.resolve();
    if (this.#given.length > 0) this.#wake();
  }

  /** It takes nothing more, and is told what it was given, once that is known. */
  async rise(): Promise<readonly LeasedTask[]> {
    this.#isWaiting = false;
    this.#room = 0;
    while (this.#reserved > 0) await this.#over.promise;
    const given = this.#given;
    this.#given = [];
    return given;
  }

  /** Those that it takes, in the order in which it asks for them. */
  reserve(tasks: readonly Task[]): readonly Task[] {
    if (this.#room === 0) return [];
    const place = ({ queue }: Task): number => this.#places.get(queue)!;
    const wanted = tasks.filter(({ queue }) => this.#places.has(queue));
    const inOrder = wanted.toSorted((a, b) => place(a) - place(b) || b.priority - a.priority);
    const taken = inOrder.slice(0, this.#room).filter(this.#fits);
    if (this.#reserved === 0) this.#over = Promise.withResolvers();
    this.#room -= taken.length;
    this.#reserved += taken.length;
    return taken;
  }

  /** @param ref undefined: the task was not written, or nobody knows */
  give(task: Task, ref: string | undefined): void {
    if (ref !== undefined) this.#given.push({ ...task, ref });
    if (--this.#reserved === 0) this.#over.resolve();
    // Also if more may come: who is woken takes no more, and so does not wait for ever for what others ask for meanwhile.
    if (this.#reserved === 0 || this.#given.length > 0) this.#wake();
  }
}
