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
import { HandOver } from "../../store/hand-over.ts";
import type { Line } from "./connection.ts";
import { Gathering } from "./gathering.ts";
import { groupedBy } from "./grouped-by.ts";
import { byPartition, pushSettle } from "./settle-arguments.ts";
import { lineNamed, lineOf, unpackTask } from "./packed-task.ts";
import { inboxKeys, partitionsOf } from "./inbox.ts";
import { keyOf, type Redis, run, runCall, scriptCall, send } from "./redis.ts";
import { scripts } from "./scripts.ts";
import type { Seat } from "./seats.ts";

/** Results in one script, as many as one may take its time for. */
const MOST_SETTLED = 200;

/** By the letters of settle.lua. */
const OUTCOMES = { s: "settled", p: "posted", "-": "stale" } as const;

export class RedisTasks implements Tasks {
  readonly handOver: HandOver;
  readonly #redis: Redis;
  readonly #settling: Gathering<Settlement, SettleOutcome>;

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#settling = new Gathering(MOST_SETTLED, (results) => this.#settle(results));
    this.handOver = new HandOver({
      host: redis.host,
      settle: (results) => this.#settling.add(results),
      wake: (partitions) => redis.waiting.hint(inboxKeys(redis, partitions)),
    });
  }

  async lease(request: LeaseRequest): Promise<readonly LeasedTask[]> {
    const { queues, max, waitMs } = request;
    if (max <= 0) return [];
    const { waiting, seats } = this.#redis;
    if (queues.length === 0) return waiting.inVain(waitMs);
    const seat = seats.take(request);
    try {
      return (await this.#leaseOn(seat, request)) ?? [];
    } catch (error) {
      // The wait has failed, and not the commit: what was leased for it is nobody else's.
      const given = waiting.isClosed || !seat.rise() ? [] : await seat.given();
      if (given.length > 0) return given;
      throw error;
    } finally {
      seats.leave(seat);
    }
  }

  #leaseOn(seat: Seat, { queues, max, leaseMs, waitMs }: LeaseRequest): Promise<readonly LeasedTask[] | undefined> {
    const { waiting, seats } = this.#redis;
    const name = queues.join(" ");
    const attempt = async (): Promise<readonly LeasedTask[] | undefined> => {
      const given = seat.rise() ? await seat.given() : [];
      if (given.length > 0) return given;
      const tasks = unpackTasks(await run<readonly string[]>(this.#redis, scripts.lease, max, leaseMs, ...queues));
      // It has seen the end of all of them, and taken away their bells: whatever comes now rings.
      seats.noteLook(name, tasks.length < max);
      return tasks.length === 0 ? undefined : tasks;
    };
    // A bell wakes one of those who wait, and is no task: who dies with it in hand has taken nothing along.
    const keys = queues.map((queue) => bellOf(this.#redis, queue));
    // A worker that was given a task by a commit meanwhile does not look for the one the bell rang for. It has to look first the next time,
    // as nobody else is woken by the same ring.
    const rung = (answer: unknown): unknown => {
      if (answer !== null) seats.noteLook(name, false);
      return answer;
    };
    const wait = (line: Line, waitMs: number): Promise<unknown> =>
      line.send(["BLPOP", ...keys, String(waitMs / 1000)]).then(rung);
    const endedInVain = (answer: readonly [bell: string, ring: string] | null): void => {
      // Somebody else may wait for it.
      if (answer !== null) send(this.#redis, "RPUSH", ...answer).catch(() => {});
    };
    const waits = (look: () => void): void => seat.wait(look);
    const wanted = { keys, isQuiet: seats.isDrained(name), attempt, waits, wait, endedInVain };
    return waiting.until<readonly LeasedTask[]>(waitMs, wanted);
  }

  async heartbeat(beats: readonly Heartbeat[], leaseMs: number): Promise<HeartbeatOutcome> {
    if (beats.length === 0) return { lost: [], cancelled: [] };
    const values = beats.flatMap(({ ref, token, started }) => {
      const { partition, text } = started ?? { partition: "", text: "" };
      return [lineNamed({ ref, token }) ?? "", token, partition, text];
    });
    type Answer = readonly ("held" | "cancelled" | "lost")[];
    const outcomes = await run<Answer>(this.#redis, scripts.heartbeat, leaseMs, ...values);
    const tokens = (outcome: Answer[number]): readonly string[] =>
      beats.filter((_, i) => outcomes[i] === outcome).map(({ token }) => token);
    return { lost: tokens("lost"), cancelled: tokens("cancelled") };
  }

  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    return results.length === 0 ? [] : this.handOver.settle(results);
  }

  async #settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    const order = byPartition(results);
    const call = scriptCall(this.#redis, scripts.settle);
    pushSettle(
      call,
      order.map((place) => results[place]!),
    );
    const settling = runCall<string>(this.#redis, scripts.settle, call);
    this.#redis.waiting.hint(inboxKeys(this.#redis, partitionsOf(results)));
    const outcomes: SettleOutcome[] = [];
    const letters = await settling;
    for (const [i, place] of order.entries()) outcomes[place] = OUTCOMES[letters[i] as keyof typeof OUTCOMES];
    return outcomes;
  }

  async lapse(limit: number): Promise<number> {
    const lapsed = unpackTasks(await run<readonly string[]>(this.#redis, scripts.lapsed, limit));
    if (lapsed.length === 0) return 0;
    const values = lapsed.flatMap((task) => {
      const text = taskMessage(task, "store", { kind: "deliveryLost", token: task.token });
      return [lineOf(task), task.token, task.partition, text];
    });
    return run<number>(this.#redis, scripts.lapse, ...values);
  }

  /** Tasks that were leased for somebody here who never heard of it go back to where they would have been. */
  async free(tasks: readonly LeasedTask[]): Promise<void> {
    for (const [line, ofOne] of groupedBy(tasks, lineOf)) {
      const tokens = ofOne.map(({ token }) => token);
      await run(this.#redis, scripts.free, line, ofOne[0]!.queue, ...tokens);
    }
  }

  /** Nothing to do: no restart drops a task here. */
  async restore(_tasks: readonly Task[]): Promise<void> {}
}

/** By which whoever leases from a queue waits. */
export function bellOf(redis: Redis, queue: string): string {
  return keyOf(redis, "bell", queue);
}

/** Each as lease.lua and lapsed.lua tell of it. */
function unpackTasks(answer: readonly string[]): readonly LeasedTask[] {
  const tasks: LeasedTask[] = [];
  for (let i = 0; i < answer.length; i += 2) tasks.push(unpackTask(answer[i]!, answer[i + 1]!));
  return tasks;
}
