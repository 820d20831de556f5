import { expect, test } from "vitest";
import { called, calledOff, callerOf, recovered } from "./recovered.ts";
import { engineNode, node, Trial, workflow } from "./test-execution.ts";
import { Family } from "./test-family.ts";

const oneStep = workflow([node("s")]);
const caller = (repeat = {}) => workflow([engineNode("c", "workflow", { name: "w" }, [], repeat), node("b", ["c"])]);
const again = { repeat: { until: "true", every_seconds: 1, max: 3 } };

/** Says again what has to be said, as whoever rebuilds a store does. */
function recover(trial: Trial): string[] {
  const nodes: string[] = [];
  for (;;) {
    const { events } = recovered(trial.state, trial.context);
    if (events.length === 0) return nodes;
    trial.apply(...events);
    nodes.push(...events.map((event) => ("node" in event ? event.node : "")));
  }
}

test.each([
  ["", {}],
  ["that repeats", again],
] as const)("a call %s that the child never got is made again", (_, repeat) => {
  const both = new Family(caller(repeat), { w: oneStep });
  both.root.begin();
  both.settle(both.root);
  // The mail is gone, with the store it was in.
  expect(both.post.splice(0)).toHaveLength(1);
  expect(recover(both.root)).toEqual(["c"]);
  both.deliver().childOf("c").completes("s", 5);
  expect(both.deliver().root.shown["c"]).toBe("COMPLETED");
});

test.each([
  ["", {}],
  ["that repeats", again],
] as const)("an end that a parent %s never heard of is told again", (_, repeat) => {
  const both = new Family(caller(repeat), { w: oneStep }).begin();
  both.childOf("c").completes("s", 5);
  both.settle(both.childOf("c"));
  expect(both.post.splice(0).map(({ body }) => body.kind)).toEqual(["childEnded"]);
  recover(both.root);
  expect(both.deliver().root.view("c")).toMatchObject({ status: "COMPLETED", output: { json: { s: 5 } } });
});

test("a parent that has forgotten its call makes it again, and is answered by what had come of it", () => {
  const first = new Family(caller(), { w: oneStep }).begin();
  first.childOf("c").completes("s", 5);
  first.deliver();
  const start = first.root.mail.find(({ body }) => body.kind === "start")!;
  const child = first.childOf("c");
  const sent = child.mail.length;
  first.take(start);
  expect(child.mail.slice(sent)).toMatchObject([{ body: { kind: "childEnded", call: 1, output: { json: { s: 5 } } } }]);
});

test("a child that its parent has called off in vain is called off again, once", () => {
  const both = new Family(caller(), { w: oneStep }).begin();
  both.root.send({ kind: "cancel", request: "r" });
  both.settle(both.root);
  expect(both.post.splice(0).map(({ body }) => body.kind)).toEqual(["cancel"]);
  const child = both.childOf("c");
  expect(callerOf(child.state)).toBe(`execution/${both.root.state.id}`);
  expect([called(both.root.state), called(child.state)]).toEqual([[`execution/${child.state.id}`], []]);
  const message = calledOff(child.state);
  child.send(message.body, message.by);
  expect(child.state.status).toBe("cancelled");
  const { version } = child.state;
  child.send(message.body, message.by);
  expect(child.state.version).toBe(version);
});

test("a child that was called off does not answer a call that came too late for it", () => {
  const both = new Family(caller(), { w: oneStep }).begin();
  both.root.send({ kind: "cancel", request: "r" });
  both.deliver();
  const child = both.childOf("c");
  const { version } = child.state;
  both.take(both.root.mail[0]!);
  expect(child.state.version).toBe(version);
});

test("open reviews are listed again as they were", () => {
  const config = { title: "Pay?", due_seconds: 100, on_due: "fail" };
  const trial = new Trial(workflow([engineNode("r", "review", config)])).begin();
  const { listings = [] } = recovered(trial.state, trial.context);
  expect(listings).toEqual(trial.listings);
  expect(listings).toHaveLength(1);
});

test("of what is over nothing is said again", () => {
  const both = new Family(caller(), { w: oneStep }).begin();
  both.root.send({ kind: "cancel", request: "r" });
  expect(recovered(both.root.state, both.root.context)).toEqual({ events: [] });
});
