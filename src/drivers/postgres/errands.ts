import type { Host } from "../../host/host.ts";
import type { LeasedTask, Settlement, SettleOutcome, Task } from "../../store/contract.ts";
import type { Seat, SeatRequest, Seats } from "./seats.ts";
import type { WakeUps } from "./wake-ups.ts";

/** The owner gives up a commit after three quarters of a second at most, and settles for the worker: this is for one who does not answer at all. */
const PATIENCE_MS = 1_200;
/** So many results at once are a sign of load, and travel together the long way; and so many may be under way. */
const MOST_RESULTS = 4;
const MOST_ASKED = 16;
/** Tasks that an answer brings, and their bytes: a payload holds 8,000. */
const MOST_TASKS = 8;
const MAX_TASK_BYTES = 6_000;
/** Of a task, beside its texts. */
const TASK_BYTES = 150;

/** What one process asks of another, and what it is answered. */
type Errand = SettleErrand | SettledErrand;

interface SettleErrand {
  readonly kind: "settle";
  readonly from: string;
  readonly id: number;
  readonly results: readonly Pick<Settlement, "ref" | "token" | "partition" | "text">[];
  /** What the worker that waits there has room for. */
  readonly seat: SeatRequest | null;
}

interface SettledErrand {
  readonly kind: "settled";
  readonly id: number;
  readonly outcomes: readonly SettleOutcome[];
  readonly tasks: readonly LeasedTask[];
}

export interface ErrandOptions {
  readonly host: Host;
  readonly wakeUps: Pick<WakeUps, "name" | "onErrand" | "ownerOf" | "doubtOwner" | "hurry" | "answer">;
  readonly seats: Seats;
  /** What is done for others: from hand to hand, if an owner waits here. */
  readonly settle: (results: readonly Settlement[]) => Promise<readonly SettleOutcome[]>;
  /** Gives back tasks that were leased to somebody who cannot be told, or has no room for them any more. */
  readonly free: (tasks: readonly LeasedTask[]) => Promise<void>;
}

/**
 * The short way of a result to an owner in another process: the worker asks that process to settle for it, and there it goes
 * from hand to hand into the owner's commit, as if the worker were beside it; and the tasks of that commit are leased to the
 * worker that waits, and come with the answer. So there is one transaction between the end of a task and the start of the
 * next, where there were three and a look.
 *
 * Until the answer nothing has been said to anybody: the worker keeps the task and its lease. Without an answer it settles by
 * itself; then a result may come twice, as any completion may, and leases that nobody heard of run out, as if an answer of
 * the store had been lost.
 */
export class Errands {
  readonly #options: ErrandOptions;
  readonly #asked = new Map<number, (answer: SettledErrand | undefined) => void>();
  #lastId = 0;

  constructor(options: ErrandOptions) {
    this.#options = options;
    options.wakeUps.onErrand = (errand) => this.#take(errand as Errand);
  }

  /** What became of them, or undefined: they have to go the long way. */
  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[] | undefined> {
    const { wakeUps, seats } = this.#options;
    const owner = this.#ownerOf(results);
    if (owner === undefined || this.#asked.size >= MOST_ASKED) return undefined;
    const id = ++this.#lastId;
    const texts = results.map(({ ref, token, partition, text }) => ({ ref, token, partition, text }));
    const seat = seats.waiting();
    const held = seat?.hold(MOST_TASKS) ?? null;
    const errand: SettleErrand = { kind: "settle", from: wakeUps.name, id, results: texts, seat: held };
    const isSent = wakeUps.hurry(owner, errand);
    const answer = isSent ? await this.#answerTo(id) : undefined;
    seat?.fill(held!.max, answer?.tasks ?? []);
    // It may be gone, or not hear: whoever waits for it with every result waits for good.
    if (isSent && answer === undefined) wakeUps.doubtOwner(owner);
    return answer?.outcomes;
  }

  /** Nobody is waited for any more. */
  close(): void {
    for (const resolve of this.#asked.values()) resolve(undefined);
  }

  /** The one who has them all, if they are few and only completions: of others the store alone knows whether they count. */
  #ownerOf(results: readonly Settlement[]): string | undefined {
    if (results.length > MOST_RESULTS || results.some(({ outcome }) => outcome !== "completed")) return undefined;
    const owners = new Set(results.map(({ partition }) => this.#options.wakeUps.ownerOf(partition)));
    return owners.size === 1 ? [...owners][0] : undefined;
  }

  async #answerTo(id: number): Promise<SettledErrand | undefined> {
    const { promise, resolve } = Promise.withResolvers<SettledErrand | undefined>();
    this.#asked.set(id, resolve);
    const timer = new AbortController();
    const patience = this.#options.host.sleep(PATIENCE_MS, timer.signal).then(() => undefined);
    const answer = await Promise.race([promise, patience]);
    timer.abort("over");
    this.#asked.delete(id);
    return answer;
  }

  #take(errand: Errand): void {
    if (errand.kind === "settle") return void this.#run(errand);
    const resolve = this.#asked.get(errand.id);
    if (resolve !== undefined) resolve(errand);
    // It comes too late, and its tasks would wait for a worker that does not know of them.
    else void this.#free(errand.tasks);
  }

  async #run({ from, id, results, seat: asked }: SettleErrand): Promise<void> {
    const { wakeUps, seats, settle } = this.#options;
    const seat = asked === null || asked.max === 0 ? undefined : seats.takeForGuest(asked, roomInPayload());
    seat?.wait();
    try {
      const outcomes = await settle(results.map((result) => ({ ...result, outcome: "completed" })));
      const tasks = await leave(seats, seat);
      // Once it is sent they are the other's, whether or not it arrives: to give them away as well would be to give them twice.
      const answer: SettledErrand = { kind: "settled", id, outcomes, tasks };
      if (!wakeUps.answer(from, answer)) await this.#free(tasks);
    } catch {
      // Whoever asked settles by himself when nobody answers.
      await this.#free(await leave(seats, seat));
    }
  }

  async #free(tasks: readonly LeasedTask[]): Promise<void> {
    try {
      if (tasks.length > 0) await this.#options.free(tasks);
    } catch {
      // Their leases run out.
    }
  }
}

async function leave(seats: Seats, seat: Seat | undefined): Promise<readonly LeasedTask[]> {
  if (seat === undefined) return [];
  seats.leave(seat);
  return seat.rise();
}

/** Whether one more task goes into the payload of an answer. */
function roomInPayload(): (task: Task) => boolean {
  let leftBytes = MAX_TASK_BYTES;
  return ({ text, token, entity, queue }) => {
    const bytes = Buffer.byteLength(JSON.stringify([text, token, entity, queue])) + TASK_BYTES;
    if (bytes > leftBytes) return false;
    leftBytes -= bytes;
    return true;
  };
}
