import { readFileSync } from "node:fs";
import { entityId } from "../../src/core/entity.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { viewNode } from "../../src/core/execution/view.ts";
import type { ExecutionState } from "../../src/core/execution/state.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";
import { check } from "../../src/simulator/checker/check.ts";
import { sameJson as same } from "../../src/simulator/checker/same-json.ts";
import type { World } from "../../src/simulator/history.ts";
import { convictionsIn } from "./convictions.ts";
import { Journals } from "./journals.ts";
import { CALLED, KINDS } from "./kinds.ts";
import type { LedgerLine, Told } from "./notes.ts";
import { type Evidence, recordedWorld } from "./recorded-world.ts";
import { filesOf } from "./server.ts";
import type { Truth } from "./store-copy.ts";
import type { Views } from "./views.ts";
import type { Remainder } from "./world.ts";

export interface Findings {
  /** Each is a sentence. */
  readonly violations: readonly string[];
  /** When the commits took effect. */
  readonly commits: readonly number[];
  /** What was left alone because owners died over it; then the rest is not judged. */
  readonly convicted: readonly string[];
}

/** Holds what is left of a world against everything that was promised. */
export function violationsOf(seed: number, folder: string, remainder: Remainder): Findings {
  const { log, ledger } = filesOf(folder);
  const { people, end: copy, quietAt } = remainder;
  const journals = new Journals(copy);
  const evidence: Evidence = {
    remainder,
    copy,
    journals,
    // What came later was said while everything was removed.
    log: [...readLines<Told>(log), ...people.remote.log].filter(({ at }) => at <= quietAt),
    ledger: [...readLines<LedgerLine>(ledger), ...people.remote.ledger],
  };
  const world = recordedWorld(seed, evidence);
  const commits = world.history.flatMap((entry) => (entry.kind === "commit" ? entry.at : []));
  const { guilty, wrongly } = convictionsIn(world);
  const unfair = wrongly.map((entity) => `${entity} was left alone, and fewer than three owners died over it`);
  // What was left alone, and whoever waits for it, does not end before somebody lets it go on.
  if (guilty.length > 0) return { violations: unfair, commits, convicted: guilty };
  const violations = [
    ...remainder.wrong,
    ...(copy.integrity() === "ok" ? [] : [`the file is damaged: ${copy.integrity()}`]),
    ...journals.gaps,
    ...witness(world, evidence),
    ...outcomes(evidence),
    ...effects(evidence),
    ...deliveries(evidence),
    ...views(evidence),
    ...streams(evidence),
    ...restart(evidence),
    ...removal(evidence),
    ...check(world).map(({ invariant, message }) => `${invariant} ${message}`),
  ];
  return { violations, commits, convicted: [] };
}

/** Lines of JSON, each whole or torn by a kill. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- who names the file knows what is in it
function readLines<Line>(file: string): readonly Line[] {
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
      const id = entityId(entity);
      noted.set(id, [...(noted.get(id) ?? []), ...events]);
    }
  }
  for (const [id, events] of noted) {
    const found = journals.events.get(id) ?? [];
    if (JSON.stringify(found) !== JSON.stringify(events)) yield `The journal of ${id} is not what its commits wrote`;
  }
  for (const id of journals.events.keys()) if (!noted.has(id)) yield `No commit wrote the journal of ${id}`;
}

/** Everything that was accepted has ended, as it must and with the right output; so have the children. */
function* outcomes({ remainder, journals }: Evidence): Iterable<string> {
  const { people, views } = remainder;
  const kinds = new Map([...KINDS, ...CALLED].map((kind) => [kind.definition.name, kind]));
  for (const { id, kind, input } of people.runs) {
    const view = views.executions.get(id);
    if (view?.execution_id !== id) yield `${kind.definition.name} ${id} was accepted, and is not there`;
    else if (!same(view.input, input) && !isLarge(view.input)) yield `${id} has another input than was given`;
  }
  for (const [id, view] of views.executions) {
    const kind = kinds.get(view.workflow);
    const { status, input, nodes } = view;
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
      const attempts = wanted + deadlinesOf(node, journals.events.get(id) ?? []);
      const attempt = nodes[node]?.["attempt"];
      if (attempt !== attempts) yield `${node} of ${name} took ${text(attempt!)} attempts, and must take ${attempts}`;
    }
  }
}

/** How many attempts of a node a deadline ended: while nobody was there, time went on. */
function deadlinesOf(node: string, events: readonly ExecutionEvent[]): number {
  return events.filter((event) => event.kind === "taskFailed" && event.node === node && event.deadline !== undefined)
    .length;
}

/** What was to be done outside was done at least once, under the one key that it has, and nothing else was. */
function* effects({ remainder, ledger }: Evidence): Iterable<string> {
  const done = new Map<string, Set<string>>();
  for (const { kind, execution, key } of ledger) {
    if (kind === "done") done.set(execution, (done.get(execution) ?? new Set()).add(key));
  }
  for (const { id, kind, input } of remainder.people.runs) {
    const expected = kind.expected(input).keys;
    if (expected === undefined) continue;
    const found = [...(done.get(id) ?? [])].map((key) => key.slice(id.length + 1));
    const missing = expected.filter((key) => !found.includes(key));
    const extra = found.filter((key) => !expected.includes(key));
    const name = `${kind.definition.name} ${id}`;
    if (missing.length > 0) yield `${name} ended, and ${missing.join(", ")} were never done`;
    if (extra.length > 0) yield `${name} did ${extra.join(", ")}, which nobody wanted`;
  }
}

/**
 * A process hands out and runs a dispatch once; another may do so again, because the queue died with the one before. A
 * piece of work has one key, however often it is tried, and the ledger knows no others.
 */
function* deliveries({ log, ledger }: Evidence): Iterable<string> {
  const seen = new Set<string>();
  const keys = new Map<string, string>();
  for (const told of log) {
    if (told.kind !== "delivered" && told.kind !== "handlerStart") continue;
    const name = `${told.pid} ${told.kind} ${told.token}`;
    if (seen.has(name)) yield `Process ${told.pid}: ${told.kind} of ${told.token} twice`;
    seen.add(name);
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
function* views({ remainder, journals }: Evidence): Iterable<string> {
  const { executions, lists, events } = remainder.views;
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
function* streams({ remainder }: Evidence): Iterable<string> {
  for (const [id, heard] of remainder.people.heard) {
    const events = remainder.views.events.get(id)!.map((event) => {
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

/** Another start changes nothing: not what clients see, and not what is stored. */
function* restart({ remainder, copy }: Evidence): Iterable<string> {
  const { views: before, viewsAgain: after } = remainder;
  for (const field of ["executions", "outputs", "events"] as const) {
    if (before[field].size !== after[field].size) yield `After another start there are ${after[field].size} ${field}`;
    for (const [id, seen] of before[field]) {
      const again = after[field].get(id);
      if (again === undefined || !same(again, seen)) yield `${field} of ${id} changed by another start`;
    }
  }
  for (const [name, list] of Object.entries(before.lists)) {
    if (!same(list, after.lists[name as keyof Views["lists"]])) yield `The list of ${name} changed by another start`;
  }
  const truth = copy.truth();
  for (const [table, rows] of Object.entries(remainder.between.truth())) {
    const known = new Set(rows);
    const now = truth[table]!;
    if (now.length !== rows.length || now.some((row) => !known.has(row))) {
      const changed = now.find((row) => !known.has(row)) ?? "fewer rows";
      yield `Another start changed the table ${table}: ${changed.slice(0, 300)}`;
    }
  }
}

/** What has been over for long is gone with all that belonged to it, and with nothing else. */
function* removal({ remainder, copy }: Evidence): Iterable<string> {
  const { removed } = remainder;
  if (removed === undefined) return;
  const left = removed.leftOvers();
  if (left.length > 0) yield `${left.length} rows were not removed, such as ${left[0]!.slice(0, 200)}`;
  if (removed.integrity() !== "ok") yield `the file is damaged by what was removed: ${removed.integrity()}`;
  const lasting = ({ records, published }: Truth): readonly string[] => [
    ...records!.filter((row) => !row.startsWith('{"scope":"execution/')),
    ...published!,
  ];
  const known = new Set(lasting(removed.truth()));
  for (const row of lasting(copy.truth())) if (!known.has(row)) yield `This was removed too: ${row.slice(0, 200)}`;
}

function isLarge(value: Json): boolean {
  return typeof value === "object" && value !== null && "$large" in value;
}

function text(value: Json): string {
  return JSON.stringify(value).slice(0, 200);
}
