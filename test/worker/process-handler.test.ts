import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TestWorld } from "../../src/engine/test-engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Json } from "../../src/json/json.ts";
import { Concealment } from "../../src/worker/concealment.ts";
import type { HandlerCall } from "../../src/worker/handler.ts";
import { ProcessHandler } from "../../src/worker/process-handler.ts";
import { testCall, type TestCall } from "../../src/handlers/test-server.ts";
import { node, workflow } from "../support/workflows.ts";

const MODULE = new URL("./isolated-handler.ts", import.meta.url).href;

let isolated: ProcessHandler;
beforeEach(() => {
  process.env["MILLRACE_SECRET_CANARY"] = "must not be inherited";
  isolated = new ProcessHandler({ module: MODULE, host: nodeHost, killAfterMs: 1_000 });
});
afterEach(() => {
  delete process.env["MILLRACE_SECRET_CANARY"];
  isolated.close();
});

async function does(what: string, more: Partial<HandlerCall> = {}, call?: TestCall): Promise<Json> {
  return isolated.handle(call ?? testCall({ does: what, text: "text" }, more));
}

/** With what a worker does to conceal something. */
function concealing(config: Json): TestCall {
  const concealment = new Concealment();
  return Object.assign(testCall(config), { conceal: (text: string) => concealment.add(text) });
}

async function pid(): Promise<number> {
  return ((await does("say who it is")) as { readonly pid: number }).pid;
}

function isAlive(process_: number): boolean {
  try {
    return process.kill(process_, 0);
  } catch {
    return false;
  }
}

/** It is killed, and the machine has noticed. */
async function gone(process_: number): Promise<void> {
  while (isAlive(process_)) await nodeHost.sleep(10);
}

describe("a handler in a process of its own", () => {
  test("is not in ours, and is kept for the next call", async () => {
    const first = await does("say who it is");
    expect(first).toEqual({ pid: expect.any(Number) as number, calls: 1 });
    expect((first as { pid: number }).pid).not.toBe(process.pid);
    expect(await does("say who it is")).toEqual({ ...(first as object), calls: 2 });
  });

  test("has one call at a time: two at once are two processes", async () => {
    const pids = await Promise.all([pid(), pid()]);
    expect(new Set(pids).size).toBe(2);
  });

  test("is given what every handler is given, and no secret that its config does not name", async () => {
    expect(await does("say what it was given", { inputs: { p: 1 }, attempt: 2 })).toEqual({
      config: { does: "say what it was given", text: "text" },
      inputs: { p: 1 },
      idempotencyKey: "e1/a/1",
      attempt: 2,
      env: null,
    });
  });

  test("may report, conceal and log", async () => {
    const logs: unknown[] = [];
    const call = testCall({ does: "report" }, { log: (...entry) => logs.push(entry) });
    expect(await does("report", {}, call)).toBe("hidden-0815");
    expect(call.usage).toEqual([{ tokens: 3 }]);
    expect(call.closed).toEqual([7_000]);
    expect(call.concealed).toEqual(["hidden-0815"]);
    expect(logs).toEqual([["working with hidden-0815", { n: 1 }]]);
  });

  test("ends nobody by what it says: what cannot be taken fails its own call", async () => {
    const before = await pid();
    await expect(does("conceal nothing", {}, concealing({ does: "conceal nothing" }))).rejects.toThrow(TypeError);
    // At once: the machine has not told us of its end, and it is not called again.
    expect(await does("send what it likes")).toBe("went on");
    await gone(before);
  });

  test("says nothing in the name of the next call", async () => {
    const first = await does("return, and say more later");
    const logs: unknown[] = [];
    const abort = new AbortController();
    const call = testCall({ does: "stop when asked" }, { log: (...entry) => logs.push(entry), signal: abort.signal });
    const answer = does("stop when asked", {}, call);
    await nodeHost.sleep(200);
    abort.abort();
    expect([await answer, logs, call.usage]).toEqual(["stopped", [], []]);
    expect(await pid()).toBe((first as { pid: number }).pid);
  });

  test("may throw, and goes on", async () => {
    const before = await pid();
    const error = { code: "BUSY", message: "no: text", retryable: true, retryAfterMs: 5, details: { n: 1 } };
    const stack = expect.stringMatching(/^HandlerError: no: text\n {4}at .*isolated-handler\.ts:\d+/) as string;
    await expect(does("throw")).rejects.toMatchObject({ ...error, stack });
    expect(await pid()).toBe(before);
  });

  test.each<[string, string]>([
    ["return a circle", "OUTPUT_INVALID"],
    ["return much", "OUTPUT_TOO_LARGE"],
  ])("may %s, and harms nobody", async (what, code) => {
    await expect(does(what)).rejects.toMatchObject({ code, retryable: false });
  });
});

describe("a process that dies", () => {
  test.each<[string, RegExp]>([
    ["exit", /code 3/],
    ["fail later", /code 1/],
    ["run out of memory", /SIG|code/],
  ])("because its handler does: %s", async (what, how) => {
    isolated = new ProcessHandler({ module: MODULE, host: nodeHost, memoryMb: 64 });
    const before = await pid();
    await expect(does(what)).rejects.toMatchObject({
      code: "HANDLER_CRASHED",
      retryable: true,
      stack: undefined,
      message: expect.stringMatching(how) as string,
    });
    expect(await pid()).not.toBe(before);
  });

  test("while it waits for its next call: another takes that", async () => {
    const before = ((await does("return, and fail later")) as { readonly pid: number }).pid;
    await gone(before);
    // Its end may be known before it is told here.
    await nodeHost.sleep(50);
    expect(await pid()).not.toBe(before);
  });

  test("together with its worker, even when it never listens", async () => {
    const main = fileURLToPath(new URL("./abandoned-process.ts", import.meta.url));
    const worker = fork(main, [], { execArgv: [] });
    const [orphan] = (await once(worker, "message")) as [number];
    expect(isAlive(orphan)).toBe(true);
    worker.kill("SIGKILL");
    await gone(orphan);
  });

  test("when the handler is closed", async () => {
    const idle = await pid();
    isolated.close();
    await gone(idle);
  });
});

describe("a handler that is aborted", () => {
  test("may end by itself", async () => {
    const abort = new AbortController();
    const answer = does("stop when asked", { signal: abort.signal });
    abort.abort();
    expect(await answer).toBe("stopped");
  });

  test("is killed when it does not, with the processes it has started", async () => {
    const abort = new AbortController();
    let child = 0;
    const log = (message: string): void => {
      child = Number(message.replace("child ", ""));
      abort.abort();
    };
    const answer = does("leave a child and compute for ever", { signal: abort.signal, log });
    await expect(answer).rejects.toMatchObject({
      code: "HANDLER_CRASHED",
      message: expect.stringContaining("SIGKILL") as string,
    });
    expect(child).toBeGreaterThan(0);
    await gone(child);
  });

  test("before it begins does not begin", async () => {
    await expect(does("say who it is", { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
  });
});

test("no module, no handler: a config can do nothing about it", async () => {
  const missing = new ProcessHandler({ module: new URL("./missing.ts", import.meta.url).href, host: nodeHost });
  const error = { code: "HANDLER_ERROR", retryable: false, message: expect.stringContaining("missing.ts") as string };
  await expect(Promise.resolve(missing.handle(testCall({})))).rejects.toMatchObject(error);
  missing.close();
});

describe("in a worker", () => {
  let world: TestWorld;
  beforeEach(() => {
    world = new TestWorld();
    world.engine();
  });
  afterEach(() => world.close());

  const oneAttempt = { max_attempts: 1, base_delay_seconds: 0, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };

  test("one that computes for ever ends at its timeout, and its slot is free", async () => {
    isolated = new ProcessHandler({ module: MODULE, host: nodeHost, killAfterMs: 100 });
    const worker = world.worker({ step: isolated.handle }, { slots: 1, heartbeatMs: 2_000 });
    const busy = node("busy", [], {
      config: { does: "compute for ever" },
      timeout_seconds: 0.5,
      retry: oneAttempt,
      on_error: "fail_branch",
    });
    const view = await world.ended(await world.start(workflow([busy])));
    expect(view.nodes["busy"]).toMatchObject({ status: "FAILED", error: { code: "TIMEOUT", retryable: true } });
    expect(worker.degraded).toBe(false);
    const next = await world.start(workflow([node("next", [], { config: { does: "say who it is" } })]));
    expect(await world.ended(next)).toMatchObject({ status: "COMPLETED" });
  });

  test("no secret gets out, not even at the edge where an error is cut", async () => {
    world.worker({ step: isolated.handle }, {}, () => "s3cr3t-v4lue-of-some-length");
    const config = { does: "throw much", text: "{{ secrets.TOKEN }}" };
    const view = await world.ended(await world.start(workflow([node("a", [], { config, retry: oneAttempt })])));
    expect(view.nodes["a"]).toMatchObject({ status: "FAILED" });
    expect(JSON.stringify(view)).not.toContain("s3cr3t");
  });
});
