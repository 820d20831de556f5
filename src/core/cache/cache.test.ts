import { describe, expect, test } from "vitest";
import type { CacheSpec, WorkflowNode } from "../../definition/workflow.ts";
import { explain } from "../execution/explain.ts";
import { executionMachine } from "../execution/machine.ts";
import { imprint, mapNode, node, Trial, workflow } from "../execution/test-execution.ts";
import { cacheMachine } from "./machine.ts";
import { CacheTrial } from "./test-cache.ts";

const HOUR: CacheSpec = { ttl_seconds: 3600 };

function kept(id: string, more: Partial<WorkflowNode> = {}): Trial {
  const one = node("a", [], { cache: HOUR, config: { say: "{{ input.word }}" }, ...more });
  return new Trial(workflow([one]), { id });
}

const said = (word: string) => ({ json: { word } });

describe("a node with a cache", () => {
  test("does the work once; who has the same to do gets the result, and from whom", () => {
    const first = kept("one").begin(said("hello"));
    expect(first.out).toEqual([]);
    const cache = new CacheTrial().join(first);
    expect(first.out).toEqual(["a"]);
    first.completes("a", { answer: 42 });
    const second = kept("two").begin(said("hello"));
    cache.join(second);
    expect(second.tasks).toEqual([]);
    expect(second.shown).toEqual({ a: "COMPLETED cached" });
    expect(second.view("a")).toMatchObject({ attempt: 0, output: { json: { answer: 42 } }, cachedFrom: "one" });
    expect(second.summary.status).toBe("COMPLETED");
    expect(second.events.find(({ kind }) => kind === "nodeCompleted")).toMatchObject({ reason: "cached", from: "one" });
  });

  test("is another thing with another config, another handler or another tenant's input", () => {
    const first = kept("one").begin(said("hello"));
    const cache = new CacheTrial().join(first);
    first.completes("a", 1);
    const others = [kept("two").begin(said("bye")), kept("three", { handler: "other" }).begin(said("hello"))];
    cache.join(...others);
    expect(others.map((trial) => trial.out)).toEqual([["a"], ["a"]]);
    expect(cache.states.size).toBe(3);
  });

  test("goes by its own key, whatever else it is given, and not by that of another node", () => {
    const byWord = { cache: { key: "{{ input.word }}", ttl_seconds: 60 }, config: { n: "{{ input.n }}" } };
    const first = kept("one", byWord).begin({ json: { word: "w", n: 1 } });
    const cache = new CacheTrial().join(first);
    first.completes("a", "first");
    const same = kept("two", byWord).begin({ json: { word: "w", n: 2 } });
    const other = new Trial(workflow([node("b", [], byWord)]), { id: "three" }).begin({ json: { word: "w", n: 1 } });
    cache.join(same, other);
    expect(same.view("a").output).toEqual({ json: "first" });
    expect(other.out).toEqual(["b"]);
  });

  test("takes nothing of a rate when the result is there, and asks its gates when it is not", () => {
    const limits = { thin: { rate: 1, per: "second", burst: 1 } } as const;
    const make = (id: string) =>
      new Trial(workflow([node("a", [], { cache: HOUR, limit: "thin" })], { limits }), { id }).begin();
    const first = make("one");
    const cache = new CacheTrial().join(first);
    expect(first.shown["a"]).toBe("WAITING rate_limit");
    first.passes("a").completes("a", 1);
    const second = make("two");
    cache.join(second);
    expect(second.shown).toEqual({ a: "COMPLETED cached" });
    expect(second.mail.filter(({ body }) => body.kind === "gateAcquire")).toEqual([]);
  });

  test("never keeps a failure", () => {
    const first = kept("one").begin(said("x"));
    const cache = new CacheTrial().join(first);
    first.fails("a");
    const second = kept("two").begin(said("x"));
    cache.join(second);
    expect(second.out).toEqual(["a"]);
    expect([...cache.states.values()][0]!.entry).toBeNull();
  });
});

describe("the same work at the same time", () => {
  test("is done by one; the others wait for the result and hold nothing", () => {
    const trials = ["one", "two", "three"].map((id) => kept(id).begin(said("x")));
    const cache = new CacheTrial().join(...trials);
    const [one, two, three] = trials as [Trial, Trial, Trial];
    expect(trials.map(({ out }) => out)).toEqual([["a"], [], []]);
    expect(two.shown["a"]).toBe("WAITING concurrency");
    expect(explain(two.state)[0]).toMatchObject({ reason: "concurrency", details: { cache: expect.any(String) } });
    one.completes("a", "done");
    cache.deliver();
    expect([two, three].map((trial) => trial.view("a").cachedFrom)).toEqual(["one", "one"]);
  });

  test("goes to the next if it comes to nothing, and to more and more if that happens again", () => {
    const trials = Array.from({ length: 8 }, (_, i) => kept(`e${i}`).begin(said("x")));
    const cache = new CacheTrial().join(...trials);
    const running = () => trials.filter(({ out }) => out.length > 0);
    const sizes = [running().length];
    while (running().length > 0) {
      for (const trial of running()) trial.fails("a");
      cache.deliver();
      sizes.push(running().length);
    }
    expect(sizes).toEqual([1, 2, 5, 0]);
  });

  test("goes to the next if whoever does it is cancelled", () => {
    const [one, two] = [kept("one").begin(said("x")), kept("two").begin(said("x"))];
    const cache = new CacheTrial().join(one, two);
    one.does({ kind: "cancel" });
    cache.deliver();
    expect(two.out).toEqual(["a"]);
  });

  test("is one of several items of a map", () => {
    const map = mapNode("m", { items: [1, 1, 2], handler: "step", config: { n: "{{ item }}" } }, [], { cache: HOUR });
    const trial = new Trial(workflow([map])).begin();
    const cache = new CacheTrial().join(trial);
    expect(trial.out).toEqual(["m[0]", "m[2]"]);
    trial.completes("m[0]", "one").completes("m[2]", "two");
    cache.deliver();
    expect(trial.view("m").output).toEqual({ json: ["one", "one", "two"] });
  });

  test("stays with whoever does it when its worker is lost", () => {
    const [one, two] = [kept("one").begin(said("x")), kept("two").begin(said("x"))];
    const cache = new CacheTrial().join(one, two);
    one.loses("a");
    cache.deliver();
    expect([one.out, two.out]).toEqual([["a"], []]);
    one.completes("a", "mine");
    cache.deliver();
    expect(two.shown).toEqual({ a: "COMPLETED cached" });
  });

  test("goes to the next if it is paused between two deliveries, and both may do it then", () => {
    const [one, two] = [kept("one").begin(said("x")), kept("two").begin(said("x"))];
    one.room = () => 0;
    const cache = new CacheTrial().join(one, two);
    one.room = () => 1;
    one.settle();
    one.room = () => 0;
    one.loses("a").does({ kind: "pause" });
    cache.deliver();
    expect(two.out).toEqual(["a"]);
    one.room = () => 1;
    one.does({ kind: "resume" });
    expect(one.out).toEqual(["a"]);
  });
});

describe("a node that does not wait for all that it reads", () => {
  const hasty = (id: string) => {
    const config = { of: "{{ late | default('nothing') }}" };
    const nodes = [
      node("soon"),
      node("late"),
      node("a", ["soon", "late"], { join: "one_success", cache: HOUR, config }),
    ];
    return new Trial(workflow(nodes), { id }).begin().completes("soon", 1);
  };

  test("gets what it has asked for, though it would ask for something else by now", () => {
    const [one, two] = [hasty("one"), hasty("two")];
    const cache = new CacheTrial().join(one, two);
    two.completes("late", "something");
    one.completes("a", "of nothing");
    cache.deliver();
    expect(two.view("a")).toMatchObject({ output: { json: "of nothing" }, cachedFrom: "one" });
  });

  test("brings nothing if in the end it was given something else", () => {
    const [one, two] = [hasty("one"), hasty("two")];
    one.room = () => 0;
    const cache = new CacheTrial().join(one, two);
    one.completes("late", "something");
    one.room = () => 1;
    one.settle().completes("a", "of something");
    cache.deliver();
    expect(two.out).toEqual(["late", "a"]);
    expect([...cache.states.values()].map(({ entry }) => entry)).toEqual([null]);
  });
});

describe("what is kept", () => {
  test("is gone when its time is up", () => {
    const first = kept("one", { cache: { ttl_seconds: 10 } }).begin(said("x"));
    const cache = new CacheTrial().join(first);
    first.completes("a", 1);
    const [key, state] = [...cache.deliver().states][0]!;
    expect(cacheMachine.expiresAtMs!(state)).toBe(1_010_000);
    cache.at(9_999).join(kept("two", { cache: { ttl_seconds: 10 } }).begin(said("x")));
    const late = kept("three", { cache: { ttl_seconds: 10 } }).begin(said("x"));
    cache.at(10_000).join(late);
    expect(late.out).toEqual(["a"]);
    expect(cache.state(key).entry).toBeNull();
    late.fails("a");
    cache.deliver();
    expect(cacheMachine.expiresAtMs!(cache.state(key))).toBe(1_010_000);
  });

  test("is not removed while somebody does the work", () => {
    const cache = new CacheTrial().join(kept("one").begin(said("x")));
    expect(cacheMachine.expiresAtMs!([...cache.states.values()][0]!)).toBeNull();
  });

  test("leaves no event when it is given away, so that a key that all ask for stays short", () => {
    const first = kept("one").begin(said("x"));
    const cache = new CacheTrial().join(first);
    first.completes("a", 1);
    const before = cache.deliver().events.length;
    for (let i = 0; i < 10; i++) cache.join(kept(`more${i}`).begin(said("x")));
    expect(cache.events).toHaveLength(before);
  });

  test("may be large: then it is a value of whoever has it", () => {
    const blob = { hash: "", bytes: 0 };
    const large = "x".repeat(100_000);
    const first = kept("one").begin(said("x"));
    const cache = new CacheTrial().join(first);
    const ref = { ...blob, hash: "given", bytes: 100_002 };
    first.fetched.set("given", large);
    first.send({ kind: "taskCompleted", token: first.token("a"), output: { blob: ref }, runningMs: 1 });
    first.settle();
    expect(first.blobs.map(({ scope }) => scope)).toEqual([[...cache.deliver().states.keys()][0]]);
    const second = kept("two").begin(said("x"));
    cache.join(second);
    const { output } = second.view("a");
    const hash = output !== null && "blob" in output ? output.blob.hash : "";
    expect(second.fetched.get(hash)).toBe(large);
  });

  test("does not count for a node that somebody wants done anew, and is replaced by what comes of it", () => {
    const first = kept("one").begin(said("x"));
    const cache = new CacheTrial().join(first);
    first.completes("a", "old");
    cache.deliver();
    first.does({ kind: "retry", scope: "node", from: "a" });
    cache.deliver();
    expect(first.out).toEqual(["a"]);
    first.completes("a", "new");
    const second = kept("two").begin(said("x"));
    cache.deliver().join(second);
    expect(second.view("a").output).toEqual({ json: "new" });
  });

  test("counts for what comes after such a node", () => {
    const two = () => [node("a"), node("b", ["a"], { cache: HOUR, config: { of: "{{ a }}" } })];
    const trial = new Trial(workflow(two())).begin().completes("a", 1);
    const cache = new CacheTrial().join(trial);
    trial.completes("b", "kept");
    cache.deliver();
    trial.does({ kind: "retry", scope: "descendants", from: "a" });
    trial.completes("a", 1);
    cache.deliver();
    expect(trial.shown["b"]).toBe("COMPLETED cached");
  });
});

test("a node that was paused before the answer came leaves the line, and asks anew", () => {
  const trial = kept("one").begin(said("x"));
  trial.does({ kind: "pause" });
  const cache = new CacheTrial().join(trial);
  expect([...cache.states.values()][0]!.held.size).toBe(0);
  trial.does({ kind: "resume" });
  cache.deliver();
  expect(trial.out).toEqual(["a"]);
});

test("a snapshot brings back what waits for the cache, and what came of it", () => {
  const one = kept("one").begin(said("x"));
  for (const step of ["waits", "runs", "done"]) {
    const restored = executionMachine.restore("one", one.state.plan, executionMachine.snapshot(one.state));
    expect(imprint(restored), step).toBe(imprint(one.state));
    if (step === "waits") new CacheTrial().join(one);
    if (step === "runs") one.completes("a", 1);
  }
});
