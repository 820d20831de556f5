import type { BusAddress } from "../settings/bus-address.ts";

/** The names of all topics. They are a promise to whoever produces and consumes there. */
export interface Topics {
  /** Starts of stored workflows, by anybody. */
  readonly start: string;
  /** What workers tell of tasks: that they are alive, and results. */
  readonly complete: string;
  /** Tasks that count no more, for the workers that have them. */
  readonly cancel: string;
  /** Messages that could not be understood or carried out, each with the reason. */
  readonly rejected: string;
  /** Tasks of one queue. */
  readonly dispatch: (queue: string) => string;
}

export function topicsOf({ prefix }: Pick<BusAddress, "prefix">): Topics {
  return {
    start: `${prefix}.workflow.start`,
    complete: `${prefix}.task.complete`,
    cancel: `${prefix}.task.cancel`,
    rejected: `${prefix}.rejected`,
    dispatch: (queue) => `${prefix}.task.dispatch.${topicName(queue)}`,
  };
}

const UNFIT = /[^A-Za-z0-9._-]|_(?=[0-9A-F]{2})/gu;

/**
 * A queue may be called anything, a topic may not: whatever does not fit becomes `_` and the hex digits of its bytes, as
 * `_2F` for a slash, and an underscore that would be read so does too. No two queues have one topic.
 */
function topicName(queue: string): string {
  return queue.replaceAll(UNFIT, (character) =>
    [...Buffer.from(character)].map((byte) => `_${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}
