import { expect, test } from "vitest";
import { fold, sinceRenewal } from "./fold.ts";
import type { GateEvent } from "./gate/events.ts";
import { gateMachine } from "./gate/machine.ts";
import { GateTrial } from "./gate/test-gate.ts";
import type { Machine } from "./machine.ts";

/** Somebody holds a place, somebody waits, and somebody has been and gone; then all of it is said, and it goes on. */
function renewed(): GateTrial {
  const gate = new GateTrial({ kind: "concurrency", limit: 2, onConflict: "queue" });
  for (let ask = 1; ask <= 6; ask++) gate.ask("gone").returns("gone", [ask]);
  gate.askAs("w", "holds").askAs("w", "holds").askAs("v", "waits", 3).askAs("w", "waits", 1);
  gate.take({ events: [gateMachine.renewal!(gate.state, gate.nowMs, 1)!] });
  return gate.at(500).returns("holds", [7]).ask("late");
}

const record = (events: readonly GateEvent[], version: number): { version: number; text: string } => {
  return { version, text: JSON.stringify(events) };
};
const empty = (): ReturnType<typeof gateMachine.create> => gateMachine.create("g", undefined);

test("a journal folds to the same from its beginning and from any cut before its renewal", () => {
  const { events, state } = renewed();
  const at = events.findIndex(({ kind }) => kind === "gateRenewed");
  expect(at).toBeGreaterThan(5);
  for (let from = 0; from <= at; from++) {
    const left = [record(events.slice(from, at + 2), from + 1), record(events.slice(at + 2), at + 3)];
    expect(gateMachine.snapshot(fold(gateMachine, empty(), left))).toBe(gateMachine.snapshot(state));
    const apart = events.slice(from).map((event, i) => record([event], from + 1 + i));
    expect(gateMachine.snapshot(fold(gateMachine, empty(), apart))).toBe(gateMachine.snapshot(state));
  }
});

test("a snapshot from before the cut is passed over", () => {
  const { events, state } = renewed();
  const at = events.findIndex(({ kind }) => kind === "gateRenewed");
  const old = fold(gateMachine, empty(), [record(events.slice(0, 3), 1)]);
  const left = [record(events.slice(at - 1), at)];
  expect(gateMachine.snapshot(fold(gateMachine, old, left))).toBe(gateMachine.snapshot(state));
});

test("what is known already is not applied again", () => {
  const { events, state } = renewed();
  const half = fold(gateMachine, empty(), [record(events.slice(0, 4), 1)]);
  const left = [record(events.slice(2), 3)];
  expect(gateMachine.snapshot(fold(gateMachine, half, left))).toBe(gateMachine.snapshot(state));
});

test("a journal without its beginning, and without an event that holds everything, is none", () => {
  const { events } = renewed();
  const at = events.findIndex(({ kind }) => kind === "gateRenewed");
  expect(() => fold(gateMachine, empty(), [record(events.slice(2, at), 3)])).toThrow(
    "the events from 1 on are missing",
  );
});

test("of a whole journal only the records from the last renewal on are needed", () => {
  const { events } = renewed();
  const at = events.findIndex(({ kind }) => kind === "gateRenewed");
  const apart = events.map((event, i) => record([event], i + 1));
  expect(sinceRenewal(gateMachine as unknown as Machine, apart)).toEqual(apart.slice(at));
  expect(sinceRenewal(gateMachine as unknown as Machine, apart.slice(0, at))).toEqual(apart.slice(0, at));
});

test("a gate is renewed after so many events, and one at which many wait after more", () => {
  const gate = new GateTrial({ kind: "concurrency", limit: 1, onConflict: "queue" }).ask("a", 30);
  const renewal = (every: number): GateEvent | null => gateMachine.renewal!(gate.state, gate.nowMs, every);
  expect(gate.state.version).toBeLessThan(10);
  expect(renewal(2)).toBe(null);
  for (let ask = 1; ask < 30; ask++) gate.returns("a", [ask]);
  expect(renewal(1_000)).toBe(null);
  gate.take({ events: [renewal(2)!] });
  expect(gateMachine.renewedVersion!(gate.state)).toBe(gate.state.version);
  expect(renewal(2)).toBe(null);
});
