import { MillraceError } from "../errors/millrace-error.ts";
import { Refusal } from "../api/service/refusal.ts";
import { type BusMessage, type BusRecord, type Kafka, KafkaError } from "./kafka.ts";

/** Why a message is not carried out, now or at all. */
export interface Rejection {
  readonly code: string;
  readonly message: string;
}

/** What is wrong with the message itself will be wrong for ever; what is wrong with us will not. */
const PASSING: ReadonlySet<string> = new Set(["unavailable", "rateLimited"]);
const MAX_SHOWN_CHARS = 65_536;
/** The client hashes a key in the square of its length: one of 5 MB takes it minutes. */
const MAX_KEY_CHARS = 1_024;

/** The store, or whoever else is needed, does not do it now. What cannot be read now may never be. */
export function isPassing(error: unknown): boolean {
  return error instanceof MillraceError && PASSING.has(error.kind) && error.code !== "EXECUTION_UNREADABLE";
}

/** Undefined if nothing is known to be wrong with the message. */
export function rejectionOf(error: unknown): Rejection | undefined {
  if (!(error instanceof MillraceError) || isPassing(error) || error.kind === "internal") return undefined;
  const more = error instanceof Refusal ? error.more : {};
  const faults = more.errors?.map(({ message }) => message) ?? [];
  const said = more.detail ?? error.message;
  return { code: error.code, message: [said, ...faults.filter((fault) => fault !== said)].join(" ") };
}

/**
 * Puts a message aside with the reason, so that the ones behind it go on. What the topic does not take is told without its
 * value, which is still where it came from; and if it takes nothing at all, the log has to do.
 */
export async function reject(kafka: Kafka, topic: string, message: BusMessage, reason: Rejection): Promise<void> {
  const { partition, offset } = message;
  const key = message.key?.slice(0, MAX_KEY_CHARS).toWellFormed();
  const place = { ...reason, topic: message.topic, partition, offset: String(offset) };
  const value = message.value.toString().slice(0, MAX_SHOWN_CHARS).toWellFormed();
  const records: readonly BusRecord[] = [
    { topic, ...(key !== undefined && { key }), value: JSON.stringify({ ...place, key, value }) },
    { topic, value: JSON.stringify(place) },
  ];
  for (const record of records) {
    try {
      return await kafka.send([record]);
    } catch (error) {
      if (!(error instanceof KafkaError) || !error.isTooLarge) throw error;
    }
  }
}
