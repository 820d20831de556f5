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
import { byPartition, pushSettle } from "./settle-arguments.ts";
import { lineNamed, lineOf, unpackTask } from "./packed-task.ts";
import { inboxKeys, partitionsOf } from "./inbox.ts";
import { keyOf, type Redis, run, runCall, scriptCall, send } from "./redis.ts";
import { scripts } from "./scripts.ts";

/** Results in one script, as many as one may take its time for. */
const MOST_SETTLED = 200;

export class RedisTasks implements Tasks {
  readonly handOver: HandOver;
  readonly #redis: Redis;
  readonly #settling: Gathering<Settlement, SettleOutcome>;
  /** Queues, as they are asked for, that had nothing left when they were last looked at. */
  readonly #drained = new Set<string>();

  constructor(redis: Redis) {
    this.#redis = redis;
    this.#settling = new Gathering(MOST_SETTLED, (results) => this.#settle(results));
    this.handOver = new HandOver({
      host: redis.host,
      settle: (results) => this.#settling.add(results),
      wake: (partitions) => redis.waiting.hint(inboxKeys(redis, partitions)),
    });
  }

  async lease({ queues, max, leaseMs, waitMs }: LeaseRequest): Promise<readonly LeasedTask[]> {
    if (max <= 0) return [];
    if (queues.length === 0) return this.#redis.waiting.inVain(waitMs);
    const name = queues.join(" ");
    const attempt = async (): Promise<readonly LeasedTask[] | undefined> => {
      const tasks = unpackTasks(await run<readonly string[]>(this.#redis, scripts.lease, max, leaseMs, ...queues));
      // It has seen the end of all of them, and taken away their bells: whatever comes now rings.
      if (tasks.length < max) this.#drained.add(name);
      else this.#drained.delete(name);
      return tasks.length === 0 ? undefined : tasks;
    };
    // A bell wakes one of those who wait, and is no task: who dies with it in hand has taken nothing along.
    const keys = queues.map((queue) => bellOf(this.#redis, queue));
    const wait = (line: Line, waitMs: number): Promise<unknown> => line.send(["BLPOP", ...keys, String(waitMs / 1000)]);
    const endedInVain = (answer: readonly [bell: string, ring: string] | null): void => {
      // Somebody else may wait for it.
      if (answer !== null) send(this.#redis, "RPUSH", ...answer).catch(() => {});
    };
    const wanted = { keys, room: max, isQuiet: this.#drained.has(name), attempt, wait, endedInVain };
    return (await this.#redis.waiting.until(waitMs, wanted)) ?? [];
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
    const settling = runCall<readonly SettleOutcome[]>(this.#redis, scripts.settle, call);
    this.#redis.waiting.hint(inboxKeys(this.#redis, partitionsOf(results)));
    const outcomes: SettleOutcome[] = [];
    for (const [i, outcome] of (await settling).entries()) outcomes[order[i]!] = outcome;
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
