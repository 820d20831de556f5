import { readFileSync } from "node:fs";
import { entityId, entityKey } from "../../src/core/entity.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { viewNode } from "../../src/core/execution/view.ts";
import type { ExecutionState } from "../../src/core/execution/state.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";
import { check } from "../../src/simulator/checker/check.ts";
import { sameJson as same } from "../../src/simulator/checker/same-json.ts";
import type { World } from "../../src/simulator/history.ts";
import type { Journals } from "./journals.ts";
import { CALLED, KINDS } from "./kinds.ts";
import type { LedgerLine, Told } from "./notes.ts";
import type { People } from "./people.ts";
import type { Views } from "./views.ts";

/** What the witnesses of a world have left behind. */
export interface Evidence {
  readonly people: Pick<People, "runs" | "heard">;
  /** What everybody sees at the end. */
  readonly views: Views;
  readonly journals: Journals;
  readonly log: readonly Told[];
  readonly ledger: readonly LedgerLine[];
}

/** Holds what is left of a world against what was promised, whatever it is stored in; each finding is a sentence. */
export function* brokenPromises(world: World, evidence: Evidence): Iterable<string> {
  for (const { invariant, message } of check(world)) yield `${invariant} ${message}`;
  yield* evidence.journals.gaps;
  yield* witness(world, evidence);
  yield* outcomes(evidence);
  yield* effects(evidence);
  yield* keys(evidence);
  yield* sights(evidence);
  yield* streams(evidence);
}

/** Lines of JSON, each whole or torn by a kill. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who names the file knows what is in it
export function readLines<Line>(file: string): readonly Line[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .flatMap((line): Line[] => {
      try {
        return [JSON.parse(line) as Line];
      } catch {
        return [];
      }
    });
}

/** A commit is all of it: what it noted of itself is what the journals have. */
function* witness({ history }: World, { journals }: Evidence): Iterable<string> {
  const noted = new Map<string, ExecutionEvent[]>();
  for (const entry of history) {
    if (entry.kind !== "commit") continue;
    for (const { entity, events } of entry.records) {
      noted.set(entity, [...(noted.get(entity) ?? []), ...events]);
    }
    for (const entity of entry.purge ?? []) noted.delete(entity);
  }
  for (const [entity, events] of noted) {
    const found = journals.written.get(entity) ?? [];
    if (JSON.stringify(found) !== JSON.stringify(events))
      yield `The journal of ${entity} is not what its commits wrote`;
  }
  for (const entity of journals.written.keys()) {
    if (!noted.has(entity)) yield `No commit wrote the journal of ${entity}`;
  }
}

/** Everything that was accepted has ended, as it must and with the right output; so have the children. */
function* outcomes({ people, views, journals }: Evidence): Iterable<string> {
  const givenUp = poisonedIn(journals);
  const kinds = new Map([...KINDS, ...CALLED].map((kind) => [kind.definition.name, kind]));
  for (const { id, kind, input } of people.runs) {
    const view = views.executions.get(id);
    if (view?.execution_id !== id) yield `${kind.definition.name} ${id} was accepted, and is not there`;
    else if (!same(view.input, input) && !isLarge(view.input)) yield `${id} has another input than was given`;
  }
  for (const [id, view] of views.executions) {
    const kind = kinds.get(view.workflow);
    const { status, input, nodes } = view;
    if (givenUp.has(id)) continue;
    if (kind === undefined) {
      // A graph inside a map: the map's output says whether it is right.
      if (status !== "COMPLETED") yield `The inside ${id} of a map is ${status}`;
      continue;
    }
    const given = people.runs.find((run) => run.id === id)?.input ?? input;
    const expected = kind.expected(given);
    const name = `${kind.definition.name} ${id}`;
    const output = views.outputs.get(id)!;
    if (status !== expected.status) yield `${name} is ${status}, and must be ${expected.status}`;
    else if (!same(output, expected.output))
      yield `${name} gave ${text(output)}, and must give ${text(expected.output)}`;
    for (const [node, wanted] of Object.entries(expected.attempts ?? {})) {
      const attempts = attemptsOf(node, wanted, journals.events.get(id) ?? []);
      const attempt = nodes[node]?.["attempt"];
      if (attempt !== attempts) yield `${node} of ${name} took ${text(attempt!)} attempts, and must take ${attempts}`;
    }
  }
}

/**
 * Executions of which a task was lost with three workers, which is its end: the checker judges whether it was by right.
 * Who had called one of them fails with it, and calls off the others that it has called.
 */
function poisonedIn({ events }: Journals): ReadonlySet<string> {
  const found = new Set<string>();
  const parents = new Map<string, string>();
  const calledOff = new Map<string, string[]>();
  for (const [id, own] of events) {
    for (const event of own) {
      if (event.kind === "taskFailed" && event.error.code === "POISON_TASK") found.add(id);
      if (event.kind === "accepted" && event.parent !== undefined) parents.set(id, entityId(event.parent.entity));
      const parent = parents.get(id);
      if (parent === undefined || event.kind !== "commandApplied" || event.command !== "cancel") continue;
      if (event.by === entityKey("execution", parent)) calledOff.set(parent, [...(calledOff.get(parent) ?? []), id]);
    }
  }
  for (const id of found) {
    const parent = parents.get(id);
    if (parent !== undefined) found.add(parent);
    for (const child of calledOff.get(id) ?? []) found.add(child);
  }
  return found;
}

/**
 * How many attempts a node takes that fails until attempt `wanted`: while nobody was there, time went on, and a deadline
 * may have ended that one too. One that it ended before would have failed anyway.
 */
function attemptsOf(node: string, wanted: number, events: readonly ExecutionEvent[]): number {
  const ended = new Set<number>();
  for (const event of events) {
    if (event.kind === "taskFailed" && event.node === node && event.deadline !== undefined) ended.add(event.attempt);
  }
  let attempt = wanted;
  while (ended.has(attempt)) attempt++;
  return attempt;
}

/** What was to be done outside was done at least once, under the one key that it has, and nothing else was. */
function* effects({ people, journals, ledger }: Evidence): Iterable<string> {
  const givenUp = poisonedIn(journals);
  const done = new Map<string, Set<string>>();
  for (const { kind, execution, key } of ledger) {
    if (kind === "done") done.set(execution, (done.get(execution) ?? new Set()).add(key));
  }
  for (const { id, kind, input } of people.runs) {
    const expected = kind.expected(input).keys;
    if (expected === undefined || givenUp.has(id)) continue;
    const found = [...(done.get(id) ?? [])].map((key) => key.slice(id.length + 1));
    const missing = expected.filter((key) => !found.includes(key));
    const extra = found.filter((key) => !expected.includes(key));
    const name = `${kind.definition.name} ${id}`;
    if (missing.length > 0) yield `${name} ended, and ${missing.join(", ")} were never done`;
    if (extra.length > 0) yield `${name} did ${extra.join(", ")}, which nobody wanted`;
  }
}

/** A piece of work has one key, however often it is tried, and the ledger knows no others. */
function* keys({ log, ledger }: Evidence): Iterable<string> {
  const keys = new Map<string, string>();
  for (const told of log) {
    if (told.kind !== "delivered") continue;
    const work = told.token.split(":").slice(1, 4).join(" ");
    const known = keys.get(work) ?? told.idempotencyKey;
    if (known !== told.idempotencyKey) yield `${work} has the key ${told.idempotencyKey}, and had ${known} before`;
    keys.set(work, known);
  }
  const given = new Set(keys.values());
  for (const key of new Set(ledger.map((line) => line.key))) {
    if (!given.has(key)) yield `The ledger knows the key ${key}, which was given to nobody`;
  }
}

/** What clients see is what the whole journal gives. */
function* sights({ views, journals }: Evidence): Iterable<string> {
  const { executions, lists, events } = views;
  for (const [id, view] of executions) {
    if (!journals.events.has(id)) {
      yield `${id} is shown, and has no journal`;
      continue;
    }
    const state = journals.fold(id);
    const { status, generation, seq, nodes } = view;
    if (status !== state.status.toUpperCase() || generation !== state.generation || seq !== state.version) {
      yield `${id} is shown as ${text([status, generation, seq])}; its journal gives ${state.status} ${state.version}`;
    }
    for (const [i, node] of state.plan.graph.ids.entries()) {
      const difference = differenceOf(nodes[node]!, state, i);
      if (difference !== undefined) yield `${node} of ${id} is shown with ${difference}`;
    }
    const shown = events.get(id)!;
    if (shown.length !== state.version) yield `${id} shows ${shown.length} of ${state.version} events`;
  }
  for (const id of journals.events.keys()) if (!executions.has(id)) yield `${id} has a journal, and is not listed`;
  if (lists.reviews.length > 0) yield `Reviews are open: ${text(lists.reviews)}`;
  for (const queue of lists.queues) {
    if (Number(queue["queued"]) > 0) yield `A queue is not empty: ${text(queue)}`;
  }
}

/** Whoever followed an execution has heard every event of it once and in order, to its end, whoever told it. */
function* streams({ people, views }: Evidence): Iterable<string> {
  for (const [id, heard] of people.heard) {
    const events = (views.events.get(id) ?? []).map((event) => {
      const { seq, type } = event as { seq: number; type: string };
      return `${seq} ${type}`;
    });
    // What comes after the end, such as a late result, is told to nobody who had been told that it is the end.
    const isWhole = heard.some((event) => event.endsWith(" execution_ended"));
    if (isWhole && same([...heard], events.slice(0, heard.length))) continue;
    yield `A stream told of ${id}: ${text([...heard])}, and its events are ${text(events)}`;
  }
}

function differenceOf(shown: JsonObject, state: ExecutionState, node: number): string | undefined {
  const { status, attempt, deliveries, reason, output } = viewNode(state, node);
  const expected: Record<string, Json> = { status, attempt, deliveries, reason };
  if (output !== null && "json" in output) expected["output"] = output.json;
  for (const [field, value] of Object.entries(expected)) {
    const seen = shown[field] ?? null;
    if (!same(seen, value) && !isLarge(seen)) return `${field} ${text(seen)}, and its journal gives ${text(value)}`;
  }
  return undefined;
}

function isLarge(value: Json): boolean {
  return typeof value === "object" && value !== null && "$large" in value;
}

function text(value: Json): string {
  return JSON.stringify(value).slice(0, 200);
}
