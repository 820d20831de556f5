import type { Host } from "../host/host.ts";
import type { BusMessage, Kafka, Subscription } from "./kafka.ts";
import { unless } from "./reading.ts";

export interface TopicServed {
  readonly kafka: Kafka;
  readonly host: Host;
  readonly topic: string;
  readonly group: string;
  /** Resolves when none of them needs to come again. */
  readonly handle: (messages: readonly BusMessage[]) => Promise<void>;
  /** Told when the topic cannot be read, and with nothing when it can again. */
  readonly trouble: (error: unknown) => void;
  readonly stopping: AbortSignal;
}

/** Messages that are handled together. */
const MOST_AT_ONCE = 200;
const WAIT_MS = 500;
const AGAIN_MS = 1_000;

/**
 * Reads a topic for as long as it may. An offset is committed behind what was handled, so that a process that dies leaves
 * its messages to the next: they may come twice, and whoever handles them has to know it.
 */
export async function serveTopic(served: TopicServed): Promise<void> {
  const { kafka, host, topic, group, handle, trouble, stopping } = served;
  while (!stopping.aborted) {
    let subscription: Subscription | undefined;
    try {
      // Somebody may have removed it. Nothing is under way until it is read, so whoever stops waits for neither: a group takes a
      // quarter of a minute to settle. What is being opened ends with the connection.
      await unless(stopping, kafka.makeTopics([topic]));
      subscription = await unless(stopping, kafka.subscribe(topic, group));
      while (!stopping.aborted) {
        await subscription.ready(WAIT_MS);
        const messages = subscription.take(MOST_AT_ONCE);
        if (messages.length > 0) {
          await handle(messages);
          await subscription.commit(messages);
        }
        trouble(undefined);
      }
    } catch (error) {
      if (!stopping.aborted) trouble(error);
      await host.sleep(AGAIN_MS, stopping);
    } finally {
      await subscription?.close().catch(() => undefined);
    }
  }
}
