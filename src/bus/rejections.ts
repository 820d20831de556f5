import { MillraceError } from "../errors/millrace-error.ts";
import { Refusal } from "../api/service/refusal.ts";
import type { BusMessage, Kafka } from "./kafka.ts";

/** Why a message is not carried out, now or at all. */
export interface Rejection {
  readonly code: string;
  readonly message: string;
}

/** What is wrong with the message itself will be wrong for ever; what is wrong with us will not. */
const PASSING: ReadonlySet<string> = new Set(["unavailable", "rateLimited", "internal"]);
const MAX_SHOWN_CHARS = 65_536;

/** Undefined if it should be tried again. */
export function rejectionOf(error: unknown): Rejection | undefined {
  if (!(error instanceof MillraceError) || PASSING.has(error.kind)) return undefined;
  const more = error instanceof Refusal ? error.more : {};
  const faults = more.errors?.map(({ message }) => message) ?? [];
  const said = more.detail ?? error.message;
  return { code: error.code, message: [said, ...faults.filter((fault) => fault !== said)].join(" ") };
}

/** Puts a message aside with the reason, so that the ones behind it go on. */
export async function reject(kafka: Kafka, topic: string, message: BusMessage, reason: Rejection): Promise<void> {
  const { partition, offset, key } = message;
  const text = message.value.toString().toWellFormed();
  const value = JSON.stringify({
    ...reason,
    topic: message.topic,
    partition,
    offset: String(offset),
    ...(key !== undefined && { key }),
    value: text.slice(0, MAX_SHOWN_CHARS),
  });
  await kafka.send([{ topic, value, ...(key !== undefined && { key }) }]);
}
