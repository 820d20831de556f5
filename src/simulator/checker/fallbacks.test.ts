import { describe } from "vitest";
import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { World } from "../history.ts";
import { GateWorld } from "./gate-worlds.ts";
import { itReports } from "./test-world.ts";

const PURSE = "gate/budget:default:w";

/** `a` asks a budget for its own model, and then for another; what is known of the two asks is the case. */
function asks({ isRefused = true, model = "small", again = false }): World {
  const rule = { kind: "budget", limits: { tokens: 10 }, onLimit: "fail" } as const;
  const world = new GateWorld(PURSE, rule, { concurrency: 9 }, { on_limit: "fallback", fallback: "small" });
  world.beginAtGate();
  const refused = (ask: number): ExecutionEvent => {
    return { kind: "gateRefused", atMs: world.now, node: "a", gate: PURSE, ask };
  };
  const other = (ask: number): ExecutionEvent => ({ ...world.asked("a", ask), fallback: model }) as ExecutionEvent;
  const events = [...(isRefused ? [refused(1)] : []), other(3), ...(again ? [refused(3), other(4)] : [])];
  const mail = [3, 4].map((ask) => {
    const body = { kind: "gateAcquire", asks: [{ ask, node: "a" }] };
    return { to: PURSE, from: world.entity, id: `n${ask}`, body };
  });
  return world.commit(events, { mail }).world({ liveness: false });
}

/** `a` is refused, and fails at once. */
function givenUp(): World {
  const rule = { kind: "budget", limits: { tokens: 10 }, onLimit: "fail" } as const;
  const world = new GateWorld(PURSE, rule, { concurrency: 9 }, { on_limit: "fallback", fallback: "small" });
  world.beginAtGate();
  const at = { atMs: world.now, node: "a" };
  const name = world.workflow.name;
  const error = { code: "BUDGET_EXCEEDED", message: "", retryable: false, details: { budget: name } };
  return world
    .commit([
      { kind: "gateRefused", ...at, gate: PURSE, ask: 1 },
      { kind: "nodeFailed", ...at, error },
    ])
    .world({ liveness: false });
}

describe("another model", () => {
  itReports([
    ["I38d", "is asked for, and the node's own was not refused", () => asks({ isRefused: false })],
    ["I38d", "is asked for that no budget names", () => asks({ model: "large" })],
    ["I38d", "is asked for a second time", () => asks({ again: true })],
    ["I38d", "is not asked for, and the node fails", givenUp],
  ]);
});
