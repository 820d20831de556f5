import { afterEach, describe, expect, test, vi } from "vitest";
import { createManualHost, type ManualHost } from "../../test/drivers/manual-host.ts";
import { node, workflow } from "../../test/support/workflows.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import { nodeHost } from "../host/node-host.ts";
import { HandlerError } from "../worker/handler.ts";
import { TestWorld } from "./test-engine.ts";

const DAY_MS = 86_400_000;

describe("the real machine's sleep", () => {
  afterEach(() => vi.useRealTimers());

  test.each([30, 100, 400])("of %i days lasts that long, though setTimeout holds 24.8", async (days) => {
    vi.useFakeTimers();
    let woken = false;
    const sleeping = nodeHost.sleep(days * DAY_MS).then(() => (woken = true));
    await vi.advanceTimersByTimeAsync(days * DAY_MS - 1);
    expect(woken).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(woken).toBe(true);
    await sleeping;
  });

  test("ends at once when it is aborted, also in its second piece, and leaves no timer", async () => {
    vi.useFakeTimers();
    const abort = new AbortController();
    const sleeping = nodeHost.sleep(60 * DAY_MS, abort.signal);
    await vi.advanceTimersByTimeAsync(30 * DAY_MS);
    abort.abort();
    await sleeping;
    expect(vi.getTimerCount()).toBe(0);
    await nodeHost.sleep(1000, abort.signal);
    await nodeHost.sleep(0);
  });
});

describe("deadlines beyond 24.8 days", () => {
  let world: TestWorld;
  afterEach(async () => {
    await world.close();
    clearInterval(ticking);
  });
  let ticking: ReturnType<typeof setInterval>;

  /** A world whose clock goes on by itself while it is looked at, and jumps when told. */
  function slowWorld(): { host: ManualHost } {
    const host = createManualHost();
    world = new TestWorld({ host });
    ticking = setInterval(() => void host.advance(20), 1);
    return { host };
  }

  const has =
    (kind: string, count = 1) =>
    (events: readonly ExecutionEvent[]): boolean =>
      events.filter((event) => event.kind === kind).length >= count;

  test("a retry in 40 days comes after 40 days, also if its execution has left memory", async () => {
    const { host } = slowWorld();
    world.engine({ maxResidents: 0 });
    world.worker({
      step: ({ attempt }) => {
        if (attempt === 1) throw new HandlerError("LATER", "in 40 days", { retryable: true });
        return "done";
      },
    });
    const days = 40 * 86_400;
    const retry = {
      max_attempts: 2,
      base_delay_seconds: days,
      max_delay_seconds: days,
      exponential_base: 1,
      jitter: 0,
    };
    const id = await world.start(workflow([node("a", [], { retry })], { timeout_seconds: 0 }));
    const failed = (await world.until(id, has("taskFailed"))).at(-1)!;
    expect(failed).toMatchObject({ retryAtMs: failed.atMs + 40 * DAY_MS });
    await host.advance(39 * DAY_MS);
    await world.until(id, () => world.memory.data.tasks.byToken.size === 0);
    expect(await world.kinds(id)).not.toContain("retryDue");
    await host.advance(DAY_MS);
    expect(await world.ended(id)).toMatchObject({ status: "COMPLETED", output: { a: "done" } });
  });

  test("a queue timeout of 60 days ends the node after 60 days", async () => {
    const { host } = slowWorld();
    world.engine();
    const id = await world.start(
      workflow([node("a", [], { queue_timeout_seconds: 60 * 86_400 })], { timeout_seconds: 0 }),
    );
    await world.until(id, has("taskDispatched"));
    await host.advance(59 * DAY_MS);
    expect(await world.kinds(id)).not.toContain("taskFailed");
    await host.advance(DAY_MS);
    expect(await world.ended(id)).toMatchObject({ status: "FAILED", error: { code: "QUEUE_TIMEOUT" } });
  });

  test("a workflow timeout of 90 days ends the execution after 90 days", async () => {
    const { host } = slowWorld();
    world.engine();
    const id = await world.start(
      workflow([node("a", [], { queue_timeout_seconds: 365 * 86_400 })], { timeout_seconds: 90 * 86_400 }),
    );
    await world.until(id, has("taskDispatched"));
    await host.advance(89 * DAY_MS);
    expect(await world.kinds(id)).not.toContain("executionEnded");
    await host.advance(DAY_MS);
    expect(await world.ended(id)).toMatchObject({ status: "FAILED", error: { code: "WORKFLOW_TIMEOUT" } });
  });
});
