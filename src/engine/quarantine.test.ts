import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { diamond, node, workflow } from "../../test/support/workflows.ts";
import { entityKey } from "../core/entity.ts";
import { executionMachine } from "../core/execution/machine.ts";
import type { ExecutionState } from "../core/execution/state.ts";
import type { Machine } from "../core/machine.ts";
import type { MessageKind } from "../core/message.ts";
import { gate, TestWorld } from "./test-engine.ts";

let world: TestWorld;
beforeEach(() => {
  world = new TestWorld();
});
afterEach(() => world.close());

/** A machine with a bug that one execution meets, until it is mended. */
function buggy(where: MessageKind | "advance" | "check" | "eventText"): { machine: Machine; mend(): void; id: string } {
  let broken = true;
  const id = "bad";
  const trip = (state: ExecutionState, at: string): void => {
    if (broken && state.id === id && at === where) throw new TypeError(`our own bug in ${at}`);
  };
  const machine: typeof executionMachine = {
    ...executionMachine,
    decide: (state, message, context) => {
      trip(state, message.body.kind);
      return executionMachine.decide(state, message, context);
    },
    advance: (state, context) => {
      if (state.completedCount > 0) trip(state, "advance");
      return executionMachine.advance(state, context);
    },
    eventText: (state, event) => {
      if (state.completedCount > 0) trip(state, "eventText");
      return executionMachine.eventText!(state, event);
    },
    check: (state, whole) => {
      if (state.completedCount > 0) trip(state, "check");
      executionMachine.check(state, whole);
    },
  };
  return {
    machine,
    mend: () => {
      broken = false;
    },
    id,
  };
}

const chain = workflow([node("a"), node("b", ["a"])]);
const isQuarantined = (events: readonly { kind: string }[]): boolean =>
  events.some(({ kind }) => kind === "quarantined");

describe.each(["taskCompleted", "advance", "check", "eventText"] as const)("an execution whose %s throws", (where) => {
  test("is left alone after a few tries; its partition goes on, and a release takes up what was parked, in order", async () => {
    const bug = buggy(where);
    const quarantined: string[] = [];
    world.engine({}, bug.machine, { quarantined: (key) => quarantined.push(key) });
    const steps = gate();
    world.worker({ step: steps.handler });
    await world.start(chain, null, bug.id);
    await world.start(diamond(), null, "good");
    for (const id of ["a", "c", "d"]) steps.open(id, { value: 1 });

    await world.until(bug.id, isQuarantined);
    // The other one shares partition and batch with it, and is not held up.
    steps.open("b", { value: 1 });
    expect(await world.ended("good")).toMatchObject({ status: "COMPLETED" });
    expect(quarantined).toEqual([entityKey("execution", bug.id)]);

    await world.post(bug.id, { kind: "pause", request: "r1" });
    await world.until(bug.id, (events) => events.filter(({ kind }) => kind === "parked").length === 2);
    const parked = (await world.events(bug.id)).flatMap((event) =>
      event.kind === "parked" ? [event.message.body.kind] : [],
    );
    expect(parked).toEqual(["taskCompleted", "pause"]);
    const { items } = await world.memory.queries.deadLetters({ limit: 10 });
    expect(items).toMatchObject([{ class: "poison", queue: "quarantine", entity: "execution/bad" }]);
    expect(JSON.parse(items[0]!.text)).toMatchObject({
      error: { code: "DECISION_FAILED", message: /our own bug/ as never },
    });

    bug.mend();
    expect(await world.send(bug.id, { kind: "release", request: "r2" })).toEqual({ ok: { released: true, parked: 2 } });
    await world.until(bug.id, (events) => events.some(({ kind }) => kind === "paused"));
    const kinds = await world.kinds(bug.id);
    expect(kinds.slice(kinds.indexOf("quarantined")).filter((kind) => kind !== "taskDispatched")).toEqual([
      "quarantined",
      "parked",
      "parked",
      "released",
      "taskCompleted",
      "commandApplied",
      "paused",
    ]);
  });
});

test("a cancel is applied to an execution in quarantine, and results that were parked are not tried again", async () => {
  const bug = buggy("taskCompleted");
  world.engine({}, bug.machine);
  const steps = gate();
  world.worker({ step: steps.handler });
  await world.start(chain, null, bug.id);
  steps.open("a", 1);
  await world.until(bug.id, isQuarantined);
  const paused = world.send(bug.id, { kind: "pause", request: "r0" });
  await world.until(bug.id, (events) => events.filter(({ kind }) => kind === "parked").length === 2);
  const cancelled = { ok: { execution_id: bug.id, status: "CANCELLED", generation: 1 } };
  expect(await world.send(bug.id, { kind: "cancel", request: "r1" })).toEqual(cancelled);
  expect(await paused).toMatchObject({ refused: "ALREADY_TERMINAL" });
  const after = ["released", "commandApplied", "executionEnded", "commandRefused"];
  expect((await world.kinds(bug.id)).slice(-4)).toEqual(after);
});

test("a cancel sent twice is applied although what cannot be decided was read behind it, and is not tried again", async () => {
  const bug = buggy("taskCompleted");
  const first = world.engine({}, bug.machine);
  const steps = gate();
  world.worker({ step: steps.handler });
  await world.start(chain, null, bug.id);
  await world.until(bug.id, (events) => events.some(({ kind }) => kind === "taskStarted"));
  await world.stop(first);
  for (let i = 0; i < 2; i++) await world.post(bug.id, { kind: "cancel", request: "r1" });
  steps.open("a", 1);
  const inbox = (): number => world.memory.data.partitions.flatMap((partition) => partition.inbox).length;
  while (inbox() < 3) await world.host.sleep(5);
  world.engine({}, bug.machine);
  expect(await world.ended(bug.id)).toMatchObject({ status: "CANCELLED" });
  expect((await world.kinds(bug.id)).filter((kind) => kind === "released")).toHaveLength(1);
});

test("what is read behind a cancel out of quarantine and is no result is decided after it", async () => {
  const bug = buggy("taskCompleted");
  const first = world.engine({}, bug.machine);
  world.worker({ step: async () => "done" });
  await world.start(chain, null, bug.id);
  await world.until(bug.id, isQuarantined);
  await world.stop(first);
  await world.post(bug.id, { kind: "cancel", request: "r1" });
  const second = world.send(bug.id, { kind: "cancel", request: "r2" });
  world.engine({}, bug.machine);
  expect(await second).toMatchObject({ refused: "ALREADY_TERMINAL", execution: { status: "CANCELLED" } });
});

test("a cancel that was answered before and is sent again takes nothing from an execution in quarantine", async () => {
  const bug = buggy("taskCompleted");
  world.engine({}, bug.machine);
  const steps = gate();
  await world.start(chain, null, bug.id);
  await world.send(bug.id, { kind: "cancel", request: "r1" });
  await world.send(bug.id, { kind: "retry", request: "r2", scope: "failed" });
  world.worker({ step: steps.handler });
  steps.open("a", 1);
  await world.until(bug.id, isQuarantined);
  await world.post(bug.id, { kind: "cancel", request: "r1" });
  await world.until(bug.id, (events) => events.filter(({ kind }) => kind === "parked").length === 2);
  expect(await world.kinds(bug.id)).not.toContain("released");
  bug.mend();
  await world.send(bug.id, { kind: "release", request: "r3" });
  const events = await world.until(bug.id, (all) => all.some(({ kind }) => kind === "taskCompleted"));
  expect(events.filter(({ kind }) => kind === "executionEnded")).toHaveLength(1);
});

test("a quarantine stands over a restart of the engine, and a release that mends nothing leads into it again", async () => {
  const bug = buggy("pause");
  const first = world.engine({}, bug.machine);
  await world.start(chain, null, bug.id);
  await world.post(bug.id, { kind: "pause", request: "r1" });
  await world.until(bug.id, (events) => events.some(({ kind }) => kind === "parked"));
  await world.stop(first);

  world.engine({}, bug.machine);
  await world.post(bug.id, { kind: "pause", request: "r2" });
  await world.until(bug.id, (events) => events.filter(({ kind }) => kind === "parked").length === 2);
  expect(await world.send(bug.id, { kind: "release", request: "r3" })).toEqual({ ok: { released: true, parked: 2 } });
  await world.until(bug.id, (events) => events.filter(({ kind }) => kind === "quarantined").length === 2);
  bug.mend();
  await world.until(bug.id, (events) => events.filter(({ kind }) => kind === "parked").length === 4);
  await world.send(bug.id, { kind: "release", request: "r4" });
  const isAnswer = ({ kind }: { kind: string }): boolean => kind.startsWith("command");
  const events = await world.until(bug.id, (all) => all.filter(isAnswer).length === 2);
  expect(events.filter(isAnswer)).toMatchObject([
    { kind: "commandApplied", request: "r1", status: "PAUSED" },
    { kind: "commandApplied", request: "r2", status: "PAUSED" },
  ]);
});

test("a start that cannot be decided is refused, kept as a dead letter, and leaves nothing else", async () => {
  const bug = buggy("start");
  world.engine({}, bug.machine);
  expect(await world.submit(chain, null, bug.id)).toEqual({ refused: "QUARANTINED" });
  expect(await world.events(bug.id)).toEqual([]);
  const { items } = await world.memory.queries.deadLetters({ limit: 10 });
  expect(JSON.parse(items[0]!.text)).toMatchObject({
    message: { body: { kind: "start" } },
    error: { code: "DECISION_FAILED" },
  });
  expect((await world.memory.queries.headers({ limit: 10 })).items).toEqual([]);
});

test("an execution whose value the store has lost is quarantined, and nothing else is", async () => {
  world.engine();
  world.worker({ step: ({ nodeId }) => (nodeId === "a" ? { n: 1, text: "x".repeat(70_000) } : { done: true }) });
  const reads = workflow([node("a"), node("b", ["a"], { config: { n: "{{ a.n }}" } })]);
  world.memory.records.get = lose(world.memory.records.get.bind(world.memory.records), entityKey("execution", "bad"));
  await world.start(reads, null, "bad");
  await world.start(reads, null, "good");
  expect(await world.ended("good")).toMatchObject({ status: "COMPLETED" });
  const events = await world.until("bad", isQuarantined);
  const [quarantined] = events.filter(({ kind }) => kind === "quarantined");
  expect(quarantined).toMatchObject({ error: { code: "DECISION_FAILED" } });
  expect(JSON.stringify(quarantined)).toContain("is not in the store");
});

type Get = TestWorld["store"]["records"]["get"];

/** A store that has lost the values of one entity. */
function lose(get: Get, scope: string): Get {
  return async (keys) => {
    const texts = await get(keys);
    return texts.map((text, i) => (keys[i]!.scope === scope ? null : text));
  };
}

test("a message for what does not exist, or a start without its definition, is answered and dropped", async () => {
  world.engine();
  expect(await world.send("nobody", { kind: "cancel", request: "r" })).toEqual({ refused: "NOT_FOUND" });
  const body = { kind: "start" as const, workflow: "w", definition: "gone", input: { json: null }, bodyHash: "" };
  expect(await world.send("nobody", body)).toEqual({ refused: "NOT_FOUND" });
});

test("an entity that never came to life cannot be released, and holds nobody up", async () => {
  world.engine();
  world.worker({ step: () => 1 });
  expect(await world.send("nobody", { kind: "release", request: "r" })).toEqual({ refused: "NOT_FOUND" });
  await world.start(workflow([node("a")]), null, "healthy");
  expect(await world.send("healthy", { kind: "release", request: "r" })).toEqual({ refused: "NOT_QUARANTINED" });
  expect(await world.ended("healthy")).toMatchObject({ status: "COMPLETED" });
});
