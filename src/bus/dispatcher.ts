import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Gateway, ShownTask } from "../api/service/gateway.ts";
import type { ReportedError, TaskResult } from "../api/service/task-results.ts";
import type { Host } from "../host/host.ts";
import { type Kafka, KafkaError } from "./kafka.ts";
import type { Room } from "./room.ts";
import type { Topics } from "./topics.ts";

export interface DispatcherParts {
  readonly kafka: Kafka;
  readonly topics: Topics;
  readonly gateway: Pick<Gateway, "heartbeat" | "lease" | "keep" | "post">;
  readonly room: Room;
  readonly host: Host;
  readonly queue: string;
  readonly stopping: AbortSignal;
  /** Told when nothing can be sent, and with nothing when it can again. */
  readonly trouble: (error: unknown) => void;
}

const CALLER: Caller = { ...LOCAL, by: "bus", secrets: false };
/** Until a task is in Kafka; and of a worker that tells that it is alive, from one word to the next. */
export const LEASE_SECONDS = 30;
/** Of a task that is in Kafka. Nobody loses it there: what ends it are the time limits of its node. */
const PARKED_MS = 7 * 24 * 3_600_000;
const MOST_AT_ONCE = 100;
const WAIT_MS = 1_000;
const AGAIN_MS = 1_000;
const LONGEST_AGAIN_MS = 30_000;
/** How often it is looked whether there is room again. */
const ROOM_MS = 200;
/** What is not acknowledged by then is handed back while it is still ours. */
const SEND_MS = 20_000;
/** For so long it is tried to write down that tasks were sent. */
const KEEP_MS = 15_000;

/**
 * Takes the tasks of one queue out of the store and puts them into Kafka, no more than its window holds. Each is leased
 * for a moment, sent, and then kept for as long as it may wait there. If this process dies in between, the lease runs out
 * and the task goes out again: it is sent twice then, and its first result counts.
 */
export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #worker: string;
  /** Since something was sent. */
  #failures = 0;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    this.#worker = `bus-${parts.host.id()}`;
  }

  /** Says that its queue is served, so that whoever comes next may name the handler. */
  async announce(): Promise<void> {
    const { gateway, queue } = this.#parts;
    await gateway.heartbeat(CALLER, this.#worker, [], { handlers: [queue], queues: [queue] });
  }

  /** Until it is told to stop. */
  async run(): Promise<void> {
    const { host, stopping, trouble } = this.#parts;
    while (!stopping.aborted) {
      try {
        await this.#round();
        trouble(undefined);
      } catch (error) {
        if (stopping.aborted) return;
        trouble(error);
        const waitMs = Math.min(LONGEST_AGAIN_MS, AGAIN_MS * 2 ** this.#failures);
        await host.sleep(waitMs, stopping);
      }
    }
  }

  async #round(): Promise<void> {
    const { gateway, kafka, topics, room, queue, host, stopping } = this.#parts;
    // Each task that is taken in vain is two entries in a journal: not before there is somebody to give it to.
    if (this.#failures > 0) await kafka.makeTopics([topics.dispatch(queue)]);
    const left = await room.of(queue);
    if (left === 0) return host.sleep(ROOM_MS, stopping);
    const { tasks } = await gateway.lease(
      CALLER,
      {
        worker_id: this.#worker,
        queues: [queue],
        max: Math.min(left, MOST_AT_ONCE),
        wait_ms: WAIT_MS,
        lease_seconds: LEASE_SECONDS,
        isParked: true,
      },
      stopping,
    );
    if (tasks.length === 0) return;
    room.take(queue, tasks.length);
    await this.#send(tasks);
  }

  /** Those that were sent are kept; of the others none has used up its attempt, unless it can never be sent. */
  async #send(tasks: readonly ShownTask[]): Promise<void> {
    const { gateway } = this.#parts;
    try {
      await this.#write(tasks);
      this.#failures = 0;
    } catch (error) {
      if (isTooLarge(error) && tasks.length > 1) {
        return this.#sendEach(tasks);
      }
      const results = tasks.map(({ token }): TaskResult => {
        return isTooLarge(error) ? { token, error: tooLarge(error) } : { token, handedBack: true };
      });
      if (!isTooLarge(error)) this.#failures++;
      await gateway.post(CALLER, results);
      if (!isTooLarge(error)) throw error;
      return;
    }
    await this.#keep(tasks.map(({ token }) => token));
  }

  /** One of them is too large. They may have been written, and are written twice then. */
  async #sendEach(tasks: readonly ShownTask[]): Promise<void> {
    for (const [i, task] of tasks.entries()) {
      try {
        await this.#send([task]);
      } catch (error) {
        const rest = tasks.slice(i + 1).map(({ token }): TaskResult => ({ token, handedBack: true }));
        if (rest.length > 0) await this.#parts.gateway.post(CALLER, rest);
        throw error;
      }
    }
  }

  /** Again while they are ours: what nobody knows to be in Kafka goes there once more. */
  async #keep(tokens: readonly string[]): Promise<void> {
    const { gateway, host, stopping, trouble } = this.#parts;
    const untilMs = host.monotonicMs() + KEEP_MS;
    for (;;) {
      try {
        return await gateway.keep(tokens, PARKED_MS);
      } catch (error) {
        if (stopping.aborted || host.monotonicMs() >= untilMs) throw error;
        trouble(error);
      }
      await host.sleep(AGAIN_MS, stopping);
    }
  }

  /** Each with a key of its own: the tasks of one execution are for several workers. */
  async #write(tasks: readonly ShownTask[]): Promise<void> {
    const { kafka, topics, queue, host } = this.#parts;
    const topic = topics.dispatch(queue);
    const records = tasks.map((task) => ({ topic, key: task.task_id, value: JSON.stringify(task) }));
    const isOver = new AbortController();
    const late = host.sleep(SEND_MS, isOver.signal).then(() => {
      throw new KafkaError("no broker has acknowledged the tasks in time");
    });
    try {
      await Promise.race([kafka.send(records), late]);
    } finally {
      isOver.abort();
    }
  }
}

function isTooLarge(error: unknown): error is KafkaError {
  return error instanceof KafkaError && error.isTooLarge;
}

function tooLarge({ message }: KafkaError): ReportedError {
  const said = `What this node is given is larger than its topic takes: ${message}`;
  return { code: "RESOLVED_INPUT_TOO_LARGE", message: said, retryable: false };
}
