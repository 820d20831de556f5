import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKey } from "../core/entity.ts";
import { bodyOf } from "../core/gate/snapshot.ts";
import { GateState } from "../core/gate/state.ts";
import { type MemoryStore, openMemory } from "../drivers/memory/memory-store.ts";
import { TestWorld } from "../engine/test-engine.ts";
import { nodeHost } from "../host/node-host.ts";
import { type Message, readMessage, type Start, type Trigger } from "../core/message.ts";
import type { Inbox, Outgoing, Store } from "../store/contract.ts";
import { type Request, Requests } from "./requests.ts";

let world: TestWorld;
let requests: Requests | undefined;
beforeEach(() => {
  world = new TestWorld();
});
afterEach(async () => {
  requests?.stop();
  await world.close();
});

const one = workflow([node("a")]);

function withInbox(store: MemoryStore, inbox: Partial<Inbox>): Store {
  const { capabilities, partitions, journal, tasks, records, queries } = store;
  const own: Inbox = {
    append: (messages) => store.inbox.append(messages),
    read: (given, waitMs) => store.inbox.read(given, waitMs),
    replies: (process, waitMs) => store.inbox.replies(process, waitMs),
    ...inbox,
  };
  return { capabilities, partitions, inbox: own, journal, tasks, records, queries, close: () => store.close() };
}

/** Of a process to which no reply ever comes. */
function deaf(): Requests {
  const replies: Inbox["replies"] = async (_, waitMs) => {
    await nodeHost.sleep(waitMs);
    return [];
  };
  requests = new Requests(withInbox(world.memory, { replies }), nodeHost);
  requests.start();
  return requests;
}

const to = (id: string): string => entityKey("execution", id);
const cancel = (id: string, request: string) => ({
  to: to(id),
  by: "t",
  id: request,
  body: { kind: "cancel", request } as const,
});

describe("a request is answered by the owner's decision", () => {
  test("applied, refused, unknown", async () => {
    world.engine();
    const id = await world.start(one);
    expect(await world.send(id, { kind: "cancel", request: "r1" })).toMatchObject({ ok: { status: "CANCELLED" } });
    expect(await world.send(id, { kind: "cancel", request: "r2" })).toMatchObject({ refused: "ALREADY_TERMINAL" });
    expect(await world.send("nobody", { kind: "cancel", request: "r3" })).toEqual({ refused: "NOT_FOUND" });
  });
});

describe("when no reply comes, the journal tells", () => {
  test("that a command was applied, in the words of the owner, or refused and why", async () => {
    world.engine();
    const id = await world.start(one);
    const replied = await world.send(id, cancel(id, "r1").body);
    expect(replied).toEqual({ ok: { execution_id: id, status: "CANCELLED", generation: 1 } });
    expect(await deaf().send(cancel(id, "r1"), 300)).toEqual({ kind: "answered", answer: replied });
    expect(await requests!.send(cancel(id, "r2"), 300)).toEqual({
      kind: "answered",
      answer: { refused: "ALREADY_TERMINAL" },
    });
  });

  test("that a start was accepted, or that its id is taken by another body", async () => {
    world.engine();
    const id = await world.start(one, null, "x");
    const [accepted] = await world.events(id);
    const { definition } = accepted as { definition: string };
    const body = { kind: "start" as const, workflow: "test", definition, input: { json: null }, bodyHash: "b" };
    const start = { to: to("x"), by: "t", id: "s", body };
    expect(await deaf().send(start, 100)).toEqual({
      kind: "answered",
      answer: { ok: { execution_id: "x", status: "RUNNING" } },
    });
    expect(await requests!.send({ ...start, body: { ...body, bodyHash: "other" } }, 100)).toEqual({
      kind: "answered",
      answer: { refused: "IDEMPOTENCY_KEY_REUSED" },
    });
  });

  test("nothing, if nobody has decided it: the outcome is unknown", async () => {
    const engine = world.engine();
    const id = await world.start(one);
    await world.stop(engine);
    expect(await deaf().send(cancel(id, "r1"), 50)).toEqual({ kind: "unknown" });
    // It was not lost: the next owner decides it.
    world.engine();
    expect(await world.ended(id)).toMatchObject({ status: "CANCELLED" });
    expect(await requests!.send(cancel(id, "r1"), 50)).toMatchObject({ answer: { ok: { status: "CANCELLED" } } });
  });
});

test("a command to a gate is known by what the gate says of itself, when its own event is cut off", async () => {
  const gate = "gate/concurrency:default:few";
  const state = { ...bodyOf(new GateState("concurrency:default:few")), version: 40, requests: ["r1"] };
  const text = JSON.stringify([{ kind: "gateRenewed", atMs: 1, state }]);
  const outcome = await world.memory.partitions.acquire(0, "test", 60_000);
  if (outcome.kind !== "acquired") throw new Error("somebody has it");
  const nothing = { headers: [], wakes: [], snapshots: [], tasks: [], revoke: [], mail: [], replies: [], discard: [] };
  const records = [{ entity: gate, version: 41, count: 1, format: 2, text }];
  const cut = [{ entity: gate, belowVersion: 41 }];
  const rest = { consumed: null, deadLetters: [], purge: [], suspect: null };
  const batch = { fence: outcome.tenure, id: "b", timeMs: 1, records, cut, ...nothing, ...rest };
  expect(await world.memory.journal.commit([batch])).toEqual([{ kind: "committed" }]);
  const trip = (request: string): Request => {
    return { to: gate, by: "t", id: request, body: { kind: "gateCommand", action: "trip", request } };
  };
  requests = new Requests(world.memory, nodeHost);
  expect(await requests.send(trip("r1"), 50)).toEqual({ kind: "answered", answer: { ok: {} } });
  expect(await requests.send(trip("r2"), 50)).toEqual({ kind: "unknown" });
});

describe("in one process a start or a trigger is handed over as it is", () => {
  const body = { kind: "start" as const, workflow: "w", definition: "d", input: { json: { n: [1] } }, bodyHash: "" };

  /** What a store that is all one process, or any other, is given for it. */
  async function given(start: Start | Trigger, sameProcess: boolean): Promise<Outgoing> {
    const seen: Outgoing[] = [];
    const append: Inbox["append"] = async (messages) => {
      seen.push(...messages);
      return messages.map(() => "overloaded");
    };
    const store = withInbox(world.memory, { append });
    const capabilities = { ...store.capabilities, ...(sameProcess && { sameProcess }) };
    requests = new Requests({ ...store, capabilities }, nodeHost);
    await requests.send({ to: to("x"), by: "t", id: "s", body: start }, 50);
    return seen[0]!;
  }

  test("and says what its text would", async () => {
    const inHand = await given({ ...body, hold: true, keyAtMs: 7 }, true);
    const written = await given({ ...body, hold: true, keyAtMs: 7 }, false);
    const said = readMessage(written.text)!;
    expect(inHand).toMatchObject({ text: "", start: true });
    expect(inHand.message).toEqual({ ...said, reply: (inHand.message as Message).reply });
  });

  const trigger: Trigger = { kind: "trigger", request: "r", bodyHash: "h" };

  test.each<Trigger>([trigger, { ...trigger, input: { json: { n: [1] } } }])("%j too", async (one) => {
    const inHand = await given(one, true);
    const said = readMessage((await given(one, false)).text)!;
    expect(inHand).toMatchObject({ text: "", start: false });
    expect(inHand.message).toEqual({ ...said, reply: (inHand.message as Message).reply });
  });

  test.each<Start | Trigger>([body, trigger])(
    "with an input of its own: the caller of %j may change his",
    async (one) => {
      for (const more of [{}, { bytes: 2_000 }, { long: "x".repeat(2_000) }]) {
        const input = { json: { n: [1], ...more } };
        const { message } = await given({ ...one, input }, true);
        input.json.n.push(2);
        expect(message).toMatchObject({ body: { input: { json: { n: [1] } } } });
      }
    },
  );

  test("a large input counts for what it has", async () => {
    const inputs = [{ n: 1 }, { n: "x".repeat(5_000) }];
    const [small, large] = await Promise.all(inputs.map((json) => given({ ...body, input: { json } }, true)));
    expect(large!.messageChars! - small!.messageChars!).toBeGreaterThan(5_000);
  });

  test.each<Start | Trigger>([body, trigger])(
    "but %j is written down if it has more that somebody may change",
    async (one) => {
      const { text, message } = await given({ ...one, labels: { of: "it" } }, true);
      expect(readMessage(text)).toMatchObject({ body: { labels: { of: "it" } } });
      expect(message).toBeUndefined();
    },
  );
});

test("a start that the inbox has no room for is refused before anything has happened", async () => {
  const full = openMemory({ host: nodeHost, maxInbox: 0 });
  requests = new Requests(full, nodeHost);
  const body = { kind: "start" as const, workflow: "w", definition: "d", input: { json: null }, bodyHash: "" };
  expect(await requests.send({ to: to("x"), by: "t", id: "s", body }, 50)).toEqual({ kind: "overloaded" });
  await full.close();
});

test("a start that the store has no room for is told apart from one whose owner is behind", async () => {
  const full = openMemory({ host: nodeHost });
  full.faults.isFull = true;
  requests = new Requests(full, nodeHost);
  const body = { kind: "start" as const, workflow: "w", definition: "d", input: { json: null }, bodyHash: "" };
  const outcome = await requests.send({ to: to("x"), by: "t", id: "s", body }, 50);
  expect(outcome).toEqual({ kind: "overloaded", isFull: true });
  await full.close();
});

test("an append whose outcome is not known is looked up like any other", async () => {
  world.engine();
  const id = await world.start(one);
  const append: Inbox["append"] = async (messages) => {
    await world.memory.inbox.append(messages);
    throw new Error("the answer was lost");
  };
  requests = new Requests(withInbox(world.memory, { append }), nodeHost);
  requests.start();
  const outcome = await requests.send(cancel(id, "r1"), 50);
  expect(["unknown", "answered"]).toContain(outcome.kind);
  expect(await world.ended(id)).toMatchObject({ status: "CANCELLED" });
});

test("a store that cannot be read gives no answer, and does not end the process", async () => {
  const failing: Partial<Inbox> = {
    append: () => Promise.reject(new Error("away")),
    replies: () => Promise.reject(new Error("away")),
  };
  const store = withInbox(world.memory, failing);
  requests = new Requests(
    { ...store, journal: { ...store.journal, load: () => Promise.reject(new Error("away")) } },
    nodeHost,
  );
  requests.start();
  expect(await requests.send(cancel("x", "r"), 20)).toEqual({ kind: "unknown", trouble: new Error("away") });
});

test("a store that never answers is given up after the time of the request", async () => {
  const silent: Partial<Inbox> = { append: () => new Promise(() => {}) };
  requests = new Requests(withInbox(world.memory, silent), nodeHost);
  requests.start();
  expect(await requests.send(cancel("x", "r"), 20)).toEqual({ kind: "unknown", trouble: "the store did not answer" });
});

test("several are posted at once, and each gets its own answer", async () => {
  world.engine();
  const id = await world.start(one);
  requests = new Requests(world.memory, nodeHost);
  requests.start();
  const outcomes = await requests.sendAll([cancel(id, "r1"), cancel("nobody", "r2"), cancel(id, "r3")]);
  expect(outcomes).toMatchObject([
    { answer: { ok: { status: "CANCELLED" } } },
    { answer: { refused: "NOT_FOUND" } },
    { answer: { refused: "ALREADY_TERMINAL" } },
  ]);
});

test("an answer counts though the store does not say that it has taken the message", async () => {
  world.engine();
  const id = await world.start(one);
  const append: Inbox["append"] = async (messages) => {
    await world.memory.inbox.append(messages);
    return new Promise(() => {});
  };
  requests = new Requests(withInbox(world.memory, { append }), nodeHost);
  requests.start();
  expect(await requests.send(cancel(id, "r1"), 600_000)).toMatchObject({ answer: { ok: { status: "CANCELLED" } } });
});

test("of several, those that are refused keep nobody waiting, and the others are answered", async () => {
  world.engine();
  const id = await world.start(one);
  const append: Inbox["append"] = async ([, ...rest]) => ["overloaded", ...(await world.memory.inbox.append(rest))];
  requests = new Requests(withInbox(world.memory, { append }), nodeHost);
  requests.start();
  const outcomes = await requests.sendAll([cancel("nobody", "r1"), cancel(id, "r2")], 600_000);
  expect(outcomes).toMatchObject([{ kind: "overloaded" }, { answer: { ok: { status: "CANCELLED" } } }]);
  expect(await requests.sendAll([], 600_000)).toEqual([]);
});
