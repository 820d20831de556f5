import * as fc from "fast-check";
import { describe, expect, expectTypeOf, test } from "vitest";
import type { Json } from "../../json/json.ts";
import { eventText } from "./event-text.ts";
import type {
  Accepted,
  CommandApplied,
  ExecutionEnded,
  ExecutionEvent,
  Started,
  TaskCompletedEvent,
  TaskDispatched,
} from "./events.ts";
import { node, Trial, workflow } from "./test-execution.ts";
import { randomHistory } from "./test-histories.ts";

const { plan } = new Trial(workflow([node("a"), node("odd")])).state;
const name = fc.oneof(fc.constantFrom("a", "odd", "a[3]"), fc.string({ unit: "binary" }));
const number = fc.oneof(fc.integer(), fc.double());
const count = fc.integer({ min: 1 });
const ofTask = { atMs: number, node: name, attempt: count, delivery: count };
const json = fc.jsonValue() as fc.Arbitrary<Json>;

/** Fields in the order in which decisions name them, without those that are undefined. */
function event(kind: ExecutionEvent["kind"], fields: object): ExecutionEvent {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { kind, ...Object.fromEntries(given) } as unknown as ExecutionEvent;
}

/** Few, so that one often comes after its like; what another process has sent need not have it at all. */
const word = fc.oneof(
  { weight: 15, arbitrary: fc.constantFrom("a", '"') },
  { weight: 4, arbitrary: fc.string({ unit: "binary" }) },
  { weight: 1, arbitrary: fc.constant(undefined) },
);
const moment = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(1, 2) }, number);
const seldom = (value: Json): fc.Arbitrary<Json | undefined> =>
  fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.constant(value) });

const EVENTS = {
  accepted: fc.record({
    atMs: moment,
    workflow: word,
    definition: word,
    input: fc.oneof(fc.record({ json }), fc.constant({ blob: { hash: "h", bytes: 3 } }), fc.constant(undefined)),
    bodyHash: word,
    by: word,
    tenant: word,
    trace: word,
    parent: seldom({ execution: "x" }),
    around: seldom({ of: "it" }),
    fork: seldom({ execution: "x", kept: [] }),
    labels: seldom({ of: "it" }),
  }),
  commandApplied: fc.record({
    command: fc.constantFrom("trigger", "cancel"),
    request: word,
    by: word,
    atMs: moment,
    bodyHash: seldom("h"),
    status: fc.constantFrom("RUNNING", "RUNNING", "FAILED", undefined),
    generation: fc.constantFrom(1, 1, 2, undefined),
  }),
  taskDispatched: fc.record({
    ...ofTask,
    nonce: fc.string(),
    seen: count,
    inputHash: fc.stringMatching(/^[0-9a-f]{32}$/),
    queueDeadlineAtMs: number,
    round: fc.option(count, { nil: undefined, freq: 2 }),
    config: fc.option(fc.constant({ hash: "h", bytes: 3 }), { nil: undefined, freq: 2 }),
  }),
  taskCompleted: fc.record({
    ...ofTask,
    startedAtMs: number,
    output: fc.oneof(
      fc.record({ json }),
      fc.record({ json, bytes: count }),
      fc.constant({ blob: { hash: "h" } }),
      fc.constant(undefined),
    ),
    usage: fc.option(json, { nil: undefined, freq: 2 }),
    closeForMs: fc.option(number, { nil: undefined, freq: 2 }),
  }),
  started: fc.record({
    atMs: number,
    deadlineAtMs: fc.option(number),
    input: fc.option(fc.record({ json }), { nil: undefined, freq: 2 }),
    labels: fc.option(fc.constant({ of: "it" }), { nil: undefined, freq: 2 }),
  }),
  executionEnded: fc.record({
    atMs: number,
    status: fc.constantFrom("completed", "failed"),
    reason: fc.constantFrom("done", "end"),
    error: fc.option(fc.constant({ code: "C", message: '"', retryable: false }), { nil: undefined, freq: 2 }),
    cause: fc.option(name, { nil: undefined, freq: 2 }),
    output: fc.option(fc.record({ json }), { nil: undefined, freq: 2 }),
  }),
} as const;

describe("the text of an event is what JSON.stringify says", () => {
  test.each(Object.entries(EVENTS))("of %s", (kind, fields: fc.Arbitrary<object>) => {
    fc.assert(
      fc.property(fields, (one) => {
        const written = event(kind as ExecutionEvent["kind"], one);
        expect(eventText(written, plan)).toBe(JSON.stringify(written));
      }),
      { numRuns: 500 },
    );
  });

  test("of all that happens in random histories", () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < 150; seed++) {
      const { events, state } = randomHistory(seed);
      for (const one of events) {
        kinds.add(one.kind);
        expect(eventText(one, state.plan)).toBe(JSON.stringify(one));
      }
    }
    for (const kind of Object.keys(EVENTS)) expect(kinds).toContain(kind);
  });
});

test("no field of those that are put together by hand was forgotten", () => {
  type OfAll = "kind" | "atMs";
  type OfTask = OfAll | "node" | "attempt" | "delivery";
  type Dispatched = OfTask | "nonce" | "seen" | "inputHash" | "queueDeadlineAtMs" | "round" | "config";
  expectTypeOf<keyof TaskDispatched>().toEqualTypeOf<Dispatched>();
  expectTypeOf<keyof TaskCompletedEvent>().toEqualTypeOf<OfTask | "startedAtMs" | "output" | "usage" | "closeForMs">();
  type Whose = "bodyHash" | "by" | "tenant" | "trace";
  type More = "parent" | "around" | "fork" | "labels";
  expectTypeOf<keyof Accepted>().toEqualTypeOf<OfAll | "workflow" | "definition" | "input" | Whose | More>();
  expectTypeOf<keyof CommandApplied>().toEqualTypeOf<
    OfAll | "command" | "request" | "by" | "bodyHash" | "status" | "generation"
  >();
  expectTypeOf<keyof Started>().toEqualTypeOf<OfAll | "deadlineAtMs" | "input" | "labels">();
  expectTypeOf<keyof ExecutionEnded>().toEqualTypeOf<OfAll | "status" | "reason" | "error" | "cause" | "output">();
});
