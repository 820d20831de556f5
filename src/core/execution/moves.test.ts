import { describe, expect, test } from "vitest";
import type { ExecutionEvent } from "./events.ts";
import { executionMachine } from "./machine.ts";
import { assertMove, EXECUTION_MOVES, EXECUTION_STATUSES, IllegalMove, NODE_MOVES, NODE_STATUSES } from "./moves.ts";
import { failure, node, START_MS, Trial, workflow } from "./test-execution.ts";
import { randomHistory, runOut } from "./test-histories.ts";

const SEEDS = 400;

/** Events that are about a node and do not move it. */
const NOTES = new Set([
  "lateResult",
  "reviewDue",
  "reviewEscalated",
  "repaired",
  "gateAsked",
  "gateGranted",
  "gateRefused",
]);

/** Folds a history again, and tells each move of a node or of the execution as the table writes it. */
function movesOf(trial: Trial): Set<string> {
  const moves = new Set<string>();
  const state = executionMachine.create("x", trial.state.plan);
  for (const event of trial.events) {
    const unit = "node" in event ? state.unitOf(event.node)! : undefined;
    const statusOf = (): string => (unit === undefined ? state.status : state.statusOf(unit));
    const before = statusOf();
    executionMachine.evolve(state, event);
    if (NOTES.has(event.kind) || (unit === undefined && before === statusOf())) continue;
    moves.add(`${before} ${event.kind} ${statusOf()}`);
  }
  return moves;
}

const reached = new Set<string>();
for (let seed = 1; seed <= SEEDS; seed++) for (const move of movesOf(runOut(randomHistory(seed)))) reached.add(move);

/** Rows that no message and no time leads to today. Old journals may hold them, so `evolve` must take them. */
const ONLY_BY_EVOLVE = ["queued nodeFailed failed", "running taskStarted running"];

describe("random messages", () => {
  test("lead to no move that is not in the tables", () => {
    const table = new Set([...NODE_MOVES, ...EXECUTION_MOVES].map(([from, event, to]) => `${from} ${event} ${to}`));
    expect([...reached].filter((move) => !table.has(move))).toEqual([]);
  });

  test.each([...NODE_MOVES, ...EXECUTION_MOVES].map(([from, event, to]) => `${from} ${event} ${to}`))(
    "reach: %s",
    (move) => {
      expect(reached.has(move)).toBe(!ONLY_BY_EVOLVE.includes(move));
    },
  );
});

describe("moves that stand in the tables for journals only", () => {
  const at = { atMs: START_MS } as const;

  test("the input of a queued node can no longer be made", () => {
    const trial = new Trial(workflow([node("a"), node("b")]), { room: () => 9 }).begin();
    trial.room = () => 0;
    trial.loses("a").apply({ kind: "nodeFailed", ...at, node: "a", error: failure() });
    expect(trial.status("a")).toBe("failed");
    executionMachine.check(trial.state, true);
  });

  test("a running node is reported as started again", () => {
    const trial = new Trial(workflow([node("a")])).begin();
    const [started] = trial.starts("a") as [ExecutionEvent & { kind: "taskStarted" }];
    trial.apply({ ...started, startedAtMs: 5, runDeadlineAtMs: START_MS + 99_000 });
    expect([trial.status("a"), executionMachine.nextWakeMs(trial.state)]).toEqual(["running", START_MS + 99_000]);
    executionMachine.check(trial.state, true);
  });
});

test("assertMove takes each row of the tables and nothing else", () => {
  const events = new Set([...NODE_MOVES, ...EXECUTION_MOVES].map(([, event]) => event));
  const rows = new Set(NODE_MOVES.map(([from, event, to]) => `${from} ${event} ${to}`));
  for (const from of NODE_STATUSES)
    for (const event of events)
      for (const to of NODE_STATUSES) {
        const move = (): void => assertMove("node", from, event, to, "a");
        if (rows.has(`${from} ${event} ${to}`)) move();
        else expect(move).toThrow(IllegalMove);
      }
  const ends = new Set(EXECUTION_MOVES.map(([from, event, to]) => `${from} ${event} ${to}`));
  for (const from of EXECUTION_STATUSES)
    for (const event of events)
      for (const to of EXECUTION_STATUSES) {
        const move = (): void => assertMove("execution", from, event, to, "x");
        if (ends.has(`${from} ${event} ${to}`)) move();
        else expect(move).toThrow(IllegalMove);
      }
});

test("every state can be left, but for the ends", () => {
  const left = new Set<string>(NODE_MOVES.map(([from]) => from));
  expect(NODE_STATUSES.filter((status) => !left.has(status))).toEqual(["completed", "failed", "skipped", "cancelled"]);
});
