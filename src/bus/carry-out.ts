import type { Host } from "../host/host.ts";
import { type BusMessage, type Kafka, KafkaError } from "./kafka.ts";
import { isPassing, type Rejection, reject, rejectionOf } from "./rejections.ts";
import type { Topics } from "./topics.ts";

export interface CarryOutParts {
  readonly kafka: Kafka;
  readonly topics: Topics;
  readonly host: Host;
  readonly stopping: AbortSignal;
  readonly observer: CarryOutObserver;
}

export interface CarryOutObserver {
  rejected(message: BusMessage, code: string, reason: string): void;
  /** Nothing is wrong with it, and it cannot be carried out now. */
  delayed(error: unknown): void;
}

const AGAIN_MS = 1_000;
/** What fails so often for a reason that nobody knows is put aside: one message must not stop all behind it. */
const MOST_TRIES = 5;

/**
 * Until what a message asks for is done, or the message is put aside as it never will be. Rejects only if it was told to
 * stop: the message comes again then.
 */
export async function carryOut(parts: CarryOutParts, message: BusMessage, work: () => Promise<void>): Promise<void> {
  let tries = 0;
  await untilDone(parts, async () => {
    try {
      await work();
    } catch (error) {
      if (!isPassing(error) && !(error instanceof KafkaError)) tries++;
      const reason = rejectionOf(error) ?? (tries >= MOST_TRIES ? unknown(error) : undefined);
      if (reason === undefined) throw error;
      await putAside(parts, message, reason);
    }
  });
}

export async function putAside(
  { kafka, topics, observer }: CarryOutParts,
  message: BusMessage,
  reason: Rejection,
): Promise<void> {
  await reject(kafka, topics.rejected, message, reason);
  observer.rejected(message, reason.code, reason.message);
}

/** Again and again; rejects only if it was told to stop. */
export async function untilDone(
  { host, stopping, observer }: Pick<CarryOutParts, "host" | "stopping" | "observer">,
  work: () => Promise<void>,
): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      observer.delayed(error);
    }
    await host.sleep(AGAIN_MS, stopping);
    stopping.throwIfAborted();
  }
}

function unknown(error: unknown): Rejection {
  return { code: "INTERNAL", message: error instanceof Error ? error.message : String(error) };
}
