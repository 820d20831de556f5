import { describe, expect, test } from "vitest";
import type { Json } from "../../../json/json.ts";
import { executionMachine } from "../machine.ts";
import { engineNode, node, START_MS, Trial, workflow } from "../test-execution.ts";

const branch = { on_error: "fail_branch" } as const;

function waiting(config: Record<string, Json>, handler = "wait", input: Json = null): Trial {
  return new Trial(workflow([engineNode("w", handler, config, [], branch), node("b", ["w"])])).begin({ json: input });
}

const iso = (afterStartMs: number): string => new Date(START_MS + afterStartMs).toISOString();

describe.each(["wait", "delay"])("%s {seconds}", (handler) => {
  test("ends after that time by partition time, with null", () => {
    const trial = waiting({ seconds: 1.5 }, handler);
    expect(trial.view("w")).toMatchObject({ status: "WAITING", reason: "timer", until: START_MS + 1500, attempt: 0 });
    expect(executionMachine.nextWakeMs(trial.state)).toBe(START_MS + 1500);
    trial.calendarAheadMs = 10_000_000;
    expect(trial.at(1499).step()).toEqual([]);
    expect(trial.at(1500).settle().view("w")).toMatchObject({ status: "COMPLETED", output: { json: null } });
    expect(trial.shown["b"]).toBe("QUEUED");
  });

  test("of 0 is no wait", () => {
    expect(waiting({ seconds: 0 }, handler).shown).toEqual({ w: "COMPLETED", b: "QUEUED" });
  });

  test("may come from a template", () => {
    const trial = waiting({ seconds: "{{ input.s }}" }, handler, { s: 3 });
    expect(trial.view("w").until).toBe(START_MS + 3000);
  });

  test.each(["soon", -1, null, true, 31_536_001, 1e18])("of %j is no duration", (s) => {
    const trial = waiting({ seconds: "{{ input.s }}" }, handler, { s });
    expect(trial.view("w")).toMatchObject({
      status: "FAILED",
      error: { code: "CONFIG_INVALID", retryable: false, details: { pointer: "/seconds" } },
    });
  });
});

test("a delay outlives any timeout that a task would have had", () => {
  const trial = waiting({ seconds: 3600 }, "delay").at(3_599_999).settle();
  expect(trial.shown["w"]).toBe("WAITING timer");
});

describe("wait {until}", () => {
  test("ends at that moment by the calendar, whatever partition time says", () => {
    const trial = waiting({ until: iso(60_000) });
    expect(trial.view("w")).toMatchObject({ status: "WAITING", reason: "timer", until: START_MS + 60_000 });
    expect(executionMachine.nextCalendarMs!(trial.state)).toBe(START_MS + 60_000);
    trial.calendarAheadMs = -50_000;
    expect(trial.at(60_000).step()).toEqual([]);
    trial.calendarAheadMs = 0;
    expect(trial.settle().view("w")).toMatchObject({ status: "COMPLETED", output: { json: null } });
  });

  test("that is past is no wait", () => {
    expect(waiting({ until: iso(-1) }).shown["w"]).toBe("COMPLETED");
    expect(waiting({ until: iso(0) }).shown["w"]).toBe("COMPLETED");
  });

  test("may be a moment in milliseconds, and may have a zone", () => {
    expect(waiting({ until: "{{ input.t }}" }, "wait", { t: START_MS + 5 }).view("w").until).toBe(START_MS + 5);
    expect(waiting({ until: "2030-01-31T09:00:00+02:00" }).view("w").until).toBe(Date.parse("2030-01-31T07:00:00Z"));
  });

  test("is in UTC if it names no zone", () => {
    const at = waiting({ until: "{{ input.t }}" }, "wait", { t: "2030-01-31T09:00" }).view("w").until;
    expect(at).toBe(Date.parse("2030-01-31T09:00:00Z"));
  });

  test.each(["tomorrow", "5", "2030-02-30", "", {}, null, 8.64e15 + 1, 1e300])("of %j is no moment", (t) => {
    const trial = waiting({ until: "{{ input.t }}" }, "wait", { t });
    expect(trial.view("w").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/until" } });
  });

  test("is cut short by the workflow's timeout", () => {
    const wait = engineNode("w", "wait", { until: iso(60_000) });
    const trial = new Trial(workflow([wait], { timeout_seconds: 10 })).begin().at(10_000).settle();
    expect(trial.shown["w"]).toBe("CANCELLED timeout");
    expect(executionMachine.nextCalendarMs!(trial.state)).toBeNull();
  });
});

describe("wait {signal}", () => {
  const signal = { signal: "go", timeout_seconds: 604_800 };

  test("waits for it, and shows until when", () => {
    const trial = waiting(signal);
    expect(trial.view("w")).toMatchObject({ status: "WAITING", reason: "signal", until: START_MS + 604_800_000 });
  });

  test("fails when it does not come in time, and is not tried again", () => {
    const trial = waiting({ ...signal, timeout_seconds: 5 })
      .at(5000)
      .settle();
    expect(trial.view("w")).toMatchObject({
      status: "FAILED",
      error: { code: "SIGNAL_TIMEOUT", retryable: false, message: 'The signal "go" did not come in time' },
    });
    expect(trial.letters).toMatchObject([{ id: "x:1:w", class: "poison" }]);
    expect(trial.state.signalWaits.size).toBe(0);
  });

  test("does not time out while messages wait to be read: the signal may be among them", () => {
    const trial = waiting({ ...signal, timeout_seconds: 5 }).at(9000);
    trial.deadlineMs = START_MS + 4000;
    expect(trial.step()).toEqual([]);
    trial.does({ kind: "signal", name: "go", data: { json: 1 } });
    expect(trial.shown["w"]).toBe("COMPLETED");
  });

  test("may be named by a template", () => {
    const trial = waiting({ signal: "paid-{{ input.id }}", timeout_seconds: 5 }, "wait", { id: 7 });
    expect(trial.does({ kind: "signal", name: "paid-7", data: { json: 1 } }).shown["w"]).toBe("COMPLETED");
  });

  test.each([[""], [5], [null]])("named %j has no name", (name) => {
    const trial = waiting({ signal: "{{ input.name }}", timeout_seconds: 5 }, "wait", { name });
    expect(trial.view("w").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/signal" } });
  });

  test("with a timeout that is none fails", () => {
    const trial = waiting({ signal: "go", timeout_seconds: "{{ input.t }}" }, "wait", { t: "long" });
    expect(trial.view("w").error).toMatchObject({ code: "CONFIG_INVALID", details: { pointer: "/timeout_seconds" } });
  });
});

test("a wait is not out: it takes no place among the nodes that may run, and no room", () => {
  const nodes = [engineNode("w", "wait", { seconds: 5 }), node("a"), node("b")];
  const trial = new Trial(workflow(nodes, { max_parallel_nodes: 1 })).begin();
  expect(trial.shown).toEqual({ w: "WAITING timer", a: "QUEUED", b: "WAITING parallel" });
});
