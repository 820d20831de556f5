import { KafkaError } from "./kafka.ts";

/** Whatever goes wrong with a call, as an error for people. */
export async function told<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  try {
    return await call();
  } catch (error) {
    throw kafkaError(error);
  }
}

const TOO_LARGE = ["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"];

/** The same with all that it was made of, in one message. */
export function kafkaError(error: unknown): KafkaError {
  if (error instanceof KafkaError) return error;
  const isTooLarge = TOO_LARGE.some((id) => isOf(error, id));
  const said = [...causesOf(error)].map((one) => one.message).filter((text) => text !== "");
  const fix = isOfLogin(error) ? "see to USER:PASSWORD in the address of the bus" : undefined;
  const told = [...new Set(said)].join(" ") || "Kafka does not answer";
  return new KafkaError(told, { cause: error, isTooLarge, ...(fix !== undefined && { fix }) });
}

/** Whether a broker has said this. */
export function isOf(error: unknown, apiId: string): boolean {
  return [...causesOf(error)].some((one) => (one as { apiId?: unknown }).apiId === apiId);
}

function isOfLogin(error: unknown): boolean {
  return [...causesOf(error)].some((one) => (one as { code?: unknown }).code === "PLT_KFK_AUTHENTICATION");
}

/** The client asks for a topic in words, and answers likewise. */
export function isOfUnknownTopic(error: unknown): boolean {
  const isSaid = [...causesOf(error)].some(({ message }) => message.startsWith("Unknown topic "));
  return isSaid || isOf(error, "UNKNOWN_TOPIC_OR_PARTITION");
}

/** An error, and those that it was made of. */
function* causesOf(error: unknown): Iterable<Error> {
  if (!(error instanceof Error)) return;
  yield error;
  for (const one of (error as { errors?: readonly unknown[] }).errors ?? []) yield* causesOf(one);
  yield* causesOf(error.cause);
}
