import { describe, expect, test } from "vitest";
import { createManualHost, type ManualHost } from "../../test/drivers/manual-host.ts";
import { type Ending, underTimeLimit } from "./time-limit.ts";

interface Trial {
  readonly host: ManualHost;
  readonly abort: AbortController;
  readonly ending: () => Ending<unknown> | undefined;
}

/** Work with 1 s to do it, and half a second to stop when asked. */
function trial(work: (host: ManualHost, signal: AbortSignal) => unknown): Trial {
  const host = createManualHost();
  const abort = new AbortController();
  let ending: Ending<unknown> | undefined;
  const limit = { host, softMs: 1_000, hardMs: 500, abort };
  const run = async (): Promise<void> => {
    ending = await underTimeLimit(() => work(host, abort.signal), limit);
  };
  void run();
  return { host, abort, ending: () => ending };
}

const sleepFor =
  (ms: number) =>
  async (host: ManualHost): Promise<string> => {
    await host.sleep(ms);
    return "done";
  };

const minding = async (host: ManualHost, signal: AbortSignal): Promise<string> => {
  await host.sleep(60_000, signal);
  return "stopped";
};

describe("work that ends in its time", () => {
  test("returns, and is not asked to stop", async () => {
    const { host, abort, ending } = trial(sleepFor(900));
    await host.advance(900);
    expect(ending()).toEqual({ kind: "returned", value: "done" });
    await host.advance(10_000);
    expect(abort.signal.aborted).toBe(false);
  });

  test("may throw, at once or later", async () => {
    const error = new Error("broke");
    const { host, ending } = trial(() => {
      throw error;
    });
    await host.advance(0);
    expect(ending()).toEqual({ kind: "threw", error });
  });
});

describe("work that ends soon", () => {
  test.each([
    ["at once", () => "done"],
    ["after a turn", async () => "done"],
  ])("%s: returns, and no timer was set for it", async (_, work) => {
    const host = { ...createManualHost(), sleep: () => Promise.reject(new Error("a timer was set")) };
    const abort = {
      get signal(): never {
        throw new Error("a controller was made");
      },
    } as unknown as AbortController;
    const limit = { host, softMs: 1_000, hardMs: 500, abort };
    expect(await underTimeLimit(work, limit)).toEqual({ kind: "returned", value: "done" });
  });

  test("at once: is answered without a promise", () => {
    const limit = { host: createManualHost(), softMs: 1_000, hardMs: 500, abort: new AbortController() };
    expect(underTimeLimit(() => "done", limit)).toEqual({ kind: "returned", value: "done" });
  });

  test("a little later, and was asked to stop before anybody looked: is given up when it does not listen", async () => {
    const { host, abort, ending } = trial(sleepFor(60_000));
    abort.abort();
    await host.advance(499);
    expect(ending()).toBeUndefined();
    await host.advance(1);
    expect(ending()).toMatchObject({ kind: "deaf" });
  });
});

describe("work that takes longer", () => {
  test("is asked to stop, and is late when it does", async () => {
    const { host, abort, ending } = trial(minding);
    await host.advance(999);
    expect(abort.signal.aborted).toBe(false);
    await host.advance(1);
    expect(abort.signal.aborted).toBe(true);
    expect(ending()).toEqual({ kind: "late" });
  });

  test("is late when it ends between the two limits", async () => {
    const { host, ending } = trial(sleepFor(1_400));
    await host.advance(1_000);
    expect(ending()).toBeUndefined();
    await host.advance(400);
    expect(ending()).toEqual({ kind: "late" });
  });

  test("is given up when it does not listen, and known to be over when it ends after all", async () => {
    const { host, ending } = trial(sleepFor(5_000));
    await host.advance(1_000);
    await host.advance(500);
    const given = ending();
    if (given?.kind !== "deaf") throw new Error(`it is ${given?.kind}`);
    let over = false;
    void given.over.then(() => (over = true));
    await host.advance(3_000);
    expect(over).toBe(false);
    await host.advance(500);
    expect(over).toBe(true);
  });

  test("is late if it kept everything else from running, timers included", async () => {
    let nowMs = 0;
    const blocked = { ...createManualHost(), monotonicMs: () => nowMs };
    const limit = { host: blocked, softMs: 1_000, hardMs: 500, abort: new AbortController() };
    expect(await underTimeLimit(() => (nowMs += 20_000), limit)).toEqual({ kind: "late" });
  });
});

describe("work that somebody else asks to stop", () => {
  test("ends as it ends", async () => {
    const { host, abort, ending } = trial(minding);
    await host.advance(100);
    abort.abort();
    await host.advance(0);
    expect(ending()).toEqual({ kind: "returned", value: "stopped" });
  });

  test("is given up just as soon when it does not listen", async () => {
    const { host, abort, ending } = trial(sleepFor(60_000));
    await host.advance(100);
    abort.abort();
    await host.advance(499);
    expect(ending()).toBeUndefined();
    await host.advance(1);
    expect(ending()).toMatchObject({ kind: "deaf" });
  });
});
