import { describe, expect, test } from "vitest";
import { typeCost } from "../../scripts/measure-types.ts";
import { compile, type Compiled } from "./compile.ts";

/** What every case begins with: a workflow with a plain node, one that may be skipped, and one that goes on after a failure. */
const BEGINNING = `
import { z } from "zod";
import { testRun } from "millrace/testing";
import { connect, expr, text, type, workflow, type Node, type Outcome, type Result, type Workflow } from "millrace";
const wf = workflow("w", { input: z.object({ path: z.string(), least: z.number().default(1) }) });
const load = wf.node("load", async ({ input }) => ({ pages: [input.path], bytes: 3 }));
const flag = wf.node("flag", { after: { load }, when: ({ load }) => load.bytes < 5 }, () => ({ reason: "small" }));
const risky = wf.node("risky", { after: { load }, onError: "continue" }, ({ load }) => load.bytes);
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<A, B>(same: Same<A, B>): void {}
`;

/** Each must not compile, for this very reason. */
const WRONG: Readonly<Record<string, readonly [code: string, error: RegExp]>> = {
  "a dependency that does not exist": [
    `wf.node("a", { after: { laod } }, () => 1);`,
    /TS18004: No value exists in scope for the shorthand property 'laod'/,
  ],
  "an argument that is no dependency": [
    `wf.node("a", { after: { load } }, ({ laod }) => laod);`,
    /TS2339: Property 'laod' does not exist/,
  ],
  "a dependency by name": [
    `wf.node("a", { after: { load: "load" } }, () => 1);`,
    /TS2322: Type 'string' is not assignable/,
  ],
  "a field that an output does not have": [
    `wf.node("a", { after: { load } }, ({ load }) => load.size);`,
    /TS2339: Property 'size' does not exist/,
  ],
  "a node that may be skipped, used unguarded": [
    `wf.node("a", { after: { flag } }, ({ flag }) => flag.reason);`,
    /TS18048: 'flag' is possibly 'undefined'/,
  ],
  "a node after one that may be skipped, used unguarded": [
    `const b = wf.node("b", { after: { flag } }, () => "b"); wf.node("a", { after: { b } }, ({ b }) => b.length);`,
    /TS18048: 'b' is possibly 'undefined'/,
  ],
  "a node that goes on after a failure, used as if it had not": [
    `wf.node("a", { after: { risky } }, ({ risky }) => risky.toFixed());`,
    /TS2339: Property 'toFixed' does not exist/,
  ],
  "one of several that need not all have ended": [
    `wf.node("a", { after: { load }, join: "one_success" }, ({ load }) => load.bytes);`,
    /TS18048: 'load' is possibly 'undefined'/,
  ],
  "a circle": [
    `const a = wf.node("a", { after: { b } }, () => 1); const b = wf.node("b", { after: { a } }, () => 1);`,
    /TS2448: Block-scoped variable 'b' used before its declaration/,
  ],
  "a bad duration": [
    `wf.node("a", { after: { load }, timeout: "5 parsecs" }, () => 1);`,
    /TS2322: Type '"5 parsecs"' is not assignable to type 'Duration/,
  ],
  "an unknown option": [
    `wf.node("a", { after: { load }, retries: 3 }, () => 1);`,
    /TS2353: Object literal may only specify known properties, and 'retries'/,
  ],
  "an unknown join": [
    `wf.node("a", { after: { load }, join: "some" }, () => 1);`,
    /TS2322: Type '"some"' is not assignable/,
  ],
  "a condition that is no boolean": [
    `wf.node("a", { after: { load }, when: ({ load }) => load.bytes }, () => 1);`,
    /Type 'number' is not assignable to type 'boolean/,
  ],
  "a name that every function has": [
    `wf.node("a", { after: { input: load } }, () => 1);`,
    /TS2322: Type '\{ input: Node<.*' is not assignable to type/,
  ],
  "a wrong use of the input": [
    `wf.node("a", ({ input }) => input.least.length);`,
    /TS2339: Property 'length' does not exist/,
  ],
  "a place that an output does not have": [`load.output.size;`, /TS2339: Property 'size' does not exist/],
  "a place within what may be missing": [`flag.output.reason;`, /TS2339: Property 'reason' does not exist/],
  "an item of another type": [
    `wf.map("a", { after: { load }, over: ({ load }) => load.pages }, (page) => page.toFixed());`,
    /TS2551: Property 'toFixed' does not exist on type 'string'|TS2339: Property 'toFixed' does not exist on type 'string'/,
  ],
  "no list to map": [
    `wf.map("a", { after: { load }, over: ({ load }) => load.bytes }, (page) => page);`,
    /Type 'number' is not assignable to type 'Promise<readonly unknown\[\]>/,
  ],
  "items that the workflow for them does not take": [
    `const sub = workflow("s", { input: z.number() }).output({}); wf.map("a", { over: load.output.pages }, sub);`,
    /TS2769: No overload matches|TS2322/,
  ],
  "an input that a sub-workflow does not take": [
    `const sub = workflow("s", { input: z.object({ n: z.number() }) }).output({}); wf.sub("a", sub, { input: { n: "1" } });`,
    /TS2322: Type 'string' is not assignable/,
  ],
  "a sub-workflow without its input": [
    `const sub = workflow("s", { input: z.object({ n: z.number() }) }).output({}); wf.sub("a", sub, {});`,
    /TS2741: Property 'input' is missing/,
  ],
  "a field that a form does not have": [
    `const a = wf.approval("a", { title: "?", form: z.object({ ok: z.boolean() }) }); wf.node("b", { after: { a } }, ({ a }) => a.yes);`,
    /TS2339: Property 'yes' does not exist/,
  ],
  "a route that a router does not have": [
    `const r = wf.router("r", { after: { load }, routes: { small: ({ load }) => load.bytes < 5 } }); r.routes.large;`,
    /TS2339: Property 'large' does not exist/,
  ],
  "a run with a wrong input": [
    `connect().run(wf.output({ load }), { path: 1 });`,
    /TS2322: Type 'number' is not assignable to type 'string'/,
  ],
  "a run with an input that is missing": [
    `connect().run(wf.output({ load }));`,
    /TS2345|TS2554: Expected 2-3 arguments, but got 1/,
  ],
  "a run with a field too many": [
    `connect().start(wf.output({ load }), { path: "a", paht: "b" });`,
    /TS2353: Object literal may only specify known properties, and 'paht'/,
  ],
  "a test with a wrong input": [
    `testRun(wf.output({ load }), { least: 1 });`,
    /TS2345: .*Property 'path' is missing|TS2741: Property 'path' is missing/,
  ],
  "a wrong use of the result": [
    `connect().run(wf.output({ load }), { path: "a" }).then(({ load }) => load.size);`,
    /TS2339: Property 'size' does not exist/,
  ],
  "a result that a workflow does not give": [
    `const w: Workflow<{ path: string }, { other: number }> = wf.output({ load });`,
    /TS2322: Type 'Workflow</,
  ],
  "a cache with a bad time": [
    `wf.node("a", { cache: { ttl: "a week" } }, () => 1);`,
    /TS2322: Type '"a week"' is not assignable to type 'Duration/,
  ],
  "a cache with an unknown field": [
    `wf.task("a", { handler: "http", cache: { ttl_seconds: 5 } });`,
    /TS2561: Object literal may only specify known properties, but 'ttl_seconds'|TS2353: .*'ttl_seconds'/,
  ],
  "a key of a cache that is a function": [
    `wf.node("a", { after: { load }, cache: { key: ({ load }) => load.bytes } }, () => 1);`,
    /TS2322: Type '\(.*\) => any' is not assignable to type|is not assignable to type 'string \| Expr<unknown>/,
  ],
  "a cache of what repeats": [
    `wf.repeat("a", { cache: true }, () => 1, () => true);`,
    /TS2353: Object literal may only specify known properties, and 'cache'/,
  ],
  "a cache of what the engine does": [
    `wf.sleep("a", { for: "1s", cache: true });`,
    /TS2353: Object literal may only specify known properties, and 'cache'/,
  ],
  "a number of places that is not said": [
    `wf.node("a", { concurrency: { key: wf.input.path } }, () => 1);`,
    /TS2741: Property 'limit' is missing/,
  ],
  "an older task that is called off for a node": [
    `wf.node("a", { concurrency: { limit: 1, onConflict: "cancel_old" } }, () => 1);`,
    /TS2322: Type '"cancel_old"' is not assignable/,
  ],
  "a key of another input": [
    `workflow("x", { input: z.object({ customer: z.string() }), concurrency: { limit: 1, key: (input) => input.custmer } });`,
    /TS2551: Property 'custmer' does not exist|TS2339: Property 'custmer' does not exist/,
  ],
  "a key of an input that there is not": [
    `workflow("x", { concurrency: { limit: 1, key: (input) => input.customer } });`,
    /TS2339: Property 'customer' does not exist/,
  ],
  "a limit that has a name and is the node's own": [
    `wf.node("a", { limit: { name: "openai", rate: 5 } }, () => 1);`,
    /TS2322: Type '.*' is not assignable to type/,
  ],
  "a budget of something else": [
    `wf.node("a", { budget: { eur: 5 } }, () => 1);`,
    /TS2353: Object literal may only specify known properties, and 'eur'/,
  ],
  "a workflow that goes on after a failure everywhere": [
    `workflow("x", { onError: "continue" });`,
    /TS2769|TS2322: Type '"continue"' is not assignable/,
  ],
};

/** Each must compile, and mean this. */
const RIGHT: Readonly<Record<string, string>> = {
  "an output is what the function gives": `is<typeof load, Node<{ pages: string[]; bytes: number }>>(true);`,
  "nothing is stored as null": `const a = wf.node("a", () => {}); is<typeof a, Node<null>>(true);`,
  "a condition makes it undefined": `is<typeof flag, Node<{ reason: string } | undefined>>(true);`,
  "an expression is a condition too": `
    const a = wf.node("a", { after: { load }, when: expr\`\${load.output.bytes} < \${wf.input.least}\` }, () => 1);
    is<typeof a, Node<number | undefined>>(true);`,
  "all of several, one of which may be skipped": `
    const a = wf.node("a", { after: { flag, load } }, ({ flag, load }) => [flag?.reason, load.bytes] as const);
    is<typeof a, Node<readonly [string | undefined, number]>>(true);`,
  "a join that asks for all gives all": `
    const a = wf.node("a", { after: { flag, load }, join: "all_success" }, ({ flag }) => flag.reason);
    is<typeof a, Node<string | undefined>>(true);`,
  "what follows only what may be skipped may be skipped": `
    const a = wf.node("a", { after: { flag } }, () => 1); is<typeof a, Node<number | undefined>>(true);`,
  "after a failure there is an error": `
    const a = wf.node("a", { after: { error: load.failed } }, ({ error }) => error.code);
    is<typeof a, Node<string | undefined>>(true);`,
  "after an end there is an outcome": `
    const a = wf.node("a", { after: { load: load.done } }, ({ load }) => {
      is<typeof load, Outcome<{ pages: string[]; bytes: number }>>(true);
      return load.status === "COMPLETED" ? load.output.bytes : 0;
    });
    is<typeof a, Node<number>>(true);`,
  "an output may be asked for however its node ends": `
    const a = wf.node("a", { after: { load: load.optional } }, ({ load }) => load?.bytes ?? 0);
    is<typeof a, Node<number>>(true);
    wf.node("b", { after: { load: load.optional, flag }, join: "all_success" }, ({ load, flag }) => [load?.bytes, flag.reason]);
    const w = wf.output({ load: load.optional });
    is<typeof w, Workflow<{ path: string; least?: number | undefined },
      { readonly load: { pages: string[]; bytes: number } | null }>>(true);`,
  "a node that goes on gives a result": `
    wf.node("a", { after: { risky } }, ({ risky }) => { is<typeof risky, Result<number>>(true); });`,
  "a map gives a list": `
    const a = wf.map("a", { after: { load }, over: load.output.pages }, (page, { index }) => page.length + index);
    is<typeof a, Node<readonly number[]>>(true);
    const b = wf.map("b", { over: [1, 2], toleratedFailures: "10%" }, (n) => n);
    is<typeof b, Node<readonly (number | null)[]>>(true);`,
  "a sub-workflow gives its result": `
    const one = workflow("one", { input: z.number() }); const n = one.node("n", ({ input }) => input + 1);
    const sub = one.output({ n });
    const a = wf.sub("a", sub, { after: { load }, input: ({ load }) => load.bytes });
    is<typeof a, Node<{ readonly n: number }>>(true);
    const b = wf.map("b", { over: [1, 2] }, sub);
    is<typeof b, Node<readonly { readonly n: number }[]>>(true);
    wf.sub("c", sub, { after: { load }, input: load.output.bytes });`,
  "a person gives what the form asks for": `
    const form = z.object({ ok: z.boolean(), on: z.coerce.date() });
    const a = wf.approval("a", { after: { load }, title: ({ load }) => \`\${load.bytes}?\`, form });
    wf.node("b", { after: { a } }, ({ a }) => a.on.getTime());
    const c = wf.review("c", { title: text\`\${load.output.bytes}?\`, form });
    wf.node("d", { after: { c } }, ({ c }) => (c.decision === "approve" ? c.data.ok : c.comment));`,
  "a person is shown what is proposed": `
    const form = z.object({ pages: z.array(z.string()), by: z.string() });
    const a = wf.review("a", { after: { load }, title: "?", form, fourEyes: true, assignees: ({ load }) => load.pages,
      values: { pages: load.output.pages }, confidence: { pages: 0.5 }, source: expr\`load.where\`, onExpire: "reject" });
    const b = wf.approval("b", { after: { load }, title: "?", form, values: ({ load }) => ({ pages: load.pages }) });
    wf.node("c", { after: { a } }, ({ a }) => [a.locks?.join(), a.first?.by]);`,
  "a handler by name gives what its schema says": `
    const a = wf.task("a", { handler: "http", config: { url: text\`http://x/\${wf.input.path}\` }, output: type<{ status: number }>() });
    wf.node("b", { after: { a } }, ({ a }) => a.status.toFixed());
    wf.task("c", { handler: "http", output: type<{ status: number }>(), repeat: { until: (self) => expr\`\${self.status} == 200\` } });`,
  "a repeat is judged by its own output": `
    const a = wf.repeat("a", { after: { load }, every: "1s" }, () => ({ ready: true }), (output) => output.ready);
    is<typeof a, Node<{ ready: boolean }>>(true);`,
  "a route may not be taken": `
    const r = wf.router("r", { after: { load }, routes: { small: ({ load }) => load.bytes < 5 }, else: "large" });
    const a = wf.node("a", { after: { r: r.routes.large, load } }, ({ load }) => load.bytes);
    is<typeof a, Node<number | undefined>>(true);`,
  "work may be limited, counted and kept by what it is about": `
    const x = workflow("x", {
      input: z.object({ customer: z.string(), day: z.coerce.date() }),
      limits: { model: { rate: 5, per: "minute", tokensPerMinute: 1000, breaker: { openFor: "1m" } } },
      concurrency: { limit: 1, key: (input) => input.customer, onConflict: "cancel_old" },
      budget: { usd: 5, key: (input) => text\`\${input.customer} \${input.day}\`, onLimit: "pause" },
    });
    const a = x.node("a", { limit: "model", cache: true, concurrency: { limit: 2, key: x.input.customer } }, () => 1);
    is<typeof a, Node<number>>(true);
    const b = x.task("b", { after: { a }, handler: "llm", limit: { name: "model", tokens: 50 }, cache: { key: a.output, ttl: "7d" },
      budget: { tokens: 100, onLimit: "fallback", fallback: "small" }, output: type<{ text: string }>() });
    x.map("c", { over: [1, 2], concurrency: 3, cache: { ttl: "1h" }, limit: { concurrency: 5, cost: 2 } }, (n) => n);
    x.repeat("d", { concurrency: { limit: 1, onConflict: "reject" } }, () => 1, (n) => n > 0);`,
  "an input may be left out where there is none, or a default": `
    const none = workflow("n").output({});
    connect().run(none); connect().start(none, {}, { idempotencyKey: "k" }); testRun(none, {}, { seed: 1 });
    connect().run(wf.output({ load }), { path: "a" }, { timeout: "1m" }).then(({ load }) => load.pages);`,
  "the result is made of what it names, missing is null": `
    const end = wf.end("end", { after: { load }, when: ({ load }) => load.bytes === 0, output: { nothing: true } });
    const w = wf.output({ load, flag }, end);
    is<typeof w, Workflow<{ path: string; least?: number | undefined },
      { readonly load: { pages: string[]; bytes: number }; readonly flag: { reason: string } | null } | { nothing: boolean }>>(true);`,
};

describe("types", () => {
  let compiled: Compiled | undefined;
  const files = Object.fromEntries([
    ...Object.values(WRONG).map(([code], i) => [`wrong-${i}.ts`, BEGINNING + code] as const),
    ...Object.values(RIGHT).map((code, i) => [`right-${i}.ts`, BEGINNING + code] as const),
  ]);
  const errorsOf = (file: string): readonly string[] => (compiled ??= compile(files)).errors.get(file)!;

  test.each(Object.entries(WRONG).map(([name, [, error]], i) => [name, i, error] as const))(
    "refuse %s",
    (_, i, error) => {
      const errors = errorsOf(`wrong-${i}.ts`);
      expect(errors.join("\n")).toMatch(error);
    },
  );

  test.each(Object.keys(RIGHT).map((name, i) => [name, i] as const))("say that %s", (_, i) => {
    expect(errorsOf(`right-${i}.ts`)).toEqual([]);
  });

  test("of a workflow with 1,000 nodes are checked at a cost that grows with the nodes alone", () => {
    const small = typeCost(200);
    const large = typeCost(1_000);
    expect(large.errors.get("large.ts")).toEqual([]);
    // Twice what the first sketch of handles took; a chained builder took a million for 400.
    expect(large.instantiations).toBeLessThan(2 * 132_887);
    expect(large.instantiations / small.instantiations).toBeLessThan(5.5);
  });
});
