import type { BusMessage, Kafka, Subscription } from "../bus/kafka.ts";

/** Told how many messages of a topic were sent, or need not come again. */
export type CountMessages = (topic: string, way: "sent" | "handled", count: number) => void;

/** Kafka as it is, and what goes through it counted. */
export function measuredKafka(kafka: Kafka, count: CountMessages): Kafka {
  const read = async (opening: Promise<Subscription>): Promise<Subscription> => {
    const subscription = await opening;
    return {
      ready: (waitMs) => subscription.ready(waitMs),
      take: (max) => subscription.take(max),
      commit: async (messages) => {
        const committed = await subscription.commit(messages);
        for (const [topic, its] of byTopic(committed)) count(topic, "handled", its.length);
        return committed;
      },
      close: () => subscription.close(),
    };
  };
  return {
    makeTopics: (topics) => kafka.makeTopics(topics),
    answers: () => kafka.answers(),
    topicId: (topic) => kafka.topicId(topic),
    send: async (records) => {
      await kafka.send(records);
      for (const [topic, its] of byTopic(records)) count(topic, "sent", its.length);
    },
    subscribe: (topic, group) => read(kafka.subscribe(topic, group)),
    follow: (topic) => read(kafka.follow(topic)),
    stopReading: () => kafka.stopReading(),
    close: () => kafka.close(),
  };
}

function byTopic<Item extends Pick<BusMessage, "topic">>(items: readonly Item[]): Map<string, Item[]> {
  return Map.groupBy(items, ({ topic }) => topic);
}
