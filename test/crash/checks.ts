import { parseToken } from "../../src/core/token.ts";
import { sameJson as same } from "../../src/simulator/checker/same-json.ts";
import { brokenPromises, readLines } from "../world/checks.ts";
import { convictionsIn } from "../world/convictions.ts";
import { Journals } from "../world/journals.ts";
import type { LedgerLine, Told } from "../world/notes.ts";
import type { Views } from "../world/views.ts";
import { type CrashEvidence, recordedWorld } from "./recorded-world.ts";
import { filesOf } from "./server.ts";
import type { Truth } from "./store-copy.ts";
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
  const { people, remote, end: copy, quietAt } = remainder;
  const journals = new Journals(copy.journals());
  const evidence: CrashEvidence = {
    people,
    views: remainder.views,
    remainder,
    copy,
    journals,
    // What came later was said while everything was removed.
    log: [...readLines<Told>(log), ...remote.log].filter(({ at }) => at <= quietAt),
    ledger: [...readLines<LedgerLine>(ledger), ...remote.ledger],
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
    ...deliveries(evidence),
    ...refusals(evidence),
    ...restart(evidence),
    ...removal(evidence),
    ...brokenPromises(world, evidence),
  ];
  return { violations, commits, convicted: [] };
}

/** A process hands out and runs a dispatch once; another may do so again, because the queue died with the one before. */
function* deliveries({ log }: CrashEvidence): Iterable<string> {
  const seen = new Set<string>();
  for (const told of log) {
    if (told.kind !== "delivered" && told.kind !== "handlerStart") continue;
    const name = `${told.pid} ${told.kind} ${told.token}`;
    if (seen.has(name)) yield `Process ${told.pid}: ${told.kind} of ${told.token} twice`;
    seen.add(name);
  }
}

/** A result is only refused if the deadline of its attempt was over. */
function* refusals({ remainder, journals }: CrashEvidence): Iterable<string> {
  for (const name of remainder.remote.late) {
    const token = parseToken(name)!;
    const isOver = journals.events
      .get(token.execution)!
      .some(
        (event) =>
          event.kind === "taskFailed" &&
          event.deadline !== undefined &&
          event.node === token.instance &&
          event.attempt === token.attempt,
      );
    if (!isOver) yield `The result of ${name} was refused, and its attempt had not come to its deadline`;
  }
}

/** Another start changes nothing: not what clients see, and not what is stored. */
function* restart({ remainder, copy }: CrashEvidence): Iterable<string> {
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
function* removal({ remainder, copy }: CrashEvidence): Iterable<string> {
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
