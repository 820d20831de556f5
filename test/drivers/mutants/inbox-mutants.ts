import { idsOf } from "../../../src/drivers/memory/inbox.ts";
import { StoredMessage } from "../../../src/drivers/memory/memory-data.ts";
import type { MemoryStore } from "../../../src/drivers/memory/memory-store.ts";
import type {
  AppendOutcome,
  Inbox,
  Outgoing,
  Position,
  ReadRequest,
  ReadResult,
  Reply,
} from "../../../src/store/contract.ts";
import { SHORT_MS } from "../../../src/store/conformance/harness.ts";
import { afterBatch, bent, type Mutant, mutant, onBatch, pause } from "./mutant.ts";

const onInbox = (name: string, changes: (inbox: MemoryStore["inbox"], store: MemoryStore) => Partial<Inbox>): Mutant =>
  mutant(name, (store) => ({ inbox: bent<Inbox>(store.inbox, changes(store.inbox, store)) }));

const onRead = (
  name: string,
  read: (inbox: Inbox, request: ReadRequest, store: MemoryStore) => Promise<ReadResult>,
): Mutant =>
  onInbox(name, (inbox, store) => ({
    read: async (requests, waitMs) => {
      await inbox.read(requests, waitMs);
      return Promise.all(requests.map((request) => read(inbox, request, store)));
    },
  }));

const one = async (inbox: Inbox, request: ReadRequest): Promise<ReadResult> => (await inbox.read([request], 0))[0]!;

const ids = idsOf;

const cursor = (position: Position): number => Math.max(0, ...ids(position));

const positionOf = (ids: readonly number[]): Position => ({ driver: "memory", value: { ids, before: [] } });

const appendMutants: readonly Mutant[] = [
  onInbox("an append puts its messages in the wrong order", (inbox) => ({
    append: async (messages) => (await inbox.append(messages.toReversed())).toReversed(),
  })),
  onInbox("an append loses the last of several messages", (inbox) => ({
    append: async (messages) => {
      const outcomes = await inbox.append(messages.length > 1 ? messages.slice(0, -1) : messages);
      return messages.map((_, i) => outcomes[i] ?? "appended");
    },
  })),
  onInbox("an append leaves out what is there already", (inbox, store) => ({
    append: async (messages) => {
      const known = new Set(store.data.partitions.flatMap((partition) => partition.inbox.map(({ text }) => text)));
      await inbox.append(messages.filter(({ text }) => !known.has(text)));
      return messages.map(() => "appended");
    },
  })),
  onInbox("appends at the same moment lose messages", (_, store) => ({
    append: async (messages) => {
      const before = store.data.partitions.map(({ inbox }) => [...inbox]);
      await pause();
      for (const [i, { inbox }] of store.data.partitions.entries()) inbox.splice(0, inbox.length, ...before[i]!);
      return store.inbox.append(messages);
    },
  })),
  onInbox("an append of nothing fails", (inbox) => ({
    append: async (messages) => {
      if (messages.length === 0) throw new Error("nothing to append");
      return inbox.append(messages);
    },
  })),
  onInbox("starts are never refused", (inbox) => ({
    append: (messages) => inbox.append(messages.map((message) => ({ ...message, start: false }))),
  })),
  onInbox("commands are refused like starts", (inbox) => ({
    append: (messages) => inbox.append(messages.map((message) => ({ ...message, start: true }))),
  })),
  onInbox("a full store takes starts", (inbox, store) => ({
    append: async (messages) => {
      const { isFull } = store.faults;
      store.faults.isFull = false;
      const outcomes = await inbox.append(messages);
      store.faults.isFull = isFull;
      return outcomes;
    },
  })),
  onInbox("a start that is refused is there all the same", (inbox) => ({
    append: async (messages) => {
      const outcomes = await inbox.append(messages);
      await inbox.append(messages.filter((_, i) => outcomes[i] !== "appended").map((m) => ({ ...m, start: false })));
      return outcomes;
    },
  })),
  onInbox("starts are refused one too early", (inbox, store) => ({
    append: async (messages) => {
      const isNearlyFull = ({ partition }: Outgoing): boolean => store.data.partitions[partition]!.inbox.length >= 59;
      const outcomes: AppendOutcome[] = [];
      for (const message of messages) {
        const [outcome] =
          message.start && isNearlyFull(message) ? ["overloaded" as const] : await inbox.append([message]);
        outcomes.push(outcome!);
      }
      return outcomes;
    },
  })),
  onInbox("the inboxes of all partitions are counted together", (inbox, store) => ({
    append: async (messages) => {
      const count = store.data.partitions.reduce((sum, partition) => sum + partition.inbox.length, 0);
      if (count < 60) return inbox.append(messages);
      return Promise.all(messages.map(async (m) => (m.start ? "overloaded" : (await inbox.append([m]))[0]!)));
    },
  })),
  onInbox("an inbox that was full once stays full", (inbox) => {
    let wasFull = false;
    return {
      append: async (messages) => {
        if (wasFull && messages.some(({ start }) => start)) return messages.map(() => "overloaded");
        const outcomes = await inbox.append(messages);
        wasFull ||= messages.length >= 60;
        return outcomes;
      },
    };
  }),
  mutant("results, lapses and mail are lost when the inbox is full", (store) => {
    const isFull = (): boolean => store.data.partitions[0]!.inbox.length >= 60;
    const trimmed = async <Answer>(action: () => Promise<Answer>): Promise<Answer> => {
      const wasFull = isFull();
      const answer = await action();
      const { inbox } = store.data.partitions[0]!;
      if (wasFull) inbox.length = 60;
      return answer;
    };
    return {
      tasks: bent<MemoryStore["tasks"]>(store.tasks, {
        settle: (results) => trimmed(() => store.tasks.settle(results)),
        lapse: (limit) => trimmed(() => store.tasks.lapse(limit)),
      }),
      journal: bent<MemoryStore["journal"]>(store.journal, {
        commit: (batches) => trimmed(() => store.journal.commit(batches)),
      }),
    };
  }),
];

const readMutants: readonly Mutant[] = [
  onRead("a read gives the newest first", async (inbox, request) => {
    const all = await one(inbox, { ...request, limit: 10_000 });
    return { ...all, messages: all.messages.toReversed().slice(0, request.limit) };
  }),
  onRead("a read takes messages out", async (inbox, request, store) => {
    const result = await one(inbox, request);
    const held = store.data.partitions[request.partition]!.inbox;
    held.splice(0, held.length, ...held.filter(({ id }) => !ids(result.position).includes(id)));
    return result;
  }),
  onRead("a read needs an owner", async (inbox, request, store) =>
    one(inbox, store.data.partitions[request.partition]!.nonce === null ? { ...request, limit: 0 } : request),
  ),
  onRead("a read does not stop at its limit", (inbox, request) => one(inbox, { ...request, limit: 10_000 })),
  onRead("a read does not stop when it is long", (inbox, request) => one(inbox, { ...request, maxChars: 1e9 })),
  onRead("a read goes one message beyond its length", async (inbox, request) => {
    const { messages } = await one(inbox, request);
    return one(inbox, { ...request, maxChars: 1e9, limit: Math.min(request.limit, messages.length + 1) });
  }),
  onRead("a message too long for a read is never read", async (inbox, request) => {
    const { messages } = await one(inbox, { ...request, limit: 1 });
    return one(inbox, (messages[0]?.length ?? 0) > request.maxChars ? { ...request, limit: 0 } : request);
  }),
  onRead("the batch in flight is read again", (inbox, request) => one(inbox, { ...request, after: null })),
  onRead("a read goes on behind the greatest id it has seen", (inbox, request, store) => {
    if (request.after === null) return one(inbox, request);
    const seen = cursor(request.after);
    const older = store.data.partitions[request.partition]!.inbox.filter(({ id }) => id <= seen).map(({ id }) => id);
    return one(inbox, { ...request, after: positionOf(older) });
  }),
  onInbox("a read goes on where the last one ended", (inbox) => {
    let last: Position | null = null;
    return {
      read: async (requests, waitMs) => {
        const results = await inbox.read(
          requests.map((request) => ({ ...request, after: request.after ?? last })),
          waitMs,
        );
        last = requests[0]?.after === null ? null : (results[0]?.position ?? null);
        return results;
      },
    };
  }),
  onInbox("the limit is for all partitions together", (inbox) => ({
    read: async (requests, waitMs) => {
      await inbox.read(requests, waitMs);
      let left = requests[0]?.limit ?? 0;
      const limited: ReadResult[] = [];
      for (const request of requests) {
        limited.push(await one(inbox, { ...request, limit: left }));
        left -= limited.at(-1)!.messages.length;
      }
      return limited;
    },
  })),
  onInbox("results without messages are left out", (inbox) => ({
    read: async (requests, waitMs) => {
      const results = await inbox.read(requests, waitMs);
      return results.filter(({ messages }) => messages.length > 0);
    },
  })),
  onInbox("a read does not wait", (inbox) => ({ read: (requests) => inbox.read(requests, 0) })),
  onInbox("a read is not woken", (inbox) => ({
    read: async (requests, waitMs) => {
      const results = await inbox.read(requests, 0);
      if (results.some(({ messages }) => messages.length > 0)) return results;
      await inbox.read([], waitMs);
      return inbox.read(requests, 0);
    },
  })),
  onInbox("a read is woken by its first partition only", (inbox) => ({
    read: async (requests, waitMs) => {
      const results = await inbox.read(requests, 0);
      if (results.some(({ messages }) => messages.length > 0)) return results;
      await inbox.read(requests.slice(0, 1), waitMs);
      return inbox.read(requests, 0);
    },
  })),
  onInbox("a read is ended by any message", (inbox, store) => ({
    read: async (requests, waitMs) => {
      const anywhere = store.data.partitions.map((_, partition) => ({ ...requests[0]!, partition, after: null }));
      await inbox.read(anywhere, waitMs);
      return inbox.read(requests, 0);
    },
  })),
  onRead("a position is no plain data", async (inbox, request) => {
    const after = request.after === null ? null : positionOf([...(request.after.value as Set<number>)]);
    const result = await one(inbox, { ...request, after });
    return { ...result, position: { driver: "memory", value: new Set(ids(result.position)) } };
  }),
];

const onPosition = (position: Position | null, change: (position: Position) => readonly number[]): Position | null =>
  position === null ? null : positionOf(change(position));

const consumeMutants: readonly Mutant[] = [
  onBatch("a commit consumes everything up to the greatest id", (batch, store) => ({
    ...batch,
    consumed: onPosition(batch.consumed, (position) =>
      store.data.partitions[batch.fence.partition]!.inbox.filter(({ id }) => id <= cursor(position)).map(
        ({ id }) => id,
      ),
    ),
  })),
  onBatch("a commit consumes the whole inbox", (batch, store) => ({
    ...batch,
    consumed: onPosition(batch.consumed, () => store.data.partitions[batch.fence.partition]!.inbox.map(({ id }) => id)),
  })),
  onBatch("a commit leaves one message of a position", (batch) => ({
    ...batch,
    consumed: onPosition(batch.consumed, (position) => ids(position).slice(1)),
  })),
  afterBatch("a commit consumes the mail it sends", (batch, outcome, store) => {
    if (outcome.kind !== "committed" || batch.consumed === null) return;
    const { inbox } = store.data.partitions[batch.fence.partition]!;
    inbox.splice(inbox.length - batch.mail.length);
  }),
];

/** Commits without the mail, and sends it otherwise. */
const onMail = (name: string, send: (store: MemoryStore, mail: readonly Outgoing[]) => unknown): Mutant =>
  mutant(name, (store) => ({
    journal: bent<MemoryStore["journal"]>(store.journal, {
      commit: async (batches) => {
        const outcomes = await store.journal.commit(batches.map((batch) => ({ ...batch, mail: [] })));
        for (const [i, batch] of batches.entries())
          if (outcomes[i]?.kind === "committed") await send(store, batch.mail);
        return outcomes;
      },
    }),
  }));

const mailMutants: readonly Mutant[] = [
  onMail("mail is sent after the commit", (store, mail) => {
    setImmediate(() => void store.inbox.append(mail).catch(() => {}));
  }),
  onMail("mail is refused when the inbox is full", (store, mail) => store.inbox.append(mail)),
  onMail("mail is sent in the wrong order", (store, mail) =>
    store.inbox.append(mail.map((message) => ({ ...message, start: false })).toReversed()),
  ),
  onMail("mail wakes nobody", (store, mail) => {
    for (const { partition, text } of mail) {
      store.data.partitions[partition]!.inbox.push(
        new StoredMessage(store.data.nextMessageId++, false, text, text.length),
      );
    }
  }),
  onMail("mail is put before what is there", (store, mail) => {
    for (const { partition, text } of mail.toReversed()) {
      const { inbox } = store.data.partitions[partition]!;
      inbox.unshift(new StoredMessage((inbox[0]?.id ?? 0) - 1, false, text, text.length));
    }
  }),
];

const onReplies = (name: string, replies: (inbox: Inbox, store: MemoryStore) => Inbox["replies"]): Mutant =>
  onInbox(name, (inbox, store) => ({ replies: replies(inbox, store) }));

const replyMutants: readonly Mutant[] = [
  onReplies("replies are given twice", (inbox, store) => async (process, waitMs) => {
    const given = await inbox.replies(process, waitMs);
    const kept: Reply[] = [...given];
    if (kept.length > 0) store.data.replies.set(process, kept);
    return given;
  }),
  onReplies("replies are looked at, then taken", (inbox, store) => async (process, waitMs) => {
    const given = store.data.replies.get(process);
    await pause();
    const taken = await inbox.replies(process, given === undefined ? waitMs : 0);
    return given ?? taken;
  }),
  onReplies("replies go to whoever asks", (inbox, store) => async (process, waitMs) => {
    const [first] = store.data.replies.keys();
    return inbox.replies(first ?? process, waitMs);
  }),
  onReplies("nobody waits for replies", (inbox) => (process) => inbox.replies(process, 0)),
  onReplies("replies wake nobody", (inbox) => async (process, waitMs) => {
    const given = await inbox.replies(process, 0);
    if (given.length > 0) return given;
    await inbox.read([], waitMs);
    return inbox.replies(process, 0);
  }),
  onReplies(
    "replies come newest first",
    (inbox) => async (process, waitMs) => (await inbox.replies(process, waitMs)).toReversed(),
  ),
  onReplies("waiting for replies in vain fails", (inbox) => async (process, waitMs) => {
    const given = await inbox.replies(process, waitMs);
    if (given.length === 0 && waitMs === SHORT_MS) throw new Error("no replies");
    return given;
  }),
  onInbox("waiting for messages in vain fails", (inbox) => ({
    read: async (requests, waitMs) => {
      const results = await inbox.read(requests, waitMs);
      if (waitMs === SHORT_MS && results.every(({ messages }) => messages.length === 0)) throw new Error("no messages");
      return results;
    },
  })),
];

export const inboxMutants: readonly Mutant[] = [
  ...appendMutants,
  ...readMutants,
  ...consumeMutants,
  ...mailMutants,
  ...replyMutants,
];
