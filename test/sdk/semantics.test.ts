import { describe, expect, test } from "vitest";
import { z } from "zod";
import { expr, HandlerError, jsonSchema, type, workflow, type Workflow } from "../../src/sdk/index.ts";
import { testRun } from "../../src/testing/index.ts";

/** The result of a run that waits for nothing. */
async function resultOf<In, Out>(wf: Workflow<In, Out>, input: unknown = {}): Promise<Out> {
  await using t = await testRun(wf as unknown as Workflow<unknown, Out>, input);
  if (t.output === undefined) throw t.error ?? new Error(`it is ${t.status}`);
  return t.output;
}

const boom = (): never => {
  throw new HandlerError("BOOM", "it went off");
};

describe("functions", () => {
  test("are given the input as its schema makes it", async () => {
    const wf = workflow("w", { input: z.object({ on: z.coerce.date(), least: z.number().default(3) }) });
    const year = wf.node("year", ({ input }) => [input.on.getUTCFullYear(), input.least]);
    const raw = wf.node("raw", { when: expr`${wf.input.on} == "2031-02-03"` }, () => "as it was sent");
    expect(await resultOf(wf.output({ year, raw }), { on: "2031-02-03" })).toEqual({
      year: [2031, 3],
      raw: "as it was sent",
    });
  });

  test("are given null where a node gave nothing, and undefined where it was skipped", async () => {
    const wf = workflow("w");
    const ran = wf.node("ran", { when: () => true }, () => {});
    const skipped = wf.node("skipped", { when: () => false }, () => {});
    const seen = wf.node("seen", { after: { ran, skipped }, join: "all_done" }, ({ ran, skipped }) => ({
      ran: ran === null,
      skipped: skipped === undefined,
    }));
    expect(await resultOf(wf.output({ seen, ran, skipped }))).toEqual({
      seen: { ran: true, skipped: true },
      ran: null,
      skipped: null,
    });
  });

  test("are given large values, which pass by reference", async () => {
    const wf = workflow("w");
    const large = wf.node("large", () => "x".repeat(900_000));
    const again = wf.node("again", { after: { large } }, ({ large }) => `${large}y`);
    const both = wf.node("both", { after: { large, again } }, ({ large, again }) => large.length + again.length);
    await using t = await testRun(wf.output({ both, again }));
    expect(t.output!.both).toBe(1_800_001);
    expect(t.output!.again).toHaveLength(900_001);
    expect(t.node("large").output).toHaveLength(900_000);
  });

  test("may say which errors are worth another attempt", async () => {
    const wf = workflow("w");
    const attempts: string[] = [];
    const never = wf.node("never", { retry: { attempts: 3, retryIf: () => false }, onError: "continue" }, ({ ctx }) => {
      attempts.push(`never ${ctx.attempt}`);
      throw new Error("no");
    });
    const always = wf.node(
      "always",
      { retry: { attempts: 2, backoff: 0, retryIf: (error) => error instanceof TypeError }, onError: "continue" },
      ({ ctx }) => {
        attempts.push(`always ${ctx.attempt}`);
        throw new TypeError("usually final");
      },
    );
    await using t = await testRun(wf.output({ never, always }));
    await t.advance("1s");
    expect(attempts.toSorted()).toEqual(["always 1", "always 2", "never 1"]);
    expect(t.output).toMatchObject({
      never: { status: "FAILED", error: { code: "HANDLER_ERROR", message: "no", retryable: false } },
      always: { status: "FAILED", error: { message: "usually final", retryable: true } },
    });
  });

  test("that are asked before a node fail as parts of it", async () => {
    const wf = workflow("w");
    const a = wf.node("a", { when: boom }, () => 1);
    await using t = await testRun(wf.output({ a }));
    expect(t.error).toMatchObject({ node: "a", part: "when", code: "BOOM" });
    expect(t.error!.message).toBe(
      `Workflow "w" ended FAILED at node "a" (when) in execution ${t.id}: BOOM: it went off`,
    );
  });

  test("that are asked before a node must give what is asked", async () => {
    const wf = workflow("w");
    const a = wf.node("a", { when: (() => "yes") as never }, () => 1);
    await using t = await testRun(wf.output({ a }));
    expect(t.error).toMatchObject({
      part: "when",
      message: expect.stringContaining("`when` must give true or false, not string") as string,
    });
  });
});

describe("failures", () => {
  test("are caught, and the run is well", async () => {
    const wf = workflow("w");
    const pay = wf.node("pay", { retry: 1 }, boom);
    const receipt = wf.node("receipt", { after: { pay } }, () => "paid");
    const note = wf.node("note", { after: { error: pay.failed } }, ({ error }) => error.code);
    const clean = wf.node("clean", { after: { pay: pay.done } }, ({ pay }) => pay.status);
    await using t = await testRun(wf.output({ note, clean }));
    expect(t.status).toBe("COMPLETED");
    expect(t.output).toEqual({ note: "BOOM", clean: "FAILED" });
    expect(t.node(receipt)).toMatchObject({ status: "SKIPPED", reason: "upstream_failed" });
  });

  test("that are caught leave out only what may be left out of the result", async () => {
    const build = (isBroken: boolean) => {
      const wf = workflow("w");
      const pay = wf.node("pay", { retry: 1 }, () => (isBroken ? boom() : 5));
      const receipt = wf.node("receipt", { after: { pay } }, ({ pay }) => `paid ${pay}`);
      const note = wf.node("note", { after: { error: pay.failed } }, ({ error }) => error.code);
      const last = wf.node("last", { after: { receipt: receipt.optional } }, ({ receipt }) => receipt ?? "none");
      return { wf, receipt, note, last };
    };
    const { wf, receipt, note } = build(true);
    expect(() => wf.output({ receipt, note })).toThrow(
      '"receipt" does not fit: it is part of the result, and is missing if "pay" fails and that is caught',
    );
    const parts = (isBroken: boolean) => {
      const { wf, receipt, note, last } = build(isBroken);
      return wf.output({ receipt: receipt.optional, outcome: receipt.done, note, last });
    };
    expect(await resultOf(parts(true))).toEqual({
      receipt: null,
      outcome: { status: "SKIPPED" },
      note: "BOOM",
      last: "none",
    });
    expect(await resultOf(parts(false))).toEqual({
      receipt: "paid 5",
      outcome: { status: "COMPLETED", output: "paid 5" },
      note: null,
      last: "paid 5",
    });
  });

  test("that do not happen are not caught", async () => {
    const wf = workflow("w");
    const pay = wf.node("pay", () => 1);
    const note = wf.node("note", { after: { error: pay.failed } }, ({ error }) => error.code);
    const clean = wf.node("clean", { after: { pay: pay.done } }, ({ pay }) => pay.status);
    expect(await resultOf(wf.output({ note, clean }))).toEqual({ note: null, clean: "COMPLETED" });
  });

  test("of a node that goes on leave a result, and a run that is PARTIAL", async () => {
    const wf = workflow("w");
    const risky = wf.node("risky", { retry: 1, onError: "continue" }, boom);
    const next = wf.node("next", { after: { risky } }, ({ risky }) => risky.status);
    await using t = await testRun(wf.output({ next }));
    expect([t.status, t.output, t.error]).toEqual(["PARTIAL", { next: "FAILED" }, undefined]);
  });

  test("of a branch leave no result if it is part of the result", async () => {
    const wf = workflow("w", { onError: "fail_branch" });
    const good = wf.node("good", () => 1);
    const bad = wf.node("bad", { retry: 1 }, boom);
    await using t = await testRun(wf.output({ good, bad }));
    expect([t.status, t.output]).toEqual(["PARTIAL", undefined]);
    expect(t.error).toMatchObject({ status: "PARTIAL", node: "bad", code: "BOOM" });
  });
});

test("a rerun asks again what is asked before a node", async () => {
  const wf = workflow("w");
  let isWanted = false;
  const start = wf.node("start", () => 1);
  const maybe = wf.node("maybe", { after: { start }, when: () => isWanted }, () => "ran");
  await using t = await testRun(wf.output({ start, maybe }));
  expect(t.output).toEqual({ start: 1, maybe: null });
  isWanted = true;
  await t.retry({ from: maybe });
  expect(t.output).toEqual({ start: 1, maybe: "ran" });
  expect(t.node(start).attempts).toBe(1);
});

test("braces in data are data, and in the config of a handler what they are in JSON", async () => {
  const wf = workflow("w", { input: z.object({ n: z.number() }) });
  const each = wf.map("each", { over: ["{{ input.n }}", "{{"] }, (text) => text);
  const task = wf.task("task", { handler: "transform", config: { value: "{{ input.n }}" } });
  const asked = wf.approval("asked", {
    title: "{{ no }}",
    expiresIn: "1h",
    form: z.string(),
    onExpire: { approveWith: "{{ x }}" },
  });
  await using t = await testRun(wf.output({ each, task, asked }), { n: 3 });
  await t.advance("1h");
  expect(t.output).toEqual({ each: ["{{ input.n }}", "{{"], task: 3, asked: "{{ x }}" });
});

describe("maps and sub-workflows", () => {
  test("give results in the order of the items, null where a failure is tolerated", async () => {
    const wf = workflow("w");
    const each = wf.map("each", { over: [3, 1, 2], toleratedFailures: 1, retry: 1 }, (n, { index }) => {
      if (n === 1) throw new HandlerError("ONE", "one");
      return [n, index];
    });
    const none = wf.map("none", { over: [] as number[] }, (n) => n);
    expect(await resultOf(wf.output({ each, none }))).toEqual({ each: [[3, 0], null, [2, 2]], none: [] });
  });

  test("pass what fails on, by name", async () => {
    const inner = workflow("inner");
    const child = inner.output({ n: inner.node("n", { retry: 1 }, boom) });
    const wf = workflow("w");
    const sub = wf.sub("sub", child, { input: {} });
    await using t = await testRun(wf.output({ sub }));
    expect(t.error).toMatchObject({ node: "sub", code: "CHILD_FAILED" });
  });

  test("nest", async () => {
    const a = workflow("a", { input: z.number() });
    const aOut = a.output({ n: a.node("n", ({ input }) => input + 1) });
    const b = workflow("b", { input: z.number() });
    const calls = b.sub("calls", aOut, { input: b.input });
    const bOut = b.output({ n: b.node("n", { after: { calls } }, ({ calls }) => calls.n * 10) });
    const c = workflow("c");
    const list = c.node("list", () => [1, 2, 3]);
    const each = c.map("each", { after: { list }, over: ({ list }) => list.filter((n) => n > 1) }, bOut);
    expect(await resultOf(c.output({ each }))).toEqual({ each: [{ n: 30 }, { n: 40 }] });
  });
});

describe("people and signals", () => {
  const form = z.object({ ok: z.boolean(), on: z.coerce.date() });

  test("give what the form asks for, and nothing else", async () => {
    const wf = workflow("w");
    const asked = wf.approval("asked", { title: () => "Sure?", form });
    const year = wf.node("year", { after: { asked } }, ({ asked }) => asked.on.getUTCFullYear());
    await using t = await testRun(wf.output({ year, asked }));
    await expect(t.approve(asked, { ok: "yes" })).rejects.toMatchObject({ code: "REVIEW_INVALID" });
    await expect(t.approve("other", {})).rejects.toMatchObject({ code: "NOT_FOUND" });
    await t.approve(asked, { ok: true, on: "2031-01-01" });
    expect(t.output).toEqual({ year: 2031, asked: { ok: true, on: "2031-01-01" } });
    await expect(t.approve(asked, { ok: true, on: "2031-01-01" })).rejects.toMatchObject({ code: "REVIEW_CLOSED" });
  });

  test("end the run by a rejection", async () => {
    const wf = workflow("w");
    const asked = wf.approval("asked", { title: "Sure?" });
    const next = wf.node("next", { after: { asked } }, () => 1);
    await using t = await testRun(wf.output({ next }));
    await t.reject(asked, { comment: "no" });
    expect(t.error).toMatchObject({ status: "FAILED", node: "asked", part: "rejected", code: "END_FAILED" });
    expect(t.error!.message).toContain("asked was rejected by local");
    expect(t.node(next).status).toBe("CANCELLED");
  });

  test("decide, and the run goes on either way", async () => {
    const wf = workflow("w");
    const asked = wf.review("asked", { title: "Which?", form: z.object({ n: z.number() }) });
    const next = wf.node("next", { after: { asked } }, ({ asked }) =>
      asked.decision === "approve" ? asked.data.n : asked.comment,
    );
    const built = wf.output({ next });
    await using yes = await testRun(built);
    await yes.approve(asked, { n: 4 });
    expect(yes.output).toEqual({ next: 4 });
    await using no = await testRun(built);
    await no.reject(asked, { data: { n: 0 }, comment: "none" });
    expect(no.output).toEqual({ next: "none" });
  });

  test("decide about what was proposed to them", async () => {
    const wf = workflow("w");
    const read = wf.node("read", () => ({ total: 3, sure: 0.4, who: "ann" }));
    const form = z.object({ total: z.number(), note: z.string().default("none") });
    const asked = wf.review("asked", {
      after: { read },
      title: "?",
      form,
      values: { total: read.output.total },
      confidence: ({ read }) => ({ total: read.sure }),
      source: expr`{"total": "page 1"}`,
      assignees: ({ read }) => [read.who],
      escalate: { after: "1h", assignees: ["eve"] },
    });
    const same = wf.approval("same", {
      after: { read },
      title: "?",
      form,
      values: ({ read }) => ({ total: read.total }),
    });
    const next = wf.node("next", { after: { asked, same } }, ({ asked, same }) => [asked.locks, asked.data, same]);
    const built = wf.output({ next });
    await using t = await testRun(built);
    await t.advance("2h");
    await t.approve(asked, { total: 4 });
    await t.approve(same);
    expect(t.output).toEqual({ next: [["total"], { total: 4, note: "none" }, { total: 3, note: "none" }] });
  });

  test("that do not come in time are decided for", async () => {
    const wf = workflow("w");
    const asked = wf.approval("asked", {
      title: "?",
      form: z.object({ n: z.number() }),
      expiresIn: "1h",
      onExpire: { approveWith: { n: 0 } },
    });
    const late = wf.approval("late", { title: "?", expiresIn: "1h", onError: "continue" });
    const next = wf.node("next", { after: { asked, late } }, ({ asked, late }) => [asked.n, late.status]);
    await using t = await testRun(wf.output({ next }));
    await t.advance("61m");
    expect(t.output).toEqual({ next: [0, "FAILED"] });
  });

  test("signals bring data, early or late, that is checked where it is used", async () => {
    const wf = workflow("w");
    const paid = wf.signal("paid", { data: z.object({ cents: z.number() }) });
    const later = wf.signal("later", {
      after: { paid },
      signal: "other",
      data: jsonSchema<number>({ type: "number" }),
    });
    const sum = wf.node("sum", { after: { paid, later } }, ({ paid, later }) => paid.cents + later);
    const built = wf.output({ sum });
    await using t = await testRun(built);
    await t.signal("other", 2);
    await t.signal(paid, { cents: 40 });
    expect(t.output).toEqual({ sum: 42 });
    await using bad = await testRun(built);
    await bad.signal(paid, { cents: "x" });
    await bad.signal("other", 1);
    expect(bad.error).toMatchObject({
      node: "sum",
      code: "INPUT_INVALID",
      message: expect.stringContaining('What "paid" gave does not fit its schema: cents: ') as string,
    });
  });
});

describe("time", () => {
  test("passes for as long as it is told", async () => {
    const wf = workflow("w", { input: z.object({ ms: z.number(), until: z.string() }) });
    const start = wf.node("start", ({ input }) => input);
    const after = { start };
    wf.sleep("fixed", { after, for: "10s" });
    wf.sleep("written", { after, for: wf.input.ms });
    wf.sleep("asked", { after, for: ({ start }) => `${start.ms / 1000}s` as const });
    wf.sleep("date", { after, until: wf.input.until });
    wf.sleep("asked-date", { after, until: ({ start }) => new Date(start.until) });
    await using t = await testRun(wf.output({}), { ms: 20_000, until: "2030-01-01T00:00:30Z" });
    const waiting = (): string[] =>
      ["fixed", "written", "asked", "date", "asked-date"].filter((id) => t.node(id).status === "WAITING");
    expect(waiting()).toEqual(["fixed", "written", "asked", "date", "asked-date"]);
    await t.advance("10s");
    expect(waiting()).toEqual(["written", "asked", "date", "asked-date"]);
    await t.advance("10s");
    expect(waiting()).toEqual(["date", "asked-date"]);
    await t.advance("10s");
    expect(t.status).toBe("COMPLETED");
  });

  test("passes between the rounds of a repeat", async () => {
    const wf = workflow("w");
    let round = 0;
    const poll = wf.repeat(
      "poll",
      { every: "30s", max: 5 },
      () => ({ round: ++round }),
      ({ round }) => round === 3,
    );
    const next = wf.node("next", { after: { poll } }, ({ poll }) => poll.round);
    await using t = await testRun(wf.output({ next, poll }));
    expect(round).toBe(1);
    await t.advance("1m");
    expect(t.output).toEqual({ next: 3, poll: { round: 3 } });
  });

  test("runs out for a repeat, and for a handler by name that is repeated", async () => {
    const wf = workflow("w", { onError: "fail_branch" });
    const poll = wf.repeat(
      "poll",
      { every: 0, max: 2 },
      () => 1,
      () => false,
    );
    const task = wf.task("task", {
      handler: "job.status",
      output: type<{ state: string }>(),
      repeat: { until: (self) => expr`${self.state} == "done"`, every: "1s", max: 2 },
    });
    const states = ["queued", "done"];
    const handlers = { "job.status": () => ({ state: states.shift()! }) };
    await using t = await testRun(wf.output({ poll, task }), {}, { handlers });
    await t.advance("1m");
    expect(t.error).toMatchObject({ node: "poll", code: "REPEAT_EXHAUSTED" });
    expect(t.node(task).output).toEqual({ state: "done" });
  });
});

describe("ways", () => {
  const build = (mode: "exclusive" | "inclusive") => {
    const wf = workflow("w", { input: z.object({ n: z.number() }) });
    const router = wf.router("router", {
      mode,
      routes: {
        small: ({ input }) => input.n < 10,
        even: ({ input }) => {
          if (mode === "exclusive" && input.n < 10) throw new Error("asked after one that fits");
          return input.n % 2 === 0;
        },
        huge: expr`${wf.input.n} > 1000`,
      },
      else: "other",
    });
    const { small, even, huge, other } = router.routes;
    const way = (name: string, r: typeof small) => wf.node(name, { after: { r }, retry: 1 }, () => name);
    const ways = {
      small: way("small", small),
      even: way("even", even),
      huge: way("huge", huge),
      other: way("other", other),
    };
    const last = wf.node("last", { after: ways, join: "all_done" }, (given) =>
      [given.small, given.even, given.huge, given.other].filter((one) => one !== undefined),
    );
    return wf.output({ last });
  };

  test.each([
    ["exclusive", 4, ["small"]],
    ["exclusive", 12, ["even"]],
    ["exclusive", 1001, ["huge"]],
    ["exclusive", 11, ["other"]],
    ["inclusive", 4, ["small", "even"]],
    ["inclusive", 2000, ["even", "huge"]],
    ["inclusive", 11, ["other"]],
  ] as const)("%s: %i goes by %j", async (mode, n, last) => {
    expect(await resultOf(build(mode), { n })).toEqual({ last });
  });

  test("end a run early, well or badly", async () => {
    const wf = workflow("w", { input: z.object({ n: z.number() }) });
    const n = wf.node("n", ({ input }) => input.n);
    const early = wf.end("early", { after: { n }, when: ({ n }) => n === 0, output: ({ n }) => ({ nothing: n }) });
    wf.fail("negative", { after: { n }, when: expr`${n.output} < 0`, message: "negative" });
    const wait = wf.sleep("wait", { after: { n }, for: "1s" });
    const last = wf.node("last", { after: { n, wait } }, ({ n }) => n);
    const built = wf.output({ last }, early);
    await using normal = await testRun(built, { n: 1 });
    await normal.advance("1s");
    expect(normal.output).toEqual({ last: 1 });
    await using ended = await testRun(built, { n: 0 });
    expect([ended.status, ended.output]).toEqual(["COMPLETED", { nothing: 0 }]);
    await using failed = await testRun(built, { n: -1 });
    expect(failed.error).toMatchObject({
      node: "negative",
      code: "END_FAILED",
      message: expect.stringContaining("negative") as string,
    });
  });
});
