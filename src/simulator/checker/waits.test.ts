import { describe } from "vitest";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { World } from "../history.ts";
import { engine, escalatedWorld, overdueWorld, signalledWorld, waitedWorld } from "./control-worlds.ts";
import { changeEvent, dropEvent, itReports, remain, TestWorld } from "./test-world.ts";

/** One signal, and two waits that take it. */
function takenTwice(): World {
  const config = { signal: "go", timeout_seconds: 60 };
  const world = new TestWorld([engine("a", "wait", config), engine("b", "wait", config)]);
  const take = (id: string): ExecutionEvent => ({ ...world.nodeCompleted(id, 1), signal: "go" }) as ExecutionEvent;
  const wait = { for: "signal", signal: "go" } as const;
  world.begin(world.waits("a", wait, world.now + 60_000), world.waits("b", wait, world.now + 60_000));
  world.ask("s1", { kind: "signal", name: "go", data: { json: 1 } });
  world.commit([world.applied("s1", "signal"), world.signalled("go", 1), take("a"), take("b"), world.ended()]);
  return world.answered("s1", "signal").world();
}

/** A signal is there, and a wait for it gives up. */
function overlooked(): World {
  const world = new TestWorld([engine("a", "wait", { signal: "go", timeout_seconds: 60 }, { dlq: "none" })]);
  world.begin(world.waits("a", { for: "signal", signal: "go" }, world.now + 60_000));
  world.ask("s1", { kind: "signal", name: "go", data: { json: 1 } });
  world
    .commit([world.applied("s1", "signal"), world.signalled("go", 1)])
    .answered("s1", "signal")
    .pass(60_000);
  return world.commit([world.nodeFailed("a", "SIGNAL_TIMEOUT"), world.ended("failed")]).world();
}

describe("waits", () => {
  itReports([
    ["C5-signal", "a signal is taken twice", takenTwice],
    ["C5-signal", "a wait gives up although its signal is there", overlooked],
    [
      "C5-operations",
      "a signal is acknowledged and not kept",
      () => dropEvent(signalledWorld(), "signalReceived", 1),
      ["C5-signal"],
    ],
    [
      "C5-signal",
      "a signal is taken that nobody has sent",
      () => changeEvent(signalledWorld(), "signalReceived", 0, { data: { json: 3 } }),
    ],
    [
      "C5-signal",
      "the newer signal is taken first",
      () => changeEvent(signalledWorld(), "nodeCompleted", 1, { output: { json: 3 } }),
    ],
    ["C6-review", "a review is decided otherwise than was said", () => decidedAs("reject")],
    ["C6-review", "nobody has decided it", () => dropEvent(overdueWorld(), "reviewDue", 0)],
    ["I28", "a review is due before others were asked", () => dropEvent(escalatedWorld(), "reviewEscalated", 0)],
    ["I29", "others are asked too early", () => escalatedWorld(1_000)],
    ["C6-review", "it is open to nobody", () => remain(waitedWorld(), { listed: ["review e1:1:r"] })],
    [
      "C6-wait",
      "a wait is longer than it says",
      () => changeEvent(waitedWorld(), "nodeWaiting", 1, { dueAtMs: 5_000 }),
      ["I29"],
    ],
    [
      "C6-wait",
      "a wait is for another date",
      () => changeEvent(waitedWorld(), "nodeWaiting", 0, { wait: { for: "timer", calendarAtMs: 4_000 } }),
    ],
    [
      "C6-wait",
      "a date comes before its time",
      () => changeEvent(waitedWorld(), "nodeWaiting", 0, { wait: { for: "timer", calendarAtMs: 6_000 } }),
      ["I29"],
    ],
  ]);
});

function decidedAs(decision: string): World {
  const output = { json: { decision, data: null, by: "local", at: "", comment: null } };
  return changeEvent(waitedWorld(), "nodeCompleted", 2, { output });
}
