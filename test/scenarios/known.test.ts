import { readFileSync } from "node:fs";
import { afterEach, describe, expect, test } from "vitest";
import type { ExecutionSummary } from "../../src/core/execution/test-summary.ts";
import { readDefinition } from "../../src/definition/read.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import type { Json } from "../../src/json/json.ts";
import { type Handler, HandlerError } from "../../src/worker/handler.ts";
import { type MemoryEngine, memoryEngine } from "../support/memory-engine.ts";

/**
 * Workflows of the kinds that the examples of other engines show, written for this one and run as a user runs them: from
 * the text of a file, by real workers.
 */
const QUICK = { engine: { idleMs: 20, renewMs: 20, checkWhole: true }, worker: { pollMs: 20 } };

let engine: MemoryEngine;
/** What was called, with what. */
let calls: string[] = [];
afterEach(() => engine.stop());

type Act = (config: { readonly [key: string]: Json }, call: Parameters<Handler>[0]) => Json | Promise<Json>;

async function open(acts: Readonly<Record<string, Act>>): Promise<void> {
  calls = [];
  const handlers = Object.fromEntries(
    Object.entries(acts).map(([name, act]): [string, Handler] => [
      name,
      (call) => {
        calls.push(`${name} ${JSON.stringify(call.config)}`);
        return act(call.config as { readonly [key: string]: Json }, call);
      },
    ]),
  );
  engine = await memoryEngine(handlers, QUICK);
}

function read(file: string): Workflow {
  const text = readFileSync(new URL(`./known/${file}.yaml`, import.meta.url), "utf8");
  const handlers = { allowMissing: true, get: () => undefined, names: () => [] };
  const { workflow, errors } = readDefinition(text, { format: "yaml", handlers });
  expect(errors).toEqual([]);
  return workflow!;
}

const run = (file: string, input: Json = {}): Promise<ExecutionSummary> => engine.run(read(file), input);

function shown({ nodes }: ExecutionSummary): Record<string, string> {
  return Object.fromEntries(
    Object.entries(nodes).map(([id, { status, reason }]) => [id, reason === null ? status : `${status} ${reason}`]),
  );
}

const word = (value: Json | undefined): string => value as string;

function refuse(code: string, retryable = false): never {
  throw new HandlerError(code, `${code.toLowerCase()} happened`, { retryable });
}

const slowly = (call: Parameters<Handler>[0]): Promise<Json> =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(null), 5000);
    call.signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new Error("stopped"));
    });
  });

describe("job poller", () => {
  const acts = (end: string): Record<string, Act> => {
    let asked = 0;
    return {
      "job.submit": () => ({ job: 7 }),
      "job.status": () => ({ state: ++asked < 4 ? "RUNNING" : end }),
      "job.result": () => "the result",
      tell: () => null,
    };
  };

  test("asks until the job is done, and fetches its result", async () => {
    await open(acts("SUCCEEDED"));
    const ended = await run("job-poller", { image: "img" });
    expect(ended).toMatchObject({ status: "COMPLETED", output: { fetch: "the result" } });
    expect(ended.nodes["poll"]).toMatchObject({ iteration: 4, attempt: 1 });
    expect(calls.filter((call) => call.startsWith("job.status"))).toHaveLength(4);
    expect(shown(ended)["alarm"]).toBe("SKIPPED route");
  });

  test("raises the alarm for one that failed", async () => {
    await open(acts("FAILED"));
    await run("job-poller", { image: "img" });
    expect(calls.at(-1)).toBe('tell {"text":"job ended FAILED"}');
  });
});

describe("trip saga", () => {
  const acts = (failing: string): Record<string, Act> => ({
    book: ({ what }) => (what === failing ? refuse("SOLD_OUT") : { booking: `${word(what)}-1` }),
    cancel_booking: () => null,
  });

  test("books everything when all goes well, and undoes nothing", async () => {
    await open(acts("nothing"));
    const ended = await run("trip-saga");
    expect(ended.status).toBe("COMPLETED");
    expect(shown(ended)).toMatchObject({ undo_flight: "SKIPPED condition", undo_hotel: "SKIPPED condition" });
  });

  test.each([
    ["car", ['cancel_booking {"booking":"flight-1"}', 'cancel_booking {"booking":"hotel-1"}']],
    ["flight", ['cancel_booking {"booking":"hotel-1"}']],
    ["hotel", []],
  ])("undoes what was booked before %s failed", async (failing, undone) => {
    await open(acts(failing));
    const ended = await run("trip-saga");
    expect(calls.filter((call) => call.startsWith("cancel")).toSorted()).toEqual(undone);
    // What was undone is dealt with; a hotel that could not be had leaves nothing to undo, and is a failure.
    expect(ended.status).toBe(failing === "hotel" ? "FAILED" : "COMPLETED");
  });
});

describe("tolerant fan-out", () => {
  const acts = (broken: readonly number[]): Record<string, Act> => ({
    "files.list": () => ({ files: Array.from({ length: 10 }, (_, i) => `f${i}`) }),
    "files.convert": ({ file, number }) =>
      broken.includes(number as number) ? refuse("BROKEN", true) : `${word(file)}.pdf`,
  });

  test("puts up with a fifth of the files, which are null in the results", async () => {
    await open(acts([2, 5]));
    const ended = await run("tolerant-fan-out");
    expect(ended.output).toEqual({
      converted: ["f0.pdf", "f1.pdf", null, "f3.pdf", "f4.pdf", null, "f6.pdf", "f7.pdf", "f8.pdf", "f9.pdf"],
    });
    expect(calls.filter((call) => call.includes('"f5"'))).toHaveLength(2);
    expect(ended.nodes["convert"]!.items).toEqual({ total: 10, completed: 8, failed: 2 });
  });

  test("and with no more; then only what failed is tried again", async () => {
    const broken = [2, 5, 7];
    await open(acts(broken));
    const id = await engine.start(read("tolerant-fan-out"));
    const failed = await engine.ended(id);
    expect(failed.nodes["convert"]).toMatchObject({ status: "FAILED", error: { code: "MAP_FAILED" } });
    broken.length = 0;
    const before = calls.length;
    await engine.send(id, { kind: "retry", scope: "failed" });
    const ended = await engine.ended(id);
    expect(ended).toMatchObject({ status: "COMPLETED", generation: 2 });
    expect(ended.output).toEqual({ converted: Array.from({ length: 10 }, (_, i) => `f${i}.pdf`) });
    const again = calls.slice(before).map((call) => /"f\d"/.exec(call)![0]);
    expect(again).toContain('"f2"');
    expect(again).not.toContain('"f0"');
  });
});

describe("approval with timeout", () => {
  const acts: Record<string, Act> = { price: () => ({ amount: 12 }), order: () => "ordered", tell: () => null };

  test("orders once somebody has agreed", async () => {
    await open(acts);
    const id = await engine.start(read("approval-with-timeout"), { item: "lamp" });
    await expect.poll(async () => (await engine.read(id)).reviews.size).toBe(1);
    const decision = {
      kind: "decideReview",
      instance: "approve",
      generation: 1,
      decision: "approve",
      data: {},
    } as const;
    expect(await engine.send(id, decision)).toMatchObject({ ok: { status: "RUNNING" } });
    expect((await engine.ended(id)).output).toEqual({ order: "ordered" });
    expect(await engine.send(id, decision)).toMatchObject({ refused: "REVIEW_CLOSED" });
  });

  test("takes silence for a no", async () => {
    await open(acts);
    await run("approval-with-timeout", { item: "lamp" });
    expect(calls.at(-1)).toBe('tell {"text":"declined by on_due"}');
  });
});

describe("catch and cleanup", () => {
  const acts = (works: boolean): Record<string, Act> => ({
    "cluster.create": () => ({ id: "c1" }),
    "cluster.run": () => (works ? "done" : refuse("CRASHED")),
    "cluster.destroy": () => null,
    tell: () => null,
  });

  test("destroys the cluster after a job that went well", async () => {
    await open(acts(true));
    const ended = await run("catch-and-cleanup");
    expect(ended.status).toBe("COMPLETED");
    expect(shown(ended)).toMatchObject({ destroy: "COMPLETED", report: "SKIPPED condition" });
  });

  test("reports a failure, destroys the cluster all the same, and counts the failure as dealt with", async () => {
    await open(acts(false));
    const ended = await run("catch-and-cleanup");
    expect(shown(ended)).toMatchObject({ job: "FAILED", destroy: "COMPLETED", report: "COMPLETED" });
    expect(calls).toContain('tell {"text":"job failed: crashed happened"}');
    expect(ended.status).toBe("COMPLETED");
  });
});

describe("nested order", () => {
  let broken = "none";
  const acts: Record<string, Act> = {
    "order.split": () => ({ parcels: ["a", "b"] }),
    "parcel.label": ({ parcel }) => (parcel === broken ? refuse("NO_PAPER") : { code: `T-${word(parcel)}` }),
    "invoice.make": () => ({ number: 9 }),
  };

  test("collects what its children give", async () => {
    broken = "none";
    await open(acts);
    for (const child of ["shipping", "invoicing"]) await engine.publish(read(child));
    const ended = await run("nested-order", { order: 1 });
    expect(ended.output).toEqual({ tracking: [{ code: "T-a" }, { code: "T-b" }], invoice: { number: 9 } });
  });

  test("tries again only the child that failed, as the same execution", async () => {
    broken = "b";
    await open(acts);
    for (const child of ["shipping", "invoicing"]) await engine.publish(read(child));
    const id = await engine.start(read("nested-order"), { order: 1 });
    const failed = await engine.ended(id);
    expect(failed.nodes["ship"]).toMatchObject({ status: "FAILED", error: { details: { items: [1] } } });
    const child = (await engine.read(id)).runs.find((each) => each?.error?.code === "CHILD_FAILED")!.child!.execution;
    expect((await engine.ended(child)).status).toBe("FAILED");

    broken = "none";
    const before = calls.length;
    await engine.send(id, { kind: "retry", scope: "failed" });
    expect((await engine.ended(id)).output).toMatchObject({ tracking: [{ code: "T-a" }, { code: "T-b" }] });
    expect(calls.slice(before).filter((call) => call.startsWith("parcel"))).toEqual(['parcel.label {"parcel":"b"}']);
    expect(await engine.ended(child)).toMatchObject({ status: "COMPLETED", generation: 2 });
  });
});

test("early end finishes at once, and calls off what has begun", async () => {
  await open({ "repo.changes": () => ({ files: [] }), slow: (_, call) => slowly(call), build: () => "built" });
  const ended = await run("early-end");
  expect(ended).toMatchObject({ status: "COMPLETED", output: { built: false } });
  expect(shown(ended)).toMatchObject({ warm_cache: "CANCELLED end", build: "CANCELLED end" });
});

test("matrix build runs its steps for each combination, and releases all artifacts in order", async () => {
  const matrix = ["linux", "mac"].flatMap((os) => [22, 24].map((version) => ({ os, node: version })));
  await open({
    "ci.plan": () => ({ matrix, flags: "-O2" }),
    "ci.checkout": ({ commit }) => ({ dir: `/src/${word(commit)}` }),
    "ci.compile": ({ os, node, flags }) => ({ artifact: `${word(os)}-${word(node)}${word(flags)}` }),
    "ci.test": () => true,
    "ci.release": ({ artifacts }) => ({ released: artifacts! }),
  });
  const ended = await run("matrix-build", { commit: "abc" });
  expect(ended.output).toEqual({
    release: {
      released: ["linux-22-O2", "linux-24-O2", "mac-22-O2", "mac-24-O2"].map((artifact) => ({ artifact })),
    },
  });
  expect(calls).toContain('ci.compile {"os":"mac","node":24,"dir":"/src/abc","flags":"-O2"}');
});

test.each([
  [5000, "5000 0", "single"],
  [5, "0 5", "bulk"],
])("branch and join: %i rows", async (count, written, skipped) => {
  await open({
    "rows.load": () => ({ count }),
    "rows.bulk": ({ count: rows }) => ({ written: rows! }),
    "rows.single": ({ count: rows }) => ({ written: rows! }),
  });
  const ended = await run("branch-and-join");
  expect(ended.output).toEqual({ written });
  expect(shown(ended)[skipped]).toBe("SKIPPED route");
});

describe("hedged request", () => {
  test("takes the first answer and stops the others", async () => {
    await open({
      mirror: ({ name }, call) =>
        name === "south" ? { from: "south" } : name === "west" ? refuse("DOWN") : slowly(call),
      pick: (_, { inputs }) => ({ answer: Object.keys(inputs as object)[0]! }),
    });
    const ended = await run("hedged-request");
    expect(ended.output).toEqual({ answer: "south" });
    expect(shown(ended)).toMatchObject({ north: "CANCELLED end", south: "COMPLETED" });
  });

  test("fails if nobody answers", async () => {
    await open({ mirror: () => refuse("DOWN"), pick: () => null });
    const ended = await run("hedged-request");
    expect(ended.status).toBe("FAILED");
    expect(shown(ended)["first"]).toBe("SKIPPED upstream_failed");
  });
});

test.each([
  [true, "good", "SKIPPED condition"],
  [false, "cheap", "COMPLETED"],
])("fallback: the good service works: %s", async (works, from, backup) => {
  await open({
    "geocode.good": () => (works ? { from: "good" } : refuse("DOWN", true)),
    "geocode.cheap": () => ({ from: "cheap" }),
    choose: (_, { inputs }) => Object.values(inputs as { [id: string]: Json })[0]!,
  });
  const ended = await run("fallback", { address: "here" });
  expect(ended).toMatchObject({ status: "COMPLETED", output: { place: { from } } });
  expect(shown(ended)["backup"]).toBe(backup);
});

describe("payment signal", () => {
  const acts: Record<string, Act> = {
    "stock.reserve": () => 1,
    "goods.send": () => "sent",
    "stock.release": () => "back",
  };

  test("sends the goods when the bank calls back, also before anybody waits for it", async () => {
    await open(acts);
    const id = await engine.start(read("payment-signal"), { item: "lamp" });
    await engine.send(id, { kind: "signal", name: "payment", data: { json: { amount: 12 } } });
    expect((await engine.ended(id)).status).toBe("COMPLETED");
    expect(calls).toContain('goods.send {"amount":12}');
  });

  test("puts them back when it does not", async () => {
    await open(acts);
    const ended = await run("payment-signal", { item: "lamp" });
    expect(shown(ended)).toMatchObject({ paid: "FAILED", send: "SKIPPED upstream_failed", restock: "COMPLETED" });
    expect(ended.nodes["paid"]!.error!.code).toBe("SIGNAL_TIMEOUT");
  });
});

test.each([
  [["ann", "cyd"], "COMPLETED"],
  [["cyd"], "SKIPPED upstream_failed"],
])("quorum vote: %j agree", async (agree, merged) => {
  await open({
    vote: ({ voter }) => (agree.includes(voter as string) ? true : refuse("AGAINST")),
    "repo.merge": () => "merged",
  });
  expect(shown(await run("quorum-vote"))["merge_change"]).toBe(merged);
});

test.each([
  [0, { loaded: 10, quarantined: 0 }],
  [3, { loaded: 0, quarantined: 3 }],
])("quality gate with %i bad rows", async (bad, output) => {
  await open({
    "rows.load": () => ({ count: 10 }),
    "rows.clean": () => ({ good: 10 - bad, bad }),
    "rows.bulk": ({ count }) => ({ written: count! }),
    "rows.quarantine": ({ bad: rows }) => ({ moved: rows! }),
  });
  const ended = await run("quality-gate");
  expect(ended).toMatchObject({ status: "COMPLETED", output });
});
