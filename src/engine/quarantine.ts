import type { Message } from "../core/message.ts";
import type { BatchBuilder } from "./batch.ts";
import type { Quarantine } from "./resident.ts";

const SHELL_FORMAT = 1;

/**
 * Writes down that an entity cannot be decided, without deciding anything. Its partition goes on; the entity waits for
 * a release, and everything sent to it meanwhile is kept in its journal.
 */
export function quarantineEvents(builder: BatchBuilder, entity: Quarantine, atMs: number): void {
  if (!entity.fresh) return;
  entity.fresh = false;
  if (entity.version === 0) return;
  const event = { kind: "quarantined", atMs, error: entity.error };
  builder.events(entity.key, [event], entity.version + 1, SHELL_FORMAT);
  entity.version++;
  // The first engine that can read it must not wait for a message or a timer to find that out.
  if (entity.error.code === "FORMAT_TOO_NEW") builder.wake(entity.key, 0);
  const letter = { id: `quarantine:${entity.key}:${entity.version}`, class: "poison" as const, queue: "quarantine" };
  builder.deadLetter(
    entity.key,
    { ...letter, text: JSON.stringify({ entity: entity.key, error: entity.error }) },
    atMs,
  );
}

export function parkMessage(builder: BatchBuilder, entity: Quarantine, message: Message, atMs: number): void {
  quarantineEvents(builder, entity, atMs);
  if (entity.version === 0) {
    // It never came to life: the message that would have started it is all there is, and goes to the dead letters.
    const letter = { id: `poison:${message.id}`, class: "poison" as const, queue: "quarantine" };
    builder.deadLetter(entity.key, { ...letter, text: JSON.stringify({ message, error: entity.error }) }, atMs);
    builder.reply(message.reply, { refused: "QUARANTINED" });
    return;
  }
  builder.events(entity.key, [{ kind: "parked", atMs, message } as never], entity.version + 1, SHELL_FORMAT);
  entity.version++;
  // No answer: nobody has decided it. It will be, and answered, when the entity is released.
  entity.parked.push(message);
}

/**
 * Whether it can be let go far enough to be cancelled: what failed is the decision of one message, not the reading of its
 * events. If deciding it throws again, it is in quarantine again, but over. A cancel that comes a second time, maybe for a
 * generation that has ended since, is over nothing, and waits like everything else.
 */
export function isCancelled({ body }: Message, { version, fresh, error, answered }: Quarantine): boolean {
  if (body.kind !== "cancel" || answered.has(body.request)) return false;
  return version > 0 && !fresh && error.code !== "FORMAT_TOO_NEW" && error.code !== "FOLD_FAILED";
}

/** The letter to throw away, if the engine itself wrote it: no state knows of those, so the entity need not be there, nor be well. */
export function ownLetter({ body }: Message): string | undefined {
  return body.kind === "discardLetter" && /^(?:quarantine|poison|inbox):/.test(body.letter) ? body.letter : undefined;
}

/** Somebody waits for an answer to it. */
export function isCommand({ body }: Message): boolean {
  return "request" in body;
}

/** Of a task: it may be what could not be decided. */
export function isResult({ body }: Message): boolean {
  return body.kind.startsWith("task") || body.kind === "deliveryLost";
}

/** Ends a quarantine. What was parked comes back as mail, in this very commit, so that it is decided once and in order. */
export function releaseQuarantine(
  builder: BatchBuilder,
  entity: Quarantine,
  message: Message | undefined,
  atMs: number,
): void {
  const request = message?.body.kind === "release" ? message.body.request : "automatic";
  builder.events(entity.key, [{ kind: "released", atMs, request } as never], entity.version + 1, SHELL_FORMAT);
  for (const parked of entity.parked) builder.send(parked);
  if (message !== undefined) builder.reply(message.reply, { ok: { released: true, parked: entity.parked.length } });
}
