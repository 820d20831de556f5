import { describe, expect, test } from "vitest";
import type { Workflow } from "../../../definition/workflow.ts";
import type { Json } from "../../../json/json.ts";
import { entityKey, isCalled } from "../../entity.ts";
import type { Message } from "../../message.ts";
import { executionMachine } from "../machine.ts";
import { engineNode, mapNode, node, START_MS, startBody, Trial, workflow } from "../test-execution.ts";
import { Family } from "../test-family.ts";

const branch = { on_error: "fail_branch" } as const;
const retry = { kind: "retry", scope: "failed" } as const;
const found = new Map<string, Json>([["workflow:w@", { hash: "h", timeout_seconds: 60 }]]);

const call = (config: Record<string, Json> = {}, dependencies: readonly string[] = []): ReturnType<typeof engineNode> =>
  engineNode("c", "workflow", { name: "w", ...config }, dependencies, branch);

function calling(config: Record<string, Json> = {}, fetched: ReadonlyMap<string, Json> = found): Trial {
  return new Trial(workflow([call(config), node("b", ["c"])]), { fetched }).begin({ json: { n: 7 } });
}

const ofKind = (trial: Trial, kind: string): Message[] => trial.mail.filter(({ body }) => body.kind === kind);

describe("a call", () => {
  test("names the child by what it is given and by no time, so that what is started again after a loss has the same keys", () => {
    const childOf = (input: number, atMs: number): string => {
      const both = new Family(workflow([call({ input: "{{ input }}" })]), { w: workflow([node("s")]) });
      both.root.at(atMs);
      return both.begin({ json: input }).childOf("c").id;
    };
    expect(childOf(1, 5_000)).toBe(childOf(1, 0));
    expect(childOf(2, 0)).not.toBe(childOf(1, 0));
    expect(isCalled(entityKey("execution", childOf(1, 0)))).toBe(true);
  });

  test("asks for the workflow by name, and then mails the start to an execution of its own", () => {
    const trial = new Trial(workflow([call({ input: { n: "{{ input.n }}" } })]));
    trial.send(startBody({ json: { n: 7 } }));
    expect([trial.step(), trial.last.needs]).toEqual([[], [{ workflow: { name: "w" } }]]);
    trial.fetched.set("workflow:w@", { hash: "h", timeout_seconds: 60 });
    trial.settle();
    const { child } = trial.view("c");
    expect(child).toMatch(/^[0-9a-f]{32}$/);
    expect(trial.mail).toMatchObject([
      {
        id: `start:execution/${child}:1`,
        to: `execution/${child}`,
        by: "execution/x",
        body: {
          kind: "start",
          workflow: "w",
          definition: "h",
          input: { json: { n: 7 } },
          parent: { entity: "execution/x", instance: "c", call: 1, depth: 1 },
        },
      },
    ]);
  });

  test("waits for the child, for as long as its own timeout and a minute more", () => {
    const trial = calling();
    expect(trial.view("c")).toMatchObject({ status: "WAITING", reason: "child", until: START_MS + 120_000 });
    trial.at(120_000).settle();
    expect(trial.view("c").error).toMatchObject({ code: "CHILD_FAILED", retryable: false });
    expect(ofKind(trial, "cancel")).toEqual([]);
  });

  test("of a workflow without a timeout waits without one", () => {
    const trial = calling({}, new Map([["workflow:w@", { hash: "h", timeout_seconds: 0 }]]));
    expect(trial.view("c").until).toBeNull();
    expect(trial.at(600_000_000).settle().shown["c"]).toBe("WAITING child");
  });

  test("may want a version, by number or by hash", () => {
    const trial = new Trial(workflow([call({ version: 3 })]));
    trial.send(startBody());
    trial.step();
    expect(trial.last.needs).toEqual([{ workflow: { name: "w", version: 3 } }]);
    trial.fetched.set("workflow:w@3", null);
    expect(trial.settle().view("c").error).toMatchObject({
      code: "CHILD_FAILED",
      message: 'There is no workflow named "w" in version 3',
    });
  });

  test("of a workflow that does not exist fails", () => {
    const trial = calling({}, new Map([["workflow:w@", null]]));
    expect(trial.view("c")).toMatchObject({ status: "FAILED", error: { code: "CHILD_FAILED" } });
    expect(trial.mail).toEqual([]);
  });

  test("of nothing fails", () => {
    const trial = new Trial(workflow([call({ name: "{{ input.n }}" })])).begin({ json: { n: 7 } });
    expect(trial.view("c").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/name" } });
  });

  test("with an input that does not fit the workflow fails before there is a child", () => {
    // Its last keyword was taken by an earlier release.
    const input_schema = { type: "object", required: ["n"], unevaluatedProperties: false };
    const trial = calling({ input: {} }, new Map([["workflow:w@", { hash: "h", timeout_seconds: 60, input_schema }]]));
    const message = 'The input does not fit workflow "w": it must have "n"';
    expect(trial.view("c").error).toMatchObject({ code: "INPUT_INVALID", message, retryable: false });
    expect(trial.mail).toEqual([]);
  });

  test("names the field that does not fit, and how many others there are", () => {
    const input_schema = { properties: { n: { type: "number" }, at: { properties: { x: { type: "string" } } } } };
    const found = new Map([["workflow:w@", { hash: "h", timeout_seconds: 60, input_schema }]]);
    const error = (input: Json) => calling({ input }, found).view("c").error!.message;
    expect(error({ at: { x: 1 } })).toMatch(/: "\/at\/x" must be (?!.* more$)/);
    expect(error({ n: "one", at: { x: 1 } })).toMatch(/: "\/n" must be .*, and 1 more$/);
  });

  test("with a large input writes it into the scope of the child", () => {
    const trial = calling({ input: "x".repeat(70_000) });
    const { child } = trial.view("c");
    const [blob] = trial.blobs;
    expect(blob).toMatchObject({ scope: `execution/${child}` });
    expect(ofKind(trial, "start")[0]!.body).toMatchObject({ input: { blob: { hash: blob!.hash } } });
  });

  test("may be 16 deep, and no deeper", () => {
    const at = (depth: number): Trial =>
      new Trial(workflow([call()]), { fetched: found }).begin(
        { json: null },
        { entity: "execution/p", instance: "i", depth },
      );
    expect(ofKind(at(15), "start")[0]!.body).toMatchObject({ parent: { depth: 16 } });
    expect(at(16).view("c").error).toMatchObject({ code: "CHILD_FAILED" });
    expect(ofKind(at(16), "start")).toEqual([]);
  });

  test("is a child of its own for each node and each execution, and the same one when made again", () => {
    const nodes = [call(), engineNode("d", "workflow", { name: "w" })];
    const trial = new Trial(workflow(nodes), { fetched: found }).begin();
    const twin = new Trial(workflow(nodes), { fetched: found }).begin();
    const other = new Trial(workflow(nodes), { fetched: found, id: "y" }).begin();
    expect(trial.view("c").child).toBe(twin.view("c").child);
    expect(new Set([trial.view("c").child, trial.view("d").child, other.view("c").child]).size).toBe(3);
  });
});

describe("config.mock", () => {
  test.each<[Json, Json]>([
    [true, null],
    [{ total: 3 }, { total: 3 }],
    [0, 0],
  ])("%j is the output, and there is no child", (mock, output) => {
    const trial = calling({ mock });
    expect(trial.view("c")).toMatchObject({ status: "COMPLETED", output: { json: output } });
    expect(trial.mail).toEqual([]);
  });

  test("false is none", () => {
    expect(calling({ mock: false }).shown["c"]).toBe("WAITING child");
  });
});

/** A parent that calls `child`, and what `child` is. */
function family(child: Workflow, config: Record<string, Json> = {}): Family {
  return new Family(workflow([call(config), node("b", ["c"])]), { w: child });
}

const oneStep = workflow([node("s")]);
const withOutput = workflow([node("s"), engineNode("out", "output", { got: "{{ s }}" }, ["s"])]);

describe("parent and child", () => {
  test("the child's output is the node's: of its one output node, or by id of its sinks", () => {
    const plain = family(oneStep).begin();
    plain.childOf("c").completes("s", 5);
    expect(plain.deliver().root.view("c").output).toEqual({ json: { s: 5 } });
    const sole = family(withOutput).begin();
    sole.childOf("c").completes("s", 5);
    expect(sole.deliver().root.view("c").output).toEqual({ json: { got: 5 } });
  });

  test("a large output is written into the parent's scope, and read there", () => {
    const reader = node("b", ["c"], { config: { first: "{{ c.s[0] }}" } });
    const both = new Family(workflow([call(), reader]), { w: oneStep }).begin();
    both.childOf("c").completes("s", ["x".repeat(70_000)]);
    both.deliver();
    expect(both.root.view("c").output).toHaveProperty("blob");
    expect((JSON.parse(both.root.blobs.at(-1)!.text) as { config: Json }).config).toEqual({
      first: "x".repeat(70_000),
    });
  });

  test("a value that is a blob of the child is fetched, and copied for the parent", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c");
    const blob = { hash: "theirs", bytes: 80_000 };
    child.send({ kind: "taskCompleted", token: child.token("s"), output: { blob }, runningMs: 1 });
    expect([child.step(), child.last.needs]).toEqual([[], [{ blob }]]);
    child.fetched.set("theirs", "x".repeat(80_000));
    both.deliver();
    const copy = child.blobs.find(({ scope }) => scope === "execution/x")!;
    expect(JSON.parse(copy.text)).toEqual({ s: "x".repeat(80_000) });
    expect(both.root.view("c").output).toEqual({ blob: { hash: copy.hash, bytes: copy.text.length } });
  });

  test("a child that fails fails the node, and the letter of each is its own", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c").fails("s", { code: "INNER" });
    both.deliver();
    expect(both.root.view("c").error).toMatchObject({
      details: { status: "FAILED", error: { code: "INNER", node_id: "s" } },
    });
    expect([child.letters[0]!.id, both.root.letters[0]!.id]).toEqual([`${child.id}:1:s`, "x:1:c"]);
  });

  test("three levels pass input down and output up", () => {
    const inner = workflow([node("s", [], { config: { n: "{{ input }}" } })]);
    const middle = workflow([engineNode("m", "workflow", { name: "inner", input: "{{ input }}" })]);
    const top = workflow([engineNode("c", "workflow", { name: "middle", input: 3 })]);
    const all = new Family(top, { middle, inner }).begin();
    const low = all.childOf("m", all.childOf("c"));
    expect(low.task("s").config).toEqual({ n: 3 });
    expect(low.state.parent).toMatchObject({ depth: 2 });
    low.completes("s", 4);
    expect(all.deliver().root.summary.output).toEqual({ c: { m: { s: 4 } } });
  });

  test("the start mailed twice is one child", () => {
    const both = family(oneStep).begin();
    const start = both.root.mail[0]!;
    both.take(start);
    expect(both.childOf("c").tasks).toHaveLength(1);
  });
});

describe("a parent that is over", () => {
  test("calls its children off, once, after the commit of its end", () => {
    const both = family(oneStep).begin();
    const { child } = both.root.view("c");
    both.root.ask({ kind: "cancel" });
    expect(both.root.summary.status).toBe("CANCELLED");
    expect(executionMachine.hasWork(both.root.state)).toBe(true);
    both.root.step();
    expect(both.root.last.mail).toMatchObject([
      {
        id: `cancel:execution/${child}:1`,
        to: `execution/${child}`,
        body: { kind: "cancel", start: { kind: "start" } },
      },
    ]);
    expect(both.root.events.at(-1)).toMatchObject({ kind: "childrenCancelled", instances: ["c"] });
    expect(executionMachine.hasWork(both.root.state)).toBe(false);
    expect(both.deliver().childOf("c").summary.status).toBe("CANCELLED");
  });

  test.each<[string, (parent: Trial) => Trial]>([
    ["by its timeout", (p) => p.at(604_800_000).settle()],
    ["by fail_fast", (p) => p.fails("f")],
  ])("%s calls them off just so", (_, end) => {
    const parent = workflow([call(), node("f", [], { queue_timeout_seconds: 9_999_999 })]);
    const all = new Family(parent, { w: workflow([node("s")], { timeout_seconds: 0 }) }).begin();
    end(all.root);
    expect(all.deliver().childOf("c").summary.status).toBe("CANCELLED");
  });

  test("many children are called off in slices", () => {
    const nodes = Array.from({ length: 5 }, (_, i) => engineNode(`c${i}`, "workflow", { name: "w" }));
    const trial = new Trial(workflow(nodes), { fetched: found }).begin();
    trial.ask({ kind: "cancel" });
    trial.maxEvents = 2;
    const slices = [];
    for (let events = trial.step(); events.length > 0; events = trial.step()) slices.push(trial.last.mail!.length);
    expect(slices).toEqual([2, 2, 1]);
  });

  test("a child that had ended already is not called off", () => {
    const both = family(oneStep).begin();
    both.childOf("c").completes("s");
    both.deliver().root.does({ kind: "cancel" });
    expect(ofKind(both.root, "cancel")).toEqual([]);
  });
});

describe("a cancel that comes before the start", () => {
  function overtaken(child: Workflow = oneStep): { all: Family; start: Message; cancel: Message } {
    const all = family(child, { input: { n: 7 } });
    all.root.begin();
    all.settle(all.root);
    all.root.ask({ kind: "cancel" });
    all.settle(all.root);
    const [start, cancel] = all.post.splice(0) as [Message, Message];
    return { all, start, cancel };
  }

  test("finds nothing, and leaves a cancelled execution for the start to find", () => {
    const { all, start, cancel } = overtaken();
    all.take(cancel);
    const child = all.childOf("c");
    expect(child.summary).toMatchObject({ status: "CANCELLED", startedAtMs: null });
    all.take(start);
    expect(child.tasks).toEqual([]);
    expect(child.summary.status).toBe("CANCELLED");
  });

  test("is made good by a later call, which brings the input that was missing", () => {
    const { all, start, cancel } = overtaken(workflow([node("s", [], { config: { n: "{{ input.n }}" } })]));
    all.take(cancel);
    all.take(start);
    all.root.does(retry);
    const child = all.deliver().childOf("c");
    expect(child.task("s").config).toEqual({ n: 7 });
    expect(child.summary).toMatchObject({ status: "RUNNING", generation: 2, startedAtMs: START_MS });
    child.completes("s", 1);
    expect(all.deliver().root.shown["c"]).toBe("COMPLETED");
  });
});

describe("a call that is repeated", () => {
  test("after a failure is of the same child: what failed there runs again, what completed stays", () => {
    const both = family(workflow([node("s"), node("t", ["s"])])).begin();
    const child = both.childOf("c").completes("s", 1).fails("t");
    both.deliver().root.does(retry);
    both.deliver();
    expect(both.childOf("c")).toBe(child);
    expect(child.summary).toMatchObject({ status: "RUNNING", generation: 2 });
    expect(child.taskTexts("s")).toHaveLength(1);
    expect(both.root.mail.map(({ id }) => id)).toEqual([
      `start:execution/${child.id}:1`,
      `start:execution/${child.id}:2`,
    ]);
    child.completes("t", 2);
    expect(both.deliver().root.view("c")).toMatchObject({ status: "COMPLETED", output: { json: { t: 2 } } });
  });

  test("of a child that has completed meanwhile is answered at once with what is there", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c").fails("s");
    both.deliver();
    child.does(retry).completes("s", 9);
    both.settle(child);
    // Nobody tells the parent.
    both.post.splice(0);
    expect(both.root.shown["c"]).toBe("FAILED");
    both.root.does(retry);
    both.deliver();
    expect(both.root.view("c").output).toEqual({ json: { s: 9 } });
    expect(child.taskTexts("s")).toHaveLength(2);
    expect(child.kinds().slice(-2)).toEqual(["parentCalled", "parentAnswered"]);
  });

  test("of a child that is under way is answered by its end, once", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c").fails("s");
    both.deliver();
    child.does(retry);
    both.root.does(retry);
    both.deliver();
    expect(both.root.shown["c"]).toBe("WAITING child");
    const before = child.mail.length;
    child.completes("s", 9);
    expect(child.mail.slice(before)).toMatchObject([{ body: { kind: "childEnded", call: 2 } }]);
    expect(both.deliver().root.view("c").output).toEqual({ json: { s: 9 } });
  });

  test("of a child that somebody cancelled runs on what was cut off", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c").does({ kind: "cancel" });
    both.deliver();
    expect(both.root.view("c").error).toMatchObject({ details: { status: "CANCELLED" } });
    both.root.does(retry);
    both.deliver();
    expect(child.summary).toMatchObject({ status: "RUNNING", generation: 2 });
  });

  test("with another input is of another child, and the one before stays as it is", () => {
    const child = workflow([node("s", [], { config: { n: "{{ input.n }}" } })]);
    const both = new Family(workflow([call({ input: { n: "{{ input.n }}" } })]), { w: child }).begin({
      json: { n: 1 },
    });
    const first = both.childOf("c").fails("s");
    both.deliver().root.does({ ...retry, input: { json: { n: 2 } } });
    const second = both.deliver().childOf("c");
    expect(second.id).not.toBe(first.id);
    expect(second.task("s").config).toEqual({ n: 2 });
    second.fails("s");
    both.deliver().root.does(retry);
    expect(both.deliver().childOf("c")).toBe(second);
    both.root.does({ kind: "cancel" }).does({ ...retry, input: { json: { n: 1 } } });
    const third = both.deliver().childOf("c");
    expect(new Set([first.id, second.id, third.id]).size).toBe(3);
    expect(first.summary).toMatchObject({ status: "FAILED", generation: 1 });
  });

  test("by a rerun is of another child", () => {
    const both = family(oneStep).begin();
    const first = both.childOf("c").completes("s", 1);
    both.deliver().root.completes("b").does({ kind: "retry", scope: "descendants", from: "c" });
    const second = both.deliver().childOf("c");
    expect(second.id).not.toBe(first.id);
    expect(second.task("s")).toMatchObject({ generation: 1, idempotencyKey: `${second.id}/s/1` });
    expect(first.summary.generation).toBe(1);
  });

  test("overtakes the cancel of the call before", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c");
    both.root.ask({ kind: "cancel" });
    both.settle(both.root);
    const [cancel] = both.post.splice(0) as [Message];
    both.root.does(retry);
    both.settle(both.root);
    const [start] = both.post.splice(0) as [Message];
    both.take(start);
    both.take(cancel);
    expect(child.summary).toMatchObject({ status: "RUNNING", generation: 1 });
    child.completes("s", 3);
    expect(both.deliver().root.view("c").output).toEqual({ json: { s: 3 } });
  });

  test("in the same breath as the end that cut it off calls the child off first", () => {
    for (const scope of ["failed", "descendants"] as const) {
      const both = family(oneStep).begin();
      const first = both.childOf("c");
      both.root.ask({ kind: "cancel" });
      both.root.ask({ kind: "retry", scope, ...(scope === "descendants" && { from: "c" }) });
      expect(both.root.last.mail).toMatchObject([{ to: `execution/${first.id}`, body: { kind: "cancel" } }]);
      both.deliver();
      const now = both.childOf("c");
      expect([scope, first.summary.generation, first.summary.status]).toEqual(
        scope === "failed" ? [scope, 2, "RUNNING"] : [scope, 1, "CANCELLED"],
      );
      now.completes("s", 1);
      expect(both.deliver().root.shown["c"]).toBe("COMPLETED");
    }
  });
});

describe("a start that the child gets again from its parent", () => {
  test("with the same number is answered as before", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c");
    const { version } = child.state;
    both.take(both.root.mail[0]!);
    expect(child.state.version).toBe(version);
  });

  test("from somebody else is a use of the same key", () => {
    const trial = new Trial(oneStep).begin({ json: null }, { entity: "execution/p", instance: "c" });
    trial.send({ ...startBody({ json: null }, { entity: "execution/q", instance: "c", call: 2 }), bodyHash: "other" });
    expect(trial.last.reply).toEqual({ refused: "IDEMPOTENCY_KEY_REUSED" });
  });
});

describe("a child that is repaired after its failure has ended its parent", () => {
  const replay = (trial: Trial, id: string): Trial => {
    const letters = trial.letters.filter((letter) => letter.id === id);
    return trial.does({ kind: "retry", scope: "letters", letters });
  };

  test("lets it go on, with what completed and with the call that was answered", () => {
    const both = new Family(workflow([node("a"), call({}, ["a"]), node("b", ["c"])]), { w: oneStep }).begin();
    both.root.completes("a", 1);
    const child = both.deliver().childOf("c").fails("s");
    expect(both.deliver().root.summary.status).toBe("PARTIAL");
    replay(child, `${child.id}:1:s`);
    expect(both.deliver().root.summary).toMatchObject({ status: "PARTIAL", generation: 1 });
    child.completes("s", 7);
    expect(both.deliver().root.summary).toMatchObject({ status: "RUNNING", generation: 2 });
    expect(both.root.view("c")).toMatchObject({ status: "COMPLETED", output: { json: { s: 7 } } });
    expect(child.summary.generation).toBe(2);
    expect(both.root.taskTexts("a")).toHaveLength(1);
    expect(both.root.completes("b").summary.status).toBe("COMPLETED");
  });

  test("does so by a retry of its own too, however deep", () => {
    const middle = workflow([engineNode("d", "workflow", { name: "deep" })]);
    const all = new Family(workflow([call()]), { w: middle, deep: oneStep }).begin();
    const deep = all.deliver().childOf("d", all.childOf("c")).fails("s");
    expect(all.deliver().root.summary.status).toBe("FAILED");
    deep.does(retry).completes("s", 1);
    expect(all.deliver().root.summary).toMatchObject({ status: "COMPLETED", generation: 2 });
  });

  test("lets the map go on that it is an item of, and other items that failed stay so", () => {
    const inner = [node("i", [], { on_error: "fail_branch" })] as unknown as Json;
    const map = mapNode("m", { items: [0, 1], nodes: inner, tolerated_failures: 1 }, [], { queue: "map" });
    const all = new Family(workflow([map])).begin();
    const items = [0, 1].map((n) => all.childOf(`m[${n}]`).fails("i"));
    expect(all.deliver().root.summary.status).toBe("FAILED");
    replay(items[1]!, `${items[1]!.id}:1:i`).completes("i", "ok");
    expect(all.deliver().root.view("m")).toMatchObject({
      status: "COMPLETED",
      output: { json: [null, { i: "ok" }] },
    });
    expect(items[0]!.summary.generation).toBe(1);
  });

  test.each<[string, (both: Family) => unknown]>([
    ["was cancelled", (both) => both.root.does({ kind: "cancel" })],
    ["has gone another way", (both) => both.root.fails("other")],
  ])("starts nothing in one that %s", (_, end) => {
    const both = new Family(workflow([call(), node("other")]), { w: oneStep }).begin();
    const child = both.childOf("c").fails("s");
    end(both.deliver());
    child.does(retry).completes("s", 1);
    const before = both.root.summary;
    expect(both.deliver().root.summary).toEqual(before);
  });

  test("starts nothing in one that has called it again meanwhile", () => {
    const both = family(oneStep).begin();
    const child = both.childOf("c").fails("s");
    both.deliver();
    child.does(retry).completes("s", 1);
    const [late] = both.post.splice(0);
    both.settle(child);
    both.root.does(retry);
    both.deliver();
    if (late !== undefined) both.take(late);
    expect(both.deliver().root.summary.generation).toBe(2);
  });
});

test("a child whose output is larger than a node's may be fails its node, and is itself well", () => {
  const both = new Family(workflow([call(), node("b", ["c"])]), { w: workflow([node("p"), node("q")]) }).begin();
  const child = both.childOf("c");
  for (const id of ["p", "q"]) {
    const blob = { hash: id, bytes: 9 * 1024 * 1024 };
    child.send({ kind: "taskCompleted", token: child.token(id), output: { blob }, runningMs: 1 });
  }
  both.deliver();
  expect([child.state.status, both.root.shown]).toEqual(["completed", { c: "FAILED", b: "SKIPPED upstream_failed" }]);
  const { execution } = both.root.state.runs[0]!.child!;
  expect(both.root.view("c").error).toMatchObject({ code: "OUTPUT_TOO_LARGE", details: { execution_id: execution } });
  both.root.does(retry);
  both.deliver();
  expect(both.root.view("c").error?.code).toBe("OUTPUT_TOO_LARGE");
});
