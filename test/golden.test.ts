import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { ExecutionEvent, ExecutionEventKind } from "../src/core/execution/events.ts";
import { executionMachine } from "../src/core/execution/machine.ts";
import { buildPlan } from "../src/core/execution/plan.ts";
import type { ExecutionState } from "../src/core/execution/state.ts";
import { viewExecution } from "../src/core/execution/test-summary.ts";
import { contentHash } from "../src/json/hash.ts";
import type { Golden } from "./golden/golden.ts";

const folder = new URL("golden/", import.meta.url);
const names = globSync("*/*.json", { cwd: folder.pathname }).toSorted();
const sums = new Map(
  readFileSync(new URL("SHA256SUMS", folder), "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(/\s+/).toReversed() as [string, string]),
);

function read(name: string): { text: string; golden: Golden } {
  const text = readFileSync(new URL(name, folder), "utf8");
  return { text, golden: JSON.parse(text) as Golden };
}

function fold(state: ExecutionState, events: readonly ExecutionEvent[]): ExecutionState {
  for (const event of events) executionMachine.evolve(state, event);
  executionMachine.check(state, true);
  return state;
}

describe.each(names)("the journal %s", (name) => {
  const { text, golden } = read(name);
  const [accepted] = golden.events;
  const definition = accepted!.kind === "accepted" ? accepted.definition : "";
  const plan = buildPlan(definition, golden.workflow);

  test("has not been changed since it was written", () => {
    expect(contentHash(text)).toBe(sums.get(name));
  });

  test("still folds to what it meant then", () => {
    const state = fold(executionMachine.create(golden.execution, plan), golden.events);
    expect(viewExecution(state)).toMatchObject(golden.summary);
    expect(state.version).toBe(golden.events.length);
  });

  test("folds to the same from the snapshot of the time, and writes the same while that is its format", () => {
    const { version, format, text: snapshot } = golden.snapshot;
    // The format before says all of each run, and is read by the same function.
    if (format < executionMachine.snapshotFormat - 1) return;
    const tail = golden.events.slice(version);
    const state = fold(executionMachine.restore(golden.execution, plan, snapshot), tail);
    expect(viewExecution(state)).toMatchObject(golden.summary);
    if (format !== executionMachine.snapshotFormat) return;
    const head = fold(executionMachine.create(golden.execution, plan), golden.events.slice(0, version));
    expect(executionMachine.snapshot(head)).toBe(snapshot);
  });

  test("is of a format that is still read", () => {
    expect(golden.eventFormat).toBeLessThanOrEqual(executionMachine.eventFormat);
  });
});

test("no journal has been taken away", () => {
  expect(names).toEqual([...sums.keys()].toSorted());
});

/** Every kind there is. A kind that is missing here does not compile; one without a journal fails below. */
const KINDS: Readonly<Record<ExecutionEventKind, true>> = {
  accepted: true,
  started: true,
  taskDispatched: true,
  taskStarted: true,
  taskCompleted: true,
  taskFailed: true,
  deliveryLost: true,
  retryDue: true,
  nodeCompleted: true,
  nodeFailed: true,
  nodeSkipped: true,
  resultIgnored: true,
  lateResult: true,
  commandApplied: true,
  commandRefused: true,
  executionEnded: true,
  quarantined: true,
  parked: true,
  released: true,
  paused: true,
  resumed: true,
  generationOpened: true,
  nodeWaiting: true,
  reviewDue: true,
  reviewEscalated: true,
  reviewChanged: true,
  roundEnded: true,
  roundDue: true,
  mapOpened: true,
  signalReceived: true,
  childrenCancelled: true,
  parentCalled: true,
  parentAnswered: true,
  letterDiscarded: true,
  repaired: true,
  gateAsked: true,
  gateGranted: true,
  gateRefused: true,
  gateStalled: true,
  gatesReturned: true,
  entryAsked: true,
  entryGranted: true,
  entryLeft: true,
};

test("every kind of event stands in some journal", () => {
  const seen = new Set(names.flatMap((name) => read(name).golden.events.map(({ kind }) => kind)));
  expect(Object.keys(KINDS).filter((kind) => !seen.has(kind as ExecutionEventKind))).toEqual([]);
});
