import type { RedisClientType } from "@redis/client";
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
import { unpackTask } from "./packed-task.ts";
import { keyOf, type Redis, run } from "./redis.ts";
import { scripts } from "./scripts.ts";

export class RedisTasks implements Tasks {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async lease({ queues, max, leaseMs, waitMs }: LeaseRequest): Promise<readonly LeasedTask[]> {
    if (max <= 0 || queues.length === 0) return [];
    const attempt = async (): Promise<readonly LeasedTask[] | undefined> => {
      const found = unpackTasks(await run<readonly string[]>(this.#redis, scripts.lease, max, leaseMs, ...queues));
      return found.length > 0 ? found : undefined;
    };
    // A bell wakes one of those who wait, and is no task: who dies with it in hand has taken nothing along.
    const bells = queues.map((queue) => keyOf(this.#redis, "bell", queue));
    const wait = (client: RedisClientType, waitMs: number): Promise<unknown> =>
      client.sendCommand(["BLPOP", ...bells, String(waitMs / 1000)]);
    return (await this.#redis.blocking.until(waitMs, attempt, wait)) ?? [];
  }

  async heartbeat(beats: readonly Heartbeat[], leaseMs: number): Promise<HeartbeatOutcome> {
    if (beats.length === 0) return { lost: [], cancelled: [] };
    const values = beats.flatMap(({ ref, token, started }) => {
      const { partition, text } = started ?? { partition: "", text: "" };
      return [ref, token, partition, text];
    });
    type Answer = readonly ("held" | "cancelled" | "lost")[];
    const outcomes = await run<Answer>(this.#redis, scripts.heartbeat, leaseMs, ...values);
    const tokens = (outcome: Answer[number]): readonly string[] =>
      beats.filter((_, i) => outcomes[i] === outcome).map(({ token }) => token);
    return { lost: tokens("lost"), cancelled: tokens("cancelled") };
  }

  async settle(results: readonly Settlement[]): Promise<readonly SettleOutcome[]> {
    if (results.length === 0) return [];
    const values = results.flatMap(({ ref, token, partition, outcome, text }) => {
      const isCompletion = outcome === "completed" ? "1" : "0";
      return [ref, token, partition, isCompletion, text];
    });
    return run<readonly SettleOutcome[]>(this.#redis, scripts.settle, ...values);
  }

  async lapse(limit: number): Promise<number> {
    const lapsed = unpackTasks(await run<readonly string[]>(this.#redis, scripts.lapsed, limit));
    if (lapsed.length === 0) return 0;
    const values = lapsed.flatMap((task) => {
      const text = taskMessage(task, "store", { kind: "deliveryLost", token: task.token });
      return [task.ref, task.token, task.partition, text];
    });
    return run<number>(this.#redis, scripts.lapse, ...values);
  }

  /** Nothing to do: no restart drops a task here. */
  async restore(_tasks: readonly Task[]): Promise<void> {}
}

function unpackTasks(answer: readonly string[]): readonly LeasedTask[] {
  return Array.from({ length: answer.length / 2 }, (_, i) => unpackTask(answer[2 * i]!, answer[2 * i + 1]!));
}
