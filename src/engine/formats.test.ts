import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKey } from "../core/entity.ts";
import { executionMachine } from "../core/execution/machine.ts";
import type { Machine } from "../core/machine.ts";
import { messageText } from "../core/message.ts";
import { contentHash } from "../json/hash.ts";
import { tallyMachine } from "../simulator/tally.ts";
import { partsOf, snapshotText } from "../store/snapshot-text.ts";
import { HandlerError } from "../worker/handler.ts";
import { TestWorld } from "./test-engine.ts";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
});
afterEach(() => world.close());

/** The next release: it writes events that this one does not know. */
const newer = { ...executionMachine, eventFormat: executionMachine.eventFormat + 1 } as unknown as Machine;
const chain = workflow([node("a"), node("b", ["a"])]);

const soon = { max_attempts: 3, base_delay_seconds: 0.05, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };

describe("events of a newer release", () => {
  test("stop their execution and no other; when it is next due, an engine of that release takes it up by itself", async () => {
    const first = world.engine({}, newer);
    const failing = world.worker({
      step: () => {
        throw new HandlerError("LATER", "not yet", { retryable: true });
      },
    });
    await world.start(workflow([node("a", [], { retry: soon }), node("b", ["a"])]), null, "new");
    await world.until("new", (events) => events.some(({ kind }) => kind === "taskFailed"));
    await world.stop(first);
    await world.stop(failing);

    const second = world.engine();
    const events = await world.until("new", (all) => all.some(({ kind }) => kind === "quarantined"));
    expect(events.at(-1)).toMatchObject({ error: { code: "FORMAT_TOO_NEW" } });
    world.worker({ step: () => ({ value: 1 }) });
    expect(await world.ended(await world.start(chain))).toMatchObject({ status: "COMPLETED" });
    await world.stop(second);

    world.engine({}, newer);
    expect(await world.ended("new")).toMatchObject({ status: "COMPLETED" });
    const kinds = await world.kinds("new");
    expect(kinds.slice(kinds.indexOf("quarantined"), kinds.indexOf("retryDue") + 1)).toEqual([
      "quarantined",
      "released",
      "retryDue",
    ]);
  });

  test("what was sent meanwhile is parked, and counts once such an engine hears of the execution again", async () => {
    const first = world.engine({}, newer);
    await world.start(chain, null, "new");
    await world.stop(first);
    const second = world.engine();
    const worker = world.worker({ step: () => ({ value: 1 }) });
    await world.until("new", (events) => events.some(({ kind }) => kind === "parked"));
    await world.stop(second);
    await world.stop(worker);

    world.engine({}, newer);
    await world.send("new", { kind: "cancel", request: "r" });
    expect(await world.ended("new")).toMatchObject({ status: "CANCELLED", nodes: { a: { status: "COMPLETED" } } });
    const kinds = await world.kinds("new");
    expect(kinds.slice(kinds.indexOf("quarantined")).filter((kind) => kind !== "taskDispatched")).toEqual([
      "quarantined",
      "parked",
      "released",
      "taskCompleted",
      "commandApplied",
      "executionEnded",
    ]);
  });
});

describe("a snapshot", () => {
  const machine = executionMachine as unknown as Machine;

  test("of another format is ignored, and the events tell the same", async () => {
    const other = { ...machine, snapshotFormat: 99, snapshotPieces: () => ["rub", "bish"] };
    const first = world.engine({ snapshotEvents: 2 }, other);
    await world.start(chain, null, "x");
    await world.stop(first);
    expect(world.memory.data.entities.get(entityKey("execution", "x"))!.snapshot).toMatchObject({ format: 99 });

    world.engine();
    world.worker({ step: () => ({ value: 1 }) });
    expect(await world.ended("x")).toMatchObject({ status: "COMPLETED" });
    expect(await world.kinds("x")).not.toContain("quarantined");
  });

  test("that is long is kept in several records, and read again", async () => {
    // As long as one of 10,000 nodes. Space before a text means nothing.
    const space = Array.from({ length: 8 }, (_, i) => " ".repeat(400_000 + i));
    const long: Machine = { ...machine, snapshotPieces: (state) => [...space, machine.snapshot(state)] };
    const first = world.engine({ snapshotEvents: 2 }, long);
    const worker = world.worker({ step: () => ({ value: 1 }) });
    await world.start(chain, null, "x");
    await world.ended("x");
    await world.stop(first);
    await world.stop(worker);
    const key = entityKey("execution", "x");
    const { snapshot } = world.memory.data.entities.get(key)!;
    const hashes = partsOf(snapshot!.text)!;
    expect(hashes.length).toBeGreaterThan(1);
    expect(hashes.map((hash) => contentHash(world.memory.data.records.get(key)!.get(hash)!))).toEqual(hashes);

    const text = await snapshotText(world.memory.records, key, snapshot!.text);
    expect(JSON.parse(text!)).toMatchObject({ version: snapshot!.version });
    world.memory.data.records.get(key)!.delete(hashes[1]!);
    expect(await snapshotText(world.memory.records, key, snapshot!.text)).toBe(null);
  });

  test("of our format that cannot be read stops its execution only", async () => {
    const broken = { ...machine, snapshotPieces: () => ['{"definition":1}'] };
    const first = world.engine({ snapshotEvents: 2 }, broken);
    await world.start(chain, null, "x");
    await world.stop(first);

    world.engine();
    world.worker({ step: () => ({ value: 1 }) });
    await world.start(chain, null, "y");
    expect(await world.ended("y")).toMatchObject({ status: "COMPLETED" });
    const events = await world.until("x", (all) => all.some(({ kind }) => kind === "quarantined"));
    expect(events.find(({ kind }) => kind === "quarantined")).toMatchObject({ error: { code: "FOLD_FAILED" } });
  });
});

describe("a kind of entity that this release does not know", () => {
  const tally = entityKey("tally", "t");
  const tell = async (child: string): Promise<void> => {
    const body = { kind: "childEnded" as const, instance: child, child, generation: 1, status: "completed" as const };
    const message = { id: `ended:${child}`, to: tally, by: "test", trace: "", tenant: "default", body };
    await world.memory.inbox.append([{ partition: 0, start: false, text: messageText(message) }]);
  };
  const known = tallyMachine as unknown as Machine;
  const kinds = async (): Promise<string[]> => {
    const [loaded] = await world.memory.journal.load([{ partition: 0, entity: tally, aboveVersion: 0 }]);
    return loaded!.records.flatMap(({ text }) => (JSON.parse(text) as { kind: string }[]).map(({ kind }) => kind));
  };

  test("mail that would have brought one to life is kept as a dead letter", async () => {
    world.engine();
    await tell("c1");
    const letters = async () => (await world.memory.queries.deadLetters({ limit: 10 })).items;
    await expect.poll(letters).toHaveLength(1);
    const [letter] = await letters();
    expect(letter).toMatchObject({ class: "poison", entity: tally });
    expect(JSON.parse(letter!.text)).toMatchObject({
      message: { id: "ended:c1", body: { kind: "childEnded", child: "c1" } },
      error: { code: "FORMAT_TOO_NEW" },
    });
    expect(await kinds()).toEqual([]);
  });

  test("mail for one that lives is parked, until a release that knows it takes it up by itself", async () => {
    const first = world.engine({}, known);
    await tell("c1");
    await expect.poll(kinds).toEqual(["childCounted"]);
    await world.stop(first);
    const second = world.engine();
    await tell("c2");
    await expect.poll(kinds).toEqual(["childCounted", "quarantined", "parked"]);
    await world.stop(second);
    world.engine({}, known);
    await expect.poll(kinds).toEqual(["childCounted", "quarantined", "parked", "released", "childCounted"]);
  });
});
