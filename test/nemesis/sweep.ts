import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brokenPromises, readLines } from "../world/checks.ts";
import { convictionsIn } from "../world/convictions.ts";
import type { LedgerLine, Told } from "../world/notes.ts";
import type { People } from "../world/people.ts";
import type { Loss } from "./loss.ts";
import { brokenByLoss, figuresOf, isExpected, type LossFigures } from "./loss-checks.ts";
import { lostTooSoon } from "./lost-too-soon.ts";
import { recordedWorld } from "./recorded-world.ts";
import { type Times, timesOf } from "./times.ts";
import { runWorld, type WorldOptions } from "./world.ts";

export interface Verdict {
  readonly seed: number;
  readonly store: string;
  /** What was done, blow by blow. */
  readonly blows: readonly string[];
  readonly kills: number;
  readonly executions: number;
  readonly events: number;
  readonly violations: readonly string[];
  /** What was left alone because owners died over it, by right; then the rest is not judged. */
  readonly convicted: readonly string[];
  readonly times: Times;
  /** Of a world that has lost its store. */
  readonly lost?: LossFigures;
  readonly seconds: number;
  /** How to see it again. */
  readonly command: string;
  /** Where its files are, if they were kept. */
  readonly folder?: string;
}

/** One world from its seed to its verdict. Its files stay if something is wrong, for whoever wants to know. */
export async function sweep(
  options: Omit<WorldOptions, "folder">,
  keep: "always" | "if it fails" | "never" = "if it fails",
): Promise<Verdict> {
  const startedAtMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "millrace-nemesis-"));
  const { seed, store, mutant, loses = false } = options;
  const where = loses ? "--loss" : `--store ${store}`;
  const command = `npm run nemesis -- --seed ${seed} ${where}${mutant === undefined ? "" : ` --mutant ${mutant.name}`}`;
  try {
    const judged = judge(seed, folder, await runWorld({ ...options, folder }));
    const isKept = keep === "always" || (keep === "if it fails" && judged.violations.length > 0);
    if (!isKept) rmSync(folder, { recursive: true });
    const seconds = (performance.now() - startedAtMs) / 1_000;
    return { seed, store, command, seconds, ...judged, ...(isKept && { folder }) };
  } catch (error) {
    throw new Error(`${command} broke; its files are in ${folder}`, { cause: error });
  }
}

type Judged = Pick<
  Verdict,
  "blows" | "kills" | "executions" | "events" | "violations" | "convicted" | "times" | "lost"
>;

function judge(seed: number, folder: string, remainder: Awaited<ReturnType<typeof runWorld>>): Judged {
  const { people, views, found, lives, blows, loss } = remainder;
  const logs = [...lives.map((life) => life.log), ...(loss === undefined ? [] : [loss.log])];
  const log = logs.flatMap((file) => readLines<Told>(file)).sort((one, other) => one.at - other.at);
  const recorded = recordedWorld(seed, remainder, log);
  const { world } = recorded;
  const { guilty, wrongly } = convictionsIn(world);
  const unfair = wrongly.map((entity) => `${entity} was left alone, and fewer than three owners died over it`);
  const evidence = {
    people: loss === undefined ? people : { runs: people.runs, heard: heardByAll(loss, people) },
    views,
    journals: found.journals,
    log,
    ledger: readLines<LedgerLine>(join(folder, "ledger")),
  };
  return {
    blows: blows.map(({ kind }) => kind),
    kills: blows.filter(({ kind }) => /kill|SIGTERM|shutdown/.test(kind)).length,
    executions: views.executions.size,
    events: [...found.journals.events.values()].reduce((sum, events) => sum + events.length, 0),
    // What was left alone, and whoever waits for it, does not end before somebody lets it go on.
    violations:
      guilty.length > 0
        ? unfair
        : [
            ...remainder.wrong,
            ...collected(lostTooSoon(world)),
            ...(loss === undefined ? [] : collected(brokenByLoss(loss, recorded.lives!, found.journals))),
            ...[...collected(brokenPromises(world, evidence))].filter((finding) => {
              return recorded.lives === undefined || !isExpected(finding, recorded.lives.survivors);
            }),
          ],
    convicted: guilty,
    times: timesOf(world, remainder, log),
    ...(loss !== undefined && { lost: figuresOf(loss, recorded.lives!) }),
  };
}

/** Who followed an execution to an end that was forgotten has heard of another life of it. */
function heardByAll({ first, archived }: Loss, second: People): People["heard"] {
  const isKept = (id: string, heard: readonly string[]): boolean => {
    const last = archived.records.get(`execution/${id}`)?.at(-1);
    return last !== undefined && last.version + last.count - 1 >= heard.length;
  };
  return new Map([...[...first.heard].filter(([id, heard]) => isKept(id, heard)), ...second.heard]);
}

/** What is too broken to be looked at is a finding as well. */
function* collected(findings: Iterable<string>): Iterable<string> {
  try {
    yield* findings;
  } catch (error) {
    yield `It cannot be judged: ${String(error)}`;
  }
}
