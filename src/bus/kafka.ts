/** A message as it came. */
export interface BusMessage {
  readonly topic: string;
  readonly partition: number;
  readonly offset: bigint;
  readonly leaderEpoch: number;
  readonly key: string | undefined;
  readonly value: Buffer;
}

/** One to be sent. */
export interface BusRecord {
  readonly topic: string;
  /** What has the same comes in order; without one it goes anywhere. */
  readonly key?: string;
  readonly value: string;
}

/** One reader of a topic. */
export interface Subscription {
  /** Resolves when something is at hand, after `waitMs`, or when it can read no more. */
  ready(waitMs: number): Promise<void>;
  /** As many as are at hand, at most `max`. Throws when it can read no more. */
  take(max: number): readonly BusMessage[];
  /**
   * They, and what came before them, need not come again to this group. Answers those of which that is so: the others
   * belong to somebody else by now, to whom they come.
   */
  commit(messages: readonly BusMessage[]): Promise<readonly BusMessage[]>;
  close(): Promise<void>;
}

/** What the bus needs of Kafka. */
export interface Kafka {
  /** Makes those that are not there. */
  makeTopics(topics: readonly string[]): Promise<void>;
  /** Rejects if no broker answers, after a few seconds at most. */
  answers(): Promise<void>;
  /** A topic that was removed and made again has another. */
  topicId(topic: string): Promise<string>;
  /** All of them are stored when it resolves; if it rejects, some may be. */
  send(records: readonly BusRecord[]): Promise<void>;
  /** Shared with whoever else is in the group: each message comes to one of them, from the first that was not committed. */
  subscribe(topic: string, group: string): Promise<Subscription>;
  /** All that comes from now on, whoever else reads it. */
  follow(topic: string): Promise<Subscription>;
  /** Ends all readers, those too that are still being opened: whoever waits for one is told. There are no new ones. */
  stopReading(): Promise<void>;
  close(): Promise<void>;
}

/** Kafka is not there, or does not do what is asked. The message is for people. */
export class KafkaError extends Error {
  override readonly name = "KafkaError";
  /** A message is larger than the topic takes. */
  readonly isTooLarge: boolean;
  /** What somebody can do about it, if it is not to see to the brokers. */
  readonly fix: string | undefined;

  constructor(message: string, options?: ErrorOptions & { readonly isTooLarge?: boolean; readonly fix?: string }) {
    super(message, options);
    this.isTooLarge = options?.isTooLarge === true;
    this.fix = options?.fix;
  }
}
