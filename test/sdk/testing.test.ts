import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { HandlerError, text, type, workflow } from "../../src/sdk/index.ts";
import { testRun } from "../../src/testing/index.ts";
import { invoice } from "./invoice.ts";

describe("a run under test", () => {
  test("goes on as far as it can, through backoff, crash and approval", async () => {
    await using t = await testRun(
      invoice,
      { path: "x", minConfidence: 0.99 },
      { mocks: { load: () => ({ pages: ["p1"], bytes: 1 }) }, failOnce: ["merge"], seed: 7 },
    );
    expect(t.status).toBe("RUNNING");
    expect(t.node("merge")).toMatchObject({ status: "WAITING", reason: "retry", attempts: 1 });
    await t.advance("1s");
    expect(t.node("merge")).toMatchObject({ status: "COMPLETED", attempts: 2 });
    await t.crash();
    expect(t.node("approve")).toMatchObject({ status: "WAITING", reason: "review" });
    await t.approve("approve", { ok: true });
    expect(t.status).toBe("COMPLETED");
    expect(t.output).toEqual({ done: { text: "P1", flagged: true, ok: true } });
    expect(t.error).toBeUndefined();
    expect(t.order).toEqual(["load", "meta", "ocr", "merge", "flag", "approve", "done"]);
    expect(t.node("ocr[0]")).toMatchObject({ status: "COMPLETED", output: { text: "P1", confidence: 0.9 } });
    expect(t.events.map(({ type }) => type)).toContain("execution_ended");
  });

  test("is the same whenever it runs", async () => {
    const history = async (): Promise<string> => {
      await using t = await testRun(invoice, { path: "x", minConfidence: 0.5 }, { failOnce: ["ocr[1]"] });
      await t.advance("5s");
      await t.crash();
      await t.approve("approve", { ok: false });
      return JSON.stringify(t.events);
    };
    expect(await history()).toBe(await history());
  });

  test("takes no time for two days to pass", async () => {
    await using t = await testRun(invoice, { path: "x", minConfidence: 0.5 });
    const startedAt = performance.now();
    await t.advance("47h");
    expect(t.node("approve").status).toBe("WAITING");
    await t.advance("1h");
    expect(performance.now() - startedAt).toBeLessThan(60_000);
    expect(t.status).toBe("FAILED");
    expect(t.error).toMatchObject({ name: "WorkflowFailed", node: "approve", code: "REVIEW_EXPIRED" });
    expect(t.output).toBeUndefined();
  });

  test("waits for functions that take real time, and lets no virtual time pass meanwhile", async () => {
    const wf = workflow("slow");
    const a = wf.node("a", { timeout: "20ms" }, async () => {
      await sleep(150);
      return "done";
    });
    await using t = await testRun(wf.output({ a }));
    expect(t.output).toEqual({ a: "done" });
  });

  test("lets time pass without a function that never ends, which then times out", async () => {
    const wf = workflow("deaf");
    const a = wf.node("a", { timeout: "30s", retry: 1 }, ({ ctx }) => {
      return new Promise((_, reject) => ctx.signal.addEventListener("abort", () => reject(new Error("stopped"))));
    });
    await using t = await testRun(wf.output({ a }), {}, { patience: 50 });
    expect(t.status).toBe("RUNNING");
    await t.advance("29s");
    expect(t.status).toBe("RUNNING");
    await t.advance("1s");
    expect(t.error).toMatchObject({ status: "FAILED", node: "a", code: "TIMEOUT" });
  });

  test("delivers again what was running when the process died, as the same attempt with the same key", async () => {
    const wf = workflow("crash");
    const calls: { attempt: number; key: string }[] = [];
    const a = wf.node("a", ({ ctx }) => {
      calls.push({ attempt: ctx.attempt, key: ctx.idempotencyKey });
      return calls.length === 1 ? new Promise<string>(() => {}) : "done";
    });
    await using t = await testRun(wf.output({ a }), {}, { patience: 20 });
    expect(t.status).toBe("RUNNING");
    await t.crash();
    expect(t.output).toEqual({ a: "done" });
    expect(calls).toHaveLength(2);
    expect(calls[1]).toEqual(calls[0]);
    expect(t.node("a").attempts).toBe(1);
  });

  test("does nothing any more in the process that died", async () => {
    const wf = workflow("zombie");
    const calls: string[] = [];
    let finish: (() => void) | undefined;
    const a = wf.node("a", () => {
      calls.push("a");
      return calls.length > 1 ? Promise.resolve(2) : new Promise<number>((resolve) => (finish = () => resolve(1)));
    });
    const b = wf.node("b", { after: { a } }, ({ a }) => {
      calls.push(`b after ${a}`);
      return a;
    });
    await using t = await testRun(wf.output({ b }), {}, { patience: 20 });
    await t.crash();
    finish!();
    await sleep(20);
    await t.advance("1s");
    expect(calls).toEqual(["a", "a", "b after 2"]);
    expect(t.output).toEqual({ b: 2 });
  });

  test("can be cancelled, paused, resumed and retried", async () => {
    const wf = workflow("operated");
    let isBroken = true;
    const wait = wf.sleep("wait", { for: "1h" });
    const a = wf.node("a", { after: { wait }, retry: 1 }, () => {
      if (isBroken) throw new HandlerError("BROKEN", "still broken");
      return 1;
    });
    const built = wf.output({ a });
    await using t = await testRun(built);
    await t.pause();
    await t.advance("2h");
    expect([t.status, t.node("a").status]).toEqual(["PAUSED", "PENDING"]);
    await t.resume();
    expect(t.error).toMatchObject({
      status: "FAILED",
      node: "a",
      code: "BROKEN",
      message: expect.stringContaining("still broken") as string,
    });
    isBroken = false;
    await t.retry();
    expect(t.output).toEqual({ a: 1 });
    await t.retry({ from: a });
    expect(t.node(a).status).toBe("COMPLETED");

    await using other = await testRun(built);
    await other.cancel();
    expect(other.status).toBe("CANCELLED");
    expect(other.error).toMatchObject({ status: "CANCELLED", node: undefined });
  });

  test("has what a function threw as the cause of its error", async () => {
    const wf = workflow("throwing");
    const thrown = new TypeError("no", { cause: new Error("because") });
    const a = wf.node("a", (): string => {
      throw thrown;
    });
    await using t = await testRun(wf.output({ a }));
    expect(t.error?.cause).toBe(thrown);
    expect(t.logs).toEqual([]);
    const late = workflow("late");
    const b = late.node("b", { retry: 2, timeout: "5s" }, ({ ctx }): Promise<string> => {
      if (ctx.attempt === 1) throw new Error("the first time");
      return new Promise(() => {});
    });
    await using other = await testRun(late.output({ b }), {}, { patience: 1 });
    await other.advance("2h");
    expect(other.error).toMatchObject({ code: "TIMEOUT" });
    expect(other.error?.cause).toBeUndefined();
  });

  test("keeps what functions log", async () => {
    const wf = workflow("logs");
    const a = wf.node("a", ({ ctx }) => {
      ctx.log("hello", { n: 1 });
      ctx.progress(1, 2);
    });
    await using t = await testRun(wf.output({ a }));
    expect(t.logs).toEqual([
      { node: "a", attempt: 1, message: "hello", fields: { n: 1 } },
      { node: "a", attempt: 1, message: "progress", fields: { done: 1, total: 2 } },
    ]);
  });
});

describe("stand-ins", () => {
  const inner = workflow("inner", { input: z.object({ n: z.number() }) });
  const child = inner.output({ twice: inner.node("twice", ({ input }) => input.n * 2) });

  const outer = workflow("outer", { input: z.object({ host: z.string() }) });
  const fetched = outer.task("fetch", {
    handler: "http",
    config: { url: text`https://${outer.input.host}/n` },
    output: type<{ body: { n: number } }>(),
  });
  const one = outer.sub("one", child, { after: { fetched }, input: { n: fetched.output.body.n } });
  const many = outer.map("many", { after: { fetched }, over: [{ n: 1 }, { n: 2 }] }, child);
  const sum = outer.node("sum", { after: { one, many } }, ({ one, many }) =>
    many.reduce((sum, { twice }) => sum + twice, one.twice),
  );
  const built = outer.output({ sum });

  test("take the place of a handler by name, given its config", async () => {
    const urls: string[] = [];
    const mocks = {
      fetch: ({ url }: { url: string }) => {
        urls.push(url);
        return { body: { n: 5 } };
      },
    };
    await using t = await testRun(built, { host: "h" }, { mocks });
    expect(t.output).toEqual({ sum: 16 });
    expect(urls).toEqual(["https://h/n"]);
  });

  test("take the place of a sub-workflow, given its input, once or for each item", async () => {
    const mocks = {
      fetch: () => ({ body: { n: 5 } }),
      one: ({ n }: { n: number }) => ({ twice: n * 100 }),
      many: ({ n }: { n: number }) => ({ twice: n * 10 }),
    };
    await using t = await testRun(built, { host: "h" }, { mocks });
    expect(t.output).toEqual({ sum: 530 });
  });

  test("take the place of a function of a sub-workflow", async () => {
    const mocks = { fetch: () => ({ body: { n: 5 } }), "inner/twice": () => 1 };
    await using t = await testRun(built, { host: "h" }, { mocks });
    expect(t.output).toEqual({ sum: 3 });
  });

  test("take the place of a handler, for all nodes that name it", async () => {
    const handlers = { http: async () => ({ body: { n: 1 } }) };
    await using t = await testRun(built, { host: "h" }, { handlers });
    expect(t.output).toEqual({ sum: 8 });
  });

  test("are missed where a test would call a server", async () => {
    await using t = await testRun(built, { host: "h" });
    expect(t.error).toMatchObject({ node: "fetch", code: "NOT_MOCKED" });
    expect(t.error!.message).toContain('add mocks: { "fetch": … } or handlers: { "http": … }');
  });

  test.each([
    ["a mock", { mocks: { fetsh: () => 1 } }, /The workflow "outer" has no node "fetsh". Did you mean "fetch"\?/],
    ["a failure", { failOnce: ["summ"] }, /has no node "summ". Did you mean "sum"\?/],
    [
      "a failure of what the engine does",
      { failOnce: ["one"] },
      /"one" runs in the engine \(workflow\); it cannot be made to fail/,
    ],
  ])("for nothing are refused: %s", async (_, options, message) => {
    await expect(testRun(built, { host: "h" }, options)).rejects.toThrow(message);
  });

  test("do not help an input that does not fit", async () => {
    await expect(testRun(built, { host: 1 } as never)).rejects.toMatchObject({ code: "INPUT_INVALID" });
  });
});
