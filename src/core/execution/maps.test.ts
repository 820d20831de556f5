import { describe, expect, test } from "vitest";
import type { WorkflowNode } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import { imprint, mapNode, node, Trial, workflow } from "./test-execution.ts";
import { Family } from "./test-family.ts";
import { executionMachine } from "./machine.ts";

const branch: Partial<WorkflowNode> = { on_error: "fail_branch" };
const step = { handler: "step", config: { item: "{{ item }}", place: "{{ index }}" } };
const retry = { kind: "retry", scope: "failed" } as const;

function mapping(config: Record<string, Json>, input: Json = null): Trial {
  const nodes = [mapNode("m", { ...step, ...config }, [], branch), node("b", ["m"])];
  return new Trial(workflow(nodes)).begin({ json: input });
}

/** Completes everything that is out, with what it was given. */
function completeAll(trial: Trial): Trial {
  while (trial.state.live.size > 0) {
    const [id] = trial.out;
    trial.completes(id!, (trial.task(id!).config as { item: Json }).item);
  }
  return trial;
}

describe("a map that is opened again by a retry of what failed", () => {
  test("runs only the items that failed or were cut off; what is done stays done", () => {
    const trial = mapping({ items: ["a", "b", "c", "d"], max_concurrency: 3 });
    trial.completes("m[0]", "A").fails("m[1]");
    expect(trial.view("m[2]").status).toBe("CANCELLED");
    trial.does(retry);
    expect(trial.out).toEqual(["m[1]", "m[2]", "m[3]"]);
    expect(trial.view("m[0]")).toMatchObject({ status: "COMPLETED", output: { json: "A" } });
    expect(trial.view("m").items).toEqual({ total: 4, completed: 1, failed: 0 });
    trial.completes("m[1]", "B").completes("m[2]", "C").completes("m[3]", "D");
    expect(trial.view("m").output).toEqual({ json: ["A", "B", "C", "D"] });
    expect(trial.taskTexts("m[0]")).toHaveLength(1);
  });

  test("keeps the keys of items whose work nobody knows, and changes those that had an answer", () => {
    const trial = mapping({ items: ["a", "b"] })
      .fails("m[1]")
      .does(retry);
    expect([trial.task("m[0]").idempotencyKey, trial.task("m[1]").idempotencyKey]).toEqual(["x/m[0]/1", "x/m[1]/2"]);
    expect(trial.task("m[0]")).toMatchObject({ generation: 2, attempt: 1 });
  });

  test("takes results of items that came after the end", () => {
    const trial = mapping({ items: ["a", "b"] });
    const token = trial.token("m[1]");
    trial.completes("m[0]", "A").does({ kind: "cancel" });
    trial.send({ kind: "taskCompleted", token, output: { json: "B" }, runningMs: 1 });
    expect(trial.last.reply).toEqual({ ok: { accepted: false, recorded: true } });
    trial.does(retry);
    expect(trial.view("m[1]")).toMatchObject({ status: "COMPLETED", reason: "late_result" });
    expect(trial.view("m").output).toEqual({ json: ["A", "B"] });
  });

  test("takes results of items that were out when another had failed the map, but of no attempt that had failed", () => {
    const retries = { max_attempts: 2, base_delay_seconds: 9, max_delay_seconds: 9, exponential_base: 2, jitter: 0 };
    const trial = mapping({ items: ["a", "b", "c"], retry: retries });
    const tokens = [trial.token("m[1]"), trial.token("m[2]")];
    trial.fails("m[2]", { code: "E", message: "", retryable: true });
    trial.fails("m[0]", { code: "E", message: "", retryable: false });
    expect(trial.state.isEnded).toBe(true);
    for (const token of tokens) trial.send({ kind: "taskCompleted", token, output: { json: "B" }, runningMs: 1 });
    expect(trial.last.reply).toEqual({ refused: "STALE_ATTEMPT" });
    trial.does(retry);
    expect(trial.view("m[1]")).toMatchObject({ status: "COMPLETED", reason: "late_result", output: { json: "B" } });
    expect(trial.out).toEqual(["m[0]", "m[2]"]);
  });

  test("runs failures again that were tolerated, if the map is opened for another reason", () => {
    const trial = mapping({ items: ["a", "b"], tolerated_failures: 1 })
      .fails("m[0]")
      .does({ kind: "cancel" })
      .does(retry);
    expect(trial.out).toEqual(["m[0]", "m[1]"]);
  });

  test("runs all of them if the items are others", () => {
    const trial = mapping({ items: "{{ input.list }}" }, { list: ["a", "b"] })
      .completes("m[0]", "A")
      .fails("m[1]");
    trial.does({ ...retry, input: { json: { list: ["a", "c", "d"] } } });
    expect(trial.out).toEqual(["m[0]", "m[1]", "m[2]"]);
    completeAll(trial);
    expect(trial.view("m").output).toEqual({ json: ["a", "c", "d"] });
  });

  test("may have fewer items than before", () => {
    const trial = mapping({ items: "{{ input.list }}" }, { list: ["a", "b", "c"] }).fails("m[0]");
    trial.does({ ...retry, input: { json: { list: ["z"] } } });
    expect(trial.state.unitOf("m[1]")).toBeUndefined();
    expect(completeAll(trial).view("m").output).toEqual({ json: ["z"] });
  });

  test("can be opened many times: states, names and tokens of the items stay apart", () => {
    const trial = mapping({ items: ["a", "b"] });
    for (let generation = 2; generation <= 5; generation++) {
      const old = trial.token("m[1]");
      trial.fails("m[0]").does(retry);
      expect(trial.token("m[1]")).toBe(`nonce:x:${generation}:m[1]:1:1`);
      trial.send({ kind: "taskCompleted", token: old, output: { json: "old" }, runningMs: 1 });
      expect(trial.last.reply).toEqual({ refused: "STALE_ATTEMPT" });
      const copy = executionMachine.restore("x", trial.state.plan, executionMachine.snapshot(trial.state));
      expect(imprint(copy)).toBe(imprint(trial.state));
    }
    expect(completeAll(trial).view("m").output).toEqual({ json: ["a", "b"] });
  });
});

describe("a map that is run again", () => {
  test("by a rerun runs all its items, with new keys for what had completed", () => {
    const trial = completeAll(mapping({ items: ["a", "b"] })).completes("b");
    trial.does({ kind: "retry", scope: "descendants", from: "m" });
    expect(trial.out).toEqual(["m[0]", "m[1]"]);
    expect(trial.task("m[0]").idempotencyKey).toBe("x/m[0]/2");
  });

  test("stays to be run again, if the generation that wanted it ends before it was opened", () => {
    const nodes = [node("p"), mapNode("m", { ...step, items: ["a", "b"] }, ["p"])];
    const trial = completeAll(new Trial(workflow(nodes)).begin().completes("p"));
    trial.does({ kind: "retry", scope: "descendants", from: "p" }).does({ kind: "cancel" }).does(retry).completes("p");
    expect(trial.out).toEqual(["m[0]", "m[1]"]);
  });

  test("with another config makes all items by that", () => {
    const trial = mapping({ items: ["a", "b"] })
      .completes("m[0]", "A")
      .fails("m[1]");
    const config = {
      items: ["a"],
      handler: "step",
      config: { other: "{{ item }}" },
      max_concurrency: 5,
      tolerated_failures: 0,
    };
    trial.does({ kind: "retry", scope: "descendants", from: "m", config });
    expect(trial.out).toEqual(["m[0]"]);
    expect(trial.task("m[0]").config).toEqual({ other: "a" });
  });
});

describe("dead letters of items", () => {
  test("a replay runs those items, and leaves other failures as they are", () => {
    const trial = mapping({ items: ["a", "b", "c"], tolerated_failures: 1, max_concurrency: 3 });
    trial.completes("m[2]", "C").fails("m[0]").fails("m[1]");
    expect(trial.letters.map(({ id }) => id)).toEqual(["x:1:m[0]", "x:1:m[1]"]);
    trial.does({ kind: "retry", scope: "letters", letters: trial.letters.slice(1) });
    expect(trial.out).toEqual(["m[1]"]);
    expect(trial.view("m").items).toEqual({ total: 3, completed: 1, failed: 1 });
    trial.completes("m[1]", "B");
    expect(trial.view("m").output).toEqual({ json: [null, "B", "C"] });
  });

  test("are dealt with by a retry that opens their items again, or has them no more", () => {
    const trial = mapping({ items: "{{ input }}", tolerated_failures: 1 }, ["a", "b"]).fails("m[0]").fails("m[1]");
    const refusal = (...letters: readonly number[]): unknown =>
      trial.ask({ kind: "retry", scope: "letters", letters: letters.map((i) => trial.letters[i]!) });
    trial
      .does({ kind: "retry", scope: "descendants", from: "m", input: { json: ["a"] } })
      .fails("m[0]")
      .completes("b");
    expect(trial.letters.map(({ id }) => id)).toEqual(["x:1:m[0]", "x:1:m[1]", "x:2:m[0]"]);
    expect(refusal(0)).toMatchObject({ refused: "ALREADY_REPLAYED" });
    expect(refusal(1)).toMatchObject({ refused: "ALREADY_REPLAYED" });
    expect(refusal(2)).toHaveProperty("ok");
  });

  test("an item that fails again leaves a letter of its generation", () => {
    const trial = mapping({ items: ["a"] }).fails("m[0]");
    trial.does({ kind: "retry", scope: "letters", letters: trial.letters.slice() }).fails("m[0]");
    expect(trial.letters.map(({ id, text }) => [id, (JSON.parse(text) as { status: string }).status])).toEqual([
      ["x:1:m[0]", "open"],
      ["x:1:m[0]", "replayed"],
      ["x:2:m[0]", "open"],
    ]);
  });
});

describe("a graph for each item, opened again", () => {
  const inner = [node("one"), node("two", ["one"])] as unknown as Json;

  test("calls the same children again, and only those that failed", () => {
    const map = mapNode("m", { items: ["a", "b"], nodes: inner }, [], branch);
    const all = new Family(workflow([map])).begin();
    const [first, second] = [all.childOf("m[0]"), all.childOf("m[1]")];
    first.completes("one", 1).completes("two", 2);
    second.completes("one", 1).fails("two");
    all.deliver().root.does(retry);
    all.deliver();
    expect([all.childOf("m[0]"), all.childOf("m[1]")]).toEqual([first, second]);
    expect([first.summary.generation, second.summary.generation]).toEqual([1, 2]);
    expect(second.taskTexts("one")).toHaveLength(1);
    second.completes("two", 4);
    expect(all.deliver().root.view("m").output).toEqual({ json: [{ two: 2 }, { two: 4 }] });
  });

  test("by a rerun calls new ones", () => {
    const all = new Family(workflow([mapNode("m", { items: ["a"], nodes: inner })])).begin();
    const first = all.childOf("m[0]").completes("one").completes("two", 1);
    all.deliver().root.does({ kind: "retry", scope: "node", from: "m" });
    expect(all.deliver().childOf("m[0]").id).not.toBe(first.id);
  });
});

describe("a map of more than 1,000 items", () => {
  const items = (count: number): Json => Array.from({ length: count }, (_, i) => i);

  /** Runs every part that has been called, as they come; `fails` says which items fail. */
  function runParts(all: Family, fails: (item: number) => boolean = () => false): Family {
    for (let i = 0; i < 100 && !all.root.state.isEnded; i++) {
      for (const part of [...all.members.values()].slice(1)) {
        while (part.state.live.size > 0) {
          const [id] = part.out;
          const { item } = part.task(id!).config as { item: number };
          if (fails(item)) part.fails(id!);
          else part.completes(id!, item);
        }
      }
      all.deliver();
    }
    return all;
  }

  function large(count: number, config: Record<string, Json> = {}): Family {
    const whole = { ...step, items: items(count), max_concurrency: 100, ...config };
    return new Family(workflow([mapNode("m", whole, [], branch)]), {}, { large: true }).begin();
  }

  test("has 1,000 as units of its own", () => {
    const trial = mapping({ items: items(1000), max_concurrency: 1 });
    expect(trial.events.find(({ kind }) => kind === "mapOpened")).toMatchObject({ count: 1000, chunked: false });
    expect(trial.mail).toEqual([]);
  });

  test("is made of parts, each an execution of up to 1,000 items, one at a time", () => {
    const all = large(2500);
    expect(all.root.events.find(({ kind }) => kind === "mapOpened")).toMatchObject({
      count: 3,
      total: 2500,
      chunked: true,
    });
    expect([...all.root.state.children].map((unit) => all.root.state.nameOf(unit))).toEqual(["m[0]"]);
    const part = all.childOf("m[0]");
    expect(part.summary.workflow).toBe("test[m]");
    expect(part.state.maps.get(0)).toMatchObject({ total: 1000, chunked: false, concurrency: 100 });
    expect(all.root.view("m")).toMatchObject({ status: "RUNNING", items: { total: 2500, completed: 0, failed: 0 } });
  });

  test("gives one list in the order of the items", () => {
    const all = runParts(large(2100));
    expect(all.root.summary.status).toBe("COMPLETED");
    expect(all.root.view("m").items).toEqual({ total: 2100, completed: 2100, failed: 0 });
    expect(all.root.summary.output).toEqual({ m: items(2100) });
    expect(all.members.size).toBe(4);
  });

  test("fails with the first part that has one failure too many", () => {
    const all = runParts(large(2100), (item) => item === 1500);
    expect(all.root.view("m")).toMatchObject({ status: "FAILED", error: { code: "MAP_FAILED", retryable: false } });
    expect(all.members.size).toBe(3);
  });

  test("counts and names the items that failed, and not their parts", () => {
    const all = runParts(large(2100), (item) => item === 1500);
    const { items: counts, error } = all.root.view("m");
    expect(counts).toEqual({ total: 2100, completed: 1000, failed: 1 });
    expect(error?.details).toMatchObject({ items: [1500], first: { retryable: false } });
    expect(error?.message).toMatch(/^1 of 2100 items failed, 0 are tolerated; m\[1500\]: /);
    const many = runParts(large(2100, { tolerated_failures: 5 }), (item) => item < 6);
    expect(many.root.view("m").error?.message).toMatch(/^6 of 2100 items failed, 5 are tolerated; m\[0\]: /);
  });

  test("tells its tasks which item of the whole they are, and its templates whose map it is", () => {
    const all = large(1002, { config: { item: "{{ item }}", of: "{{ execution.id }}" } });
    runPart(all, 0);
    const { config, item } = all.childOf("m[1]").task("m[1]");
    expect([config, item]).toEqual([{ item: 1001, of: all.root.state.id }, 1001]);
  });

  test.each<[Json, number, string]>([
    [3, 3, "completed"],
    [3, 4, "failed"],
    ["1%", 21, "completed"],
    ["1%", 22, "failed"],
  ])("tolerates %j of the whole, also if %i of them fail in one part: %s", (tolerated, failing, status) => {
    const all = runParts(large(2100, { tolerated_failures: tolerated }), (item) => item < failing);
    expect(all.root.status("m")).toBe(status);
    if (status === "failed") return;
    expect(all.root.view("m").items).toEqual({ total: 2100, completed: 2100 - failing, failed: failing });
    const [list] = Object.values(all.root.summary.output as { m: Json[] });
    expect(list!.slice(0, failing + 1)).toEqual([...Array.from({ length: failing }, () => null), failing]);
  });

  test("counts a part that fails as a whole by its items, each of which reads null", () => {
    const all = large(1002, { tolerated_failures: 2 });
    runPart(all, 0);
    all.childOf("m[1]").does({ kind: "cancel" });
    all.deliver();
    expect(all.root.view("m")).toMatchObject({
      status: "COMPLETED",
      items: { total: 1002, completed: 1000, failed: 2 },
    });
    expect((all.root.summary.output as { m: Json[] }).m.slice(-3)).toEqual([999, null, null]);
    const first = large(1002, { tolerated_failures: 2 });
    first.childOf("m[0]").does({ kind: "cancel" });
    expect(first.deliver().root.view("m")).toMatchObject({ status: "FAILED", items: { failed: 1000 } });
  });

  test("runs only what failed again, within the parts too", () => {
    const all = runParts(large(1010), (item) => item === 5);
    const part = all.childOf("m[0]");
    const ran = part.tasks.length;
    all.root.does(retry);
    all.deliver();
    expect(all.childOf("m[0]")).toBe(part);
    runParts(all);
    expect(all.root.summary).toMatchObject({ status: "COMPLETED", output: { m: items(1010) } });
    // Of the 1,000 items those that had completed were not run again.
    expect(part.tasks.slice(ran).length).toBe(1000 - part.events.filter(isCompletionOfGeneration1(part)).length);
  });

  test("runs failures again that a part had tolerated", () => {
    const all = runParts(large(1010, { tolerated_failures: 1 }), (item) => item === 5 || item === 1005);
    expect(all.root.view("m").error?.code).toBe("MAP_FAILED");
    const part = all.childOf("m[0]");
    expect(part.summary.status).toBe("COMPLETED");
    all.root.does(retry);
    all.deliver();
    expect(part.out).toEqual(["m[5]"]);
    runParts(all);
    expect(all.root.summary).toMatchObject({ status: "COMPLETED", output: { m: items(1010) } });
  });

  test("leaves the letter of the item that failed and none of its part, and goes on when that is replayed", () => {
    const all = runParts(large(1010), (item) => item === 5);
    const part = all.childOf("m[0]");
    expect(all.root.letters).toEqual([]);
    expect(part.letters.map(({ id }) => id)).toEqual([`${part.id}:1:m[5]`]);
    part.does({ kind: "retry", scope: "letters", letters: part.letters.slice() });
    runPart(all, 0);
    runParts(all);
    expect(all.root.summary).toMatchObject({ status: "COMPLETED", generation: 2, output: { m: items(1010) } });
  });

  test("can be opened again by the letter of a part that an earlier release has written", () => {
    const { root } = runParts(large(1010), (item) => item === 5);
    const letter = { id: "x:1:m[0]", class: "poison", queue: "step", text: "{}" } as const;
    expect(root.ask({ kind: "retry", scope: "letters", letters: [letter] })).toHaveProperty("ok");
  });

  test("leaves a letter of a part that failed for another reason than its items", () => {
    const all = large(1002);
    all.childOf("m[0]").does({ kind: "cancel" });
    expect(all.deliver().root.letters.map(({ id }) => id)).toEqual(["x:1:m[0]"]);
  });

  test("can run a graph or a workflow for each item", () => {
    const inner = [node("s", [], { config: { item: "{{ item }}" } })] as unknown as Json;
    const map = mapNode("m", { items: items(1001), nodes: inner, max_concurrency: 1000 });
    const all = new Family(workflow([map]), {}, { large: true }).begin();
    const part = all.childOf("m[0]");
    expect(part.state.children.size).toBe(1000);
    expect(all.childOf("m[7]", part).task("s").config).toEqual({ item: 7 });
    expect(all.childOf("m[7]", part).state.parent).toMatchObject({ depth: 2 });
  });

  test("has its limits from templates too, and its items see what is around", () => {
    const config = { items: "{{ p.list }}", handler: "step", config: { item: "{{ item }}", w: "{{ p.word }}" } };
    const map = mapNode("m", { ...config, max_concurrency: "{{ p.most }}", tolerated_failures: "{{ p.most }}" }, ["p"]);
    const all = new Family(workflow([node("p"), map]), {}, { large: true }).begin();
    all.root.completes("p", { list: items(1001), word: "w", most: 3 });
    const part = all.deliver().childOf("m[0]");
    expect(part.out).toEqual(["m[0]", "m[1]", "m[2]"]);
    expect(part.task("m[2]").config).toEqual({ item: 2, w: "w" });
  });

  function runPart(all: Family, place: number): void {
    const part = all.childOf(`m[${place}]`);
    while (part.state.live.size > 0) {
      const [id] = part.out;
      part.completes(id!, (part.task(id!).config as { item: number }).item);
    }
    all.deliver();
  }
});

/** Counts the items of a part that completed in its first generation. */
function isCompletionOfGeneration1(part: Trial): (event: (typeof part.events)[number], place: number) => boolean {
  const end = part.kinds().indexOf("generationOpened");
  return (event, place) => event.kind === "taskCompleted" && place < end;
}
