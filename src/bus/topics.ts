import { quote } from "../errors/registry.ts";
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

/** No topic's name may have more. */
const MAX_CHARS = 249;

/**
 * Why brokers would refuse the topics of these queues; undefined if they take them. Of names that differ only in dots and
 * underscores they take the first: in their metrics both would be the same.
 */
export function queuesFault({ dispatch }: Topics, queues: readonly string[]): string | undefined {
  const byName = new Map<string, string>();
  for (const queue of new Set(queues)) {
    const topic = dispatch(queue);
    if (topic.length > MAX_CHARS)
      return `the topic of the queue ${quote(queue)} would have ${topic.length} characters, and Kafka takes at most ${MAX_CHARS}: give the queue a shorter name.`;
    const name = topic.replaceAll(".", "_");
    const other = byName.get(name);
    if (other !== undefined)
      return `the queues ${quote(other)} and ${quote(queue)} differ only in dots and underscores, and Kafka takes no two such topics: give one of them another name.`;
    byName.set(name, queue);
  }
  return undefined;
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
