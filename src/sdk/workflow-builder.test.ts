import { describe, expect, test } from "vitest";
import { z } from "zod";
import { checkDefinition } from "../definition/read.ts";
import { BUILTIN_HANDLERS } from "../definition/builtin-handlers.ts";
import type { JsonObject } from "../json/json.ts";
import { expr, text } from "./expression.ts";
import { jsonSchema, type } from "./standard-schema.ts";
import { workflow } from "./workflow-builder.ts";
import { PARTS, type Workflow } from "./workflow.ts";

function nodesOf(wf: Workflow<never, unknown>): Readonly<Record<string, JsonObject>> {
  const nodes = wf.toJSON()["nodes"] as unknown as readonly JsonObject[];
  return Object.fromEntries(nodes.map((node) => [node["id"], node]));
}

const ALL = { get: () => undefined, names: () => [], allowMissing: true };

describe("a workflow in TypeScript is the definition it stands for", () => {
  test("a function is a task whose handler is named by workflow and node", () => {
    const wf = workflow("invoice", { input: z.object({ path: z.string() }), timeout: "1h", onError: "fail_branch" });
    const load = wf.node("load", () => ({ bytes: 1 }));
    const size = wf.node(
      "size",
      {
        after: { loaded: load },
        timeout: "5s",
        retry: { attempts: 5, backoff: "2s", factor: 3, max: "1m", jitter: 0 },
      },
      ({ loaded }) => loaded.bytes,
    );
    expect(wf.output({ size }).toJSON()).toEqual({
      name: "invoice",
      input_schema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
      on_error: "fail_branch",
      timeout_seconds: 3600,
      nodes: [
        { id: "load", handler: "invoice/load", config: { input: "{{ input }}" } },
        {
          id: "size",
          handler: "invoice/size",
          config: { input: "{{ input }}", given: { loaded: '{{ nodes["load"].output }}' } },
          dependencies: ["load"],
          timeout_seconds: 5,
          retry: {
            max_attempts: 5,
            base_delay_seconds: 2,
            exponential_base: 3,
            max_delay_seconds: 60,
            jitter: 0,
          },
        },
        {
          id: "output#",
          name: "output",
          handler: "output",
          config: { size: '{{ nodes["size"].output }}' },
          dependencies: ["size"],
        },
      ],
    });
  });

  test("limits, budgets and the cache are those of the format", () => {
    const wf = workflow("limited", {
      input: z.object({ customer: z.string() }),
      limits: {
        model: { rate: 5, per: "minute", tokensPerMinute: 1000, breaker: { failureRate: 0.2, openFor: "1m" } },
      },
      budget: { usd: 5, key: (input) => text`all of ${input.customer}`, onLimit: "pause" },
      concurrency: { limit: 1, key: (input) => input.customer, onConflict: "cancel_old" },
    });
    const load = wf.node("load", { limit: "model", cache: true }, () => ({ id: "a" }));
    const read = wf.node(
      "read",
      {
        after: { load },
        limit: { rate: 2, breaker: false, cost: 3 },
        concurrency: { limit: 2, key: load.output.id, onConflict: "reject" },
        cache: { key: text`v2 ${load.output.id}`, ttl: "7d" },
        budget: { tokens: 50, estimate: { tokens: 5 }, onLimit: "fallback", fallback: "small" },
      },
      () => 1,
    );
    const each = wf.map("each", { over: [1], concurrency: 4, cache: { key: "{{ mine }}" } }, (n) => n);
    const built = wf.output({ read, each });
    expect(built.toJSON()).toMatchObject({
      limits: {
        model: { rate: 5, per: "minute", tokens_per_minute: 1000, breaker: { failure_rate: 0.2, open_seconds: 60 } },
      },
      budget: { usd: 5, key: "all of {{ input.customer }}", on_limit: "pause" },
      concurrency: { limit: 1, key: "{{ input.customer }}", on_conflict: "cancel_old" },
    });
    const nodes = nodesOf(built);
    expect(nodes["load"]).toMatchObject({ limit: "model", cache: true });
    expect(nodes["read"]).toMatchObject({
      limit: { rate: 2, breaker: false, cost: 3 },
      concurrency: { limit: 2, key: '{{ nodes["load"].output.id }}', on_conflict: "reject" },
      cache: { key: 'v2 {{ nodes["load"].output.id }}', ttl_seconds: 604_800 },
      budget: { tokens: 50, estimate: { tokens: 5 }, on_limit: "fallback", fallback: "small" },
    });
    expect(nodes["each"]).toMatchObject({ config: { max_concurrency: 4 }, cache: { key: '{{ "{{ mine }}" }}' } });
    expect(nodes["each"]).not.toHaveProperty("concurrency");
  });

  test("a limit that the workflow does not define is one of the server's", () => {
    const wf = workflow("foreign");
    const own = wf.node("own", { limit: "anthropic" }, () => 1);
    const definition = wf.output({ own }).toJSON();
    expect(definition).not.toHaveProperty("limits");
    expect(checkDefinition(definition, { handlers: ALL }).errors).toMatchObject([{ code: "CONFIG_INVALID" }]);
  });

  test("a function for a condition is a task before its node, and part of it", () => {
    const wf = workflow("w");
    const load = wf.node("load", () => 3);
    const flag = wf.node("flag", { after: { load }, when: ({ load }) => load > 2, queue: "q" }, () => "x");
    const built = wf.output({ flag });
    expect(nodesOf(built)).toMatchObject({
      "flag#when": {
        handler: "w/flag#when",
        dependencies: ["load"],
        queue: "q",
        "x-millrace-part-of": "flag",
      },
      flag: { dependencies: ["flag#when"], condition: 'nodes["flag#when"].output' },
    });
    expect([...built[PARTS].functions.keys()]).toEqual(["w/load", "w/flag", "w/flag#when"]);
    expect([...built[PARTS].queues]).toEqual(["q"]);
  });

  test("an expression for a condition needs no task", () => {
    const wf = workflow("w");
    const load = wf.node("load", () => 3);
    const flag = wf.node("flag", { after: { load }, when: expr`${load.output} > 2` }, () => "x");
    const built = wf.output({ flag });
    expect(nodesOf(built)["flag"]).toMatchObject({
      dependencies: ["load"],
      condition: 'nodes["load"].output > 2',
    });
    expect([...built[PARTS].functions.keys()]).toEqual(["w/load", "w/flag"]);
  });

  test("functions of one node come one after the other, the condition first", () => {
    const wf = workflow("w");
    const load = wf.node("load", () => 3);
    const ask = wf.approval("ask", { after: { load }, when: ({ load }) => load > 2, title: ({ load }) => `${load}?` });
    expect(nodesOf(wf.output({ ask }))).toMatchObject({
      "ask#when": { dependencies: ["load"] },
      "ask#title": { dependencies: ["ask#when"], condition: 'nodes["ask#when"].output' },
      ask: { dependencies: ["ask#title"], config: { title: '{{ nodes["ask#title"].output }}' } },
      "ask#rejected": { handler: "end", dependencies: ["ask"] },
    });
  });

  test("what comes after a failure or a route runs only if things went that way", () => {
    const wf = workflow("w");
    const pay = wf.node("pay", () => 1);
    const note = wf.node("note", { after: { pay, error: pay.failed } }, ({ error }) => error.code);
    const clean = wf.node("clean", { after: { pay: pay.done } }, () => null);
    const router = wf.router("router", { after: { pay }, routes: { small: expr`${pay.output} < 5` }, else: "large" });
    const small = wf.node("small", { after: { r: router.routes.small } }, () => "s");
    const large = wf.node("large", { after: { r: router.routes.large }, when: () => true }, () => "l");
    expect(
      nodesOf(wf.output({ note: note.optional, clean, small: small.optional, large: large.optional })),
    ).toMatchObject({
      note: { dependencies: ["pay", { id: "pay", on: "failed" }], join: "all_success" },
      clean: { dependencies: [{ id: "pay", on: "done" }] },
      router: {
        config: {
          mode: "exclusive",
          routes: [{ when: 'nodes["pay"].output < 5', to: ["small"] }],
          else: ["large#when"],
        },
      },
      small: { dependencies: ["router"], join: "all_success" },
      "large#when": { dependencies: ["router"], join: "all_success" },
      large: { dependencies: ["large#when", "router"], join: "all_success" },
    });
  });

  test("a map, a sub-workflow and a handler by name", () => {
    const one = workflow("one", { input: z.number() });
    const child = one.output({ n: one.node("n", ({ input }) => input) });
    const wf = workflow("w");
    const list = wf.node("list", () => [1, 2]);
    const each = wf.map("each", { after: { list }, over: list.output, concurrency: 2, retry: 1 }, (n) => n);
    const runs = wf.map("runs", { after: { list }, over: ({ list }) => list, toleratedFailures: "10%" }, child);
    const sub = wf.sub("sub", child, { after: { list }, input: list.output[0]! });
    const call = wf.task("call", {
      after: { list },
      handler: "http",
      config: { url: text`http://x/${list.output[0]!}`, json: { all: list.output, skipped: undefined } },
      output: type<{ status: number }>(),
      repeat: { until: (self) => expr`${self.status} == 200`, every: "1s", max: 3 },
    });
    const version = child[PARTS].hash;
    expect(nodesOf(wf.output({ each, runs, sub, call }))).toMatchObject({
      each: {
        handler: "map",
        config: {
          items: '{{ nodes["list"].output }}',
          max_concurrency: 2,
          handler: "w/each",
          config: { item: "{{ item }}", index: "{{ index }}" },
          retry: { max_attempts: 1 },
        },
      },
      runs: {
        config: {
          items: '{{ nodes["runs#over"].output }}',
          tolerated_failures: "10%",
          handler: "workflow",
          config: { name: "one", version, input: "{{ item }}" },
        },
      },
      sub: { handler: "workflow", config: { name: "one", version, input: '{{ nodes["list"].output[0] }}' } },
      call: {
        handler: "http",
        config: { url: 'http://x/{{ nodes["list"].output[0] }}', json: { all: '{{ nodes["list"].output }}' } },
        repeat: { until: 'nodes["call"].output.status == 200', every_seconds: 1, max: 3 },
      },
    });
  });

  test("waits", () => {
    const wf = workflow("w");
    const start = wf.node("start", () => ({ ms: 5, at: "2030-01-01T00:00:00Z" }));
    const after = { start };
    wf.sleep("a", { after, for: "90s" });
    wf.sleep("b", { after, for: start.output.ms });
    wf.sleep("c", { after, for: ({ start }) => start.ms });
    wf.sleep("d", { after, until: new Date("2030-01-01T00:00:00Z") });
    wf.sleep("e", { after, until: start.output.at });
    wf.signal("paid", { after, timeout: "1d" });
    wf.signal("f", { after, signal: "other", data: jsonSchema<number>({ type: "number" }) });
    const configs = Object.entries(nodesOf(wf.output({}))).map(([id, { config }]) => [id, config]);
    expect(Object.fromEntries(configs)).toMatchObject({
      a: { seconds: 90 },
      b: { seconds: '{{ (nodes["start"].output.ms) * 0.001 }}' },
      c: { seconds: '{{ nodes["c#for"].output }}' },
      d: { until: "2030-01-01T00:00:00.000Z" },
      e: { until: '{{ nodes["start"].output.at }}' },
      paid: { signal: "paid", timeout_seconds: 86_400 },
      f: { signal: "other" },
    });
  });

  test("the same code gives the same definition, and a child's change shows in its parent", () => {
    const build = (add: number) => {
      const one = workflow("one");
      const child = one.output({ n: one.node("n", { timeout: add }, () => 1) });
      const wf = workflow("w");
      return wf.output({ sub: wf.sub("sub", child, { input: {} }) });
    };
    expect(build(1_000)[PARTS].hash).toBe(build(1_000)[PARTS].hash);
    expect(build(1_000)[PARTS].hash).not.toBe(build(2_000)[PARTS].hash);
  });

  test("every built-in node can be written, and what is written gives no warning", () => {
    const wf = workflow("w", { input: z.object({ n: z.number() }) });
    const start = wf.node("start", () => ({ n: 1 }));
    const skipped = wf.node("skipped", { after: { start }, when: ({ start }) => start.n > 1 }, () => "s");
    const risky = wf.node("risky", { after: { start, skipped }, onError: "continue" }, () => 1);
    const any = wf.node("any", { after: { skipped, risky }, join: "one_success" }, () => 1);
    const all = wf.node("all", { after: { skipped, risky }, join: "all_success" }, () => 1);
    const done = wf.node("done", { after: { skipped: skipped.done, error: start.failed }, join: "all_done" }, () => 1);
    const twice = wf.node("twice", { after: { skipped, all }, join: "quorum:2" }, () => 1);
    const review = wf.review("review", { after: { start }, title: "?", form: z.object({ ok: z.boolean() }) });
    const end = wf.end("end", { after: { review }, when: expr`${review.output.decision} == "reject"` });
    wf.fail("fail", { after: { start, review: review.done }, when: ({ start }) => start.n < 0, message: "negative" });
    const unsure = { skipped: skipped.optional, risky: risky.optional, any: any.done, all: all.optional };
    const built = wf.output({ ...unsure, done, twice: twice.optional, review: review.optional }, end);
    const { errors, warnings } = checkDefinition(built.toJSON(), { handlers: ALL });
    expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
    const written = new Set(Object.values(nodesOf(built)).map((node) => node["handler"] as string));
    const others = ["input", "http", "llm", "transform", "delay", "router", "map", "workflow", "wait"];
    // Those for documents have no method of their own: `task` names them like any other handler.
    const documents = ["file.read", "pdf.text", "ocr", "llm.extract", "validate", "merge", "output.json"];
    const rest = [...others, ...documents, "output.parquet", "notify", "audit"];
    expect([...BUILTIN_HANDLERS.keys()].filter((name) => !written.has(name)).toSorted()).toEqual(rest.toSorted());
  });
});

describe("what cannot run is refused when it is written", () => {
  const start = () => {
    const wf = workflow("w");
    return { wf, load: wf.node("load", () => 1) };
  };

  test.each<[string, () => unknown, RegExp]>([
    ["a bad id", () => start().wf.node("a b", () => 1), /"a b" cannot be the id of a node/],
    ["an id that parts use", () => start().wf.node("a#when", () => 1), /"a#when" cannot be the id of a node/],
    ["an id twice", () => start().wf.node("load", () => 1), /"load" is already the id of another node/],
    ["no function", () => start().wf.node("a", {}, undefined as never), /"a" does not fit: it has no function to run/],
    [
      "a dependency that is no handle",
      () => start().wf.node("a", { after: { load: "load" as never } }, () => 1),
      /"a" comes after "load", which is no handle of a node/,
    ],
    [
      "a handle of another workflow",
      () => start().wf.node("a", { after: { load: start().load } }, () => 1),
      /the handle of "load" belongs to another workflow/,
    ],
    [
      "an expression over another workflow",
      () => start().wf.node("a", { when: expr`${start().load.output} > 1` }, () => 1),
      /the handle of "load" belongs to another workflow/,
    ],
    [
      "a name that every function is given",
      () => {
        const { wf, load } = start();
        return wf.node("a", { after: { ctx: load } as never }, () => 1);
      },
      /under the name "ctx", which every function is given/,
    ],
    ["a bad duration", () => start().wf.node("a", { timeout: "soon" as never }, () => 1), /"timeout" must be a number/],
    ["neither a time nor a date", () => start().wf.sleep("a", {}), /it must have one of "for" and "until"/],
    [
      "no workflow to call",
      () => start().wf.sub("a", {} as never, { input: 1 }),
      /something that `wf.output` did not make/,
    ],
    [
      "two routes of one router",
      () => {
        const { wf, load } = start();
        const { routes } = wf.router("r", { after: { load }, routes: { a: () => true, b: () => true } });
        return wf.node("a", { after: { a: routes.a, b: routes.b } }, () => 1);
      },
      /two routes of "r"; make one route of them/,
    ],
    [
      "a route that leads nowhere",
      () => {
        const { wf, load } = start();
        wf.router("r", { after: { load }, routes: { a: () => true } });
        return wf.output({ load });
      },
      /nothing comes after its route "a"/,
    ],
    [
      "an end that the result does not know of",
      () => {
        const { wf, load } = start();
        wf.end("early", { after: { load }, when: () => true });
        return wf.output({ load });
      },
      /"output" has to name it: wf.output\(\{ … \}, early\)/,
    ],
    [
      "a node after the last word",
      () => {
        const { wf, load } = start();
        wf.output({ load });
        return wf.node("late", () => 1);
      },
      /The workflow "w" is complete/,
    ],
    [
      "a handler's name that is too long",
      () => workflow("w".repeat(100)).node("n".repeat(60), () => 1),
      /has 161 characters/,
    ],
  ])("%s", (_, write, message) => {
    expect(write).toThrow(message);
  });

  test("everything else is told at once, by node, with a hint", () => {
    const wf = workflow("w/x");
    const load = wf.node("load", () => 1);
    const later = wf.node("later", { after: { load } }, () => 1);
    wf.node("early", { when: expr`${later.output} > 1`, retry: 1_000 }, () => 1);
    expect(() => wf.output({ load })).toThrow(
      expect.objectContaining({
        name: "MillraceError",
        code: "INVALID_DEFINITION",
        message: expect.stringMatching(
          /The workflow "w\/x" has 3 problems\.[\s\S]*INVALID_NAME[\s\S]*node "early" at retry[\s\S]*"early" refers to "later", which does not come before it[\s\S]*hint: /,
        ) as string,
      }),
    );
  });
});
