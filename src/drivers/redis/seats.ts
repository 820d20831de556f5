import type { LeasedTask, LeaseRequest, Task } from "../../store/contract.ts";
import { refOf } from "./packed-task.ts";

/** Batches that are sent once more, as a rule a moment later. */
const MOST_DOUBTS = 1000;
/** Lists of queues; to look once too often costs little. */
const MOST_DRAINED = 1000;

/** What a commit leases as it writes it, if the store finds nothing that would come before it. */
export interface Reservation {
  /** Of the tasks of each line the first so many. */
  readonly counts: ReadonlyMap<string, number>;
  readonly leaseMs: number;
  readonly given: ReadonlyMap<Seat, readonly LeasedTask[]>;
}

const NOTHING: Reservation = { counts: new Map(), leaseMs: 0, given: new Map() };

/**
 * Workers in this process that have looked for tasks in vain and wait. A commit leases its tasks to them as it writes them:
 * so no second script takes the tasks off their line, and no text comes back that was just sent. If nobody learns what
 * became of the commit those leases run out, like those of anybody whose answer was lost.
 */
export class Seats {
  readonly #seats = new Set<Seat>();
  readonly #doubts = new Map<string, Reservation>();
  /** Queues, as they are asked for, that had nothing left when they were last looked at. */
  readonly #drained = new Set<string>();

  take(request: LeaseRequest): Seat {
    const seat = new Seat(request);
    this.#seats.add(seat);
    return seat;
  }

  leave(seat: Seat): void {
    this.#seats.delete(seat);
  }

  isDrained(queues: string): boolean {
    return this.#drained.has(queues);
  }

  /** Whoever asks for these next looks first, or waits first. */
  noteLook(queues: string, isDrained: boolean): void {
    if (this.#drained.size > MOST_DRAINED) this.#drained.clear();
    if (isDrained) this.#drained.add(queues);
    else this.#drained.delete(queues);
  }

  /**
   * Reserves these tasks, by their lines, for those who wait. What is withdrawn by the batch that sends it out is for nobody. Whoever
   * reserves has to call `decide` when the commit has ended.
   */
  reserve(lines: ReadonlyMap<string, readonly Task[]>, revoked: readonly string[]): Reservation {
    if (lines.size === 0 || this.#seats.size === 0 || isAnyOf(lines, revoked)) return NOTHING;
    const counts = new Map<string, number>();
    const given = new Map<Seat, readonly LeasedTask[]>();
    let leaseMs: number | undefined;
    for (const seat of this.#seats) {
      // One commit has one end for all its leases.
      if (leaseMs !== undefined && seat.leaseMs !== leaseMs) continue;
      const taken = seat.reserve(lines, counts);
      if (taken.length === 0) continue;
      leaseMs = seat.leaseMs;
      given.set(seat, taken);
    }
    return leaseMs === undefined ? NOTHING : { counts, leaseMs, given };
  }

  /** Ends a reservation: the commit has leased the tasks, was not made, or has put them on their lines without ringing a bell. */
  decide({ given }: Reservation, outcome: "leased" | "not there" | "on their lines"): void {
    if (outcome === "on their lines") this.#drained.clear();
    for (const [seat, tasks] of given) seat.give(outcome === "leased" ? tasks : []);
  }

  /** Nobody knows what became of a batch that would have leased these. */
  doubt(batch: string, reservation: Reservation): void {
    if (reservation === NOTHING) return;
    this.decide(reservation, "on their lines");
    // Doubted twice, nobody knows which of both it has leased: those leases run out.
    if (this.#doubts.delete(batch)) return;
    this.#doubts.set(batch, reservation);
    if (this.#doubts.size > MOST_DOUBTS) this.#doubts.delete(this.#doubts.keys().next().value!);
  }

  /** What a batch would have leased whose outcome is known now, after a doubt: if it was committed, nobody has it. */
  settleDoubt(batch: string): readonly LeasedTask[] {
    const doubted = this.#doubts.get(batch);
    this.#doubts.delete(batch);
    return [...(doubted?.given.values() ?? [])].flat();
  }
}

/** One who waits, or is about to look. */
export class Seat {
  readonly leaseMs: number;
  /** The place of each queue in the order in which it asks. */
  readonly #places: ReadonlyMap<string, number>;
  readonly #max: number;
  /** What it would take at this moment: nothing while it looks for itself. */
  #room = 0;
  /** Commits that are under way with something for it. */
  #commits = 0;
  #given: LeasedTask[] = [];
  #decided = Promise.withResolvers<void>();
  #look = (): void => {};

  constructor({ queues, max, leaseMs }: LeaseRequest) {
    this.#places = new Map(queues.map((queue, place) => [queue, place]));
    this.#max = max;
    this.leaseMs = leaseMs;
  }

  /** From now on it may be given tasks, and is told to look when it was. */
  wait(look: () => void): void {
    this.#room = this.#max;
    this.#look = look;
  }

  /** It takes nothing more, and looks for itself if this is false: there is nothing for it, nor may there be. */
  rise(): boolean {
    this.#room = 0;
    return this.#commits > 0 || this.#given.length > 0;
  }

  /** What it was given, once that is known. It has risen before. */
  async given(): Promise<readonly LeasedTask[]> {
    while (this.#commits > 0) await this.#decided.promise;
    const given = this.#given;
    this.#given = [];
    return given;
  }

  /** What it takes, beyond what others have taken, in the order in which it asks for it. */
  reserve(lines: ReadonlyMap<string, readonly Task[]>, counts: Map<string, number>): readonly LeasedTask[] {
    if (this.#room === 0) return [];
    const taken: LeasedTask[] = [];
    for (const [line, tasks] of this.#wanted(lines)) {
      const from = counts.get(line) ?? 0;
      const end = Math.min(tasks.length, from + this.#room);
      for (let i = from; i < end; i++) taken.push({ ...tasks[i]!, ref: refOf(tasks[i]!.token, line) });
      this.#room -= end - from;
      if (end > 0) counts.set(line, end);
    }
    if (taken.length > 0 && this.#commits++ === 0) this.#decided = Promise.withResolvers();
    return taken;
  }

  give(tasks: readonly LeasedTask[]): void {
    for (const task of tasks) this.#given.push(task);
    if (--this.#commits > 0) return;
    this.#decided.resolve();
    this.#look();
  }

  #wanted(lines: ReadonlyMap<string, readonly Task[]>): readonly (readonly [string, readonly Task[]])[] {
    const wanted = [...lines].filter(([, [first]]) => this.#places.has(first!.queue));
    if (wanted.length < 2) return wanted;
    const place = ({ queue }: Task): number => this.#places.get(queue)!;
    return wanted.toSorted(([, [a]], [, [b]]) => place(a!) - place(b!) || b!.priority - a!.priority);
  }
}

function isAnyOf(lines: ReadonlyMap<string, readonly Task[]>, revoked: readonly string[]): boolean {
  if (revoked.length === 0) return false;
  const tokens = new Set(revoked);
  return [...lines.values()].some((tasks) => tasks.some(({ token }) => tokens.has(token)));
}
