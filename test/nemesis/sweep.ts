import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brokenPromises, readLines } from "../world/checks.ts";
import { convictionsIn } from "../world/convictions.ts";
import type { LedgerLine, Told } from "../world/notes.ts";
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
  const { seed, store, mutant } = options;
  const command = `npm run nemesis -- --seed ${seed} --store ${store}${mutant === undefined ? "" : ` --mutant ${mutant.name}`}`;
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

type Judged = Pick<Verdict, "blows" | "kills" | "executions" | "events" | "violations" | "convicted" | "times">;

function judge(seed: number, folder: string, remainder: Awaited<ReturnType<typeof runWorld>>): Judged {
  const { people, views, found, lives, blows } = remainder;
  const log = lives.flatMap((life) => readLines<Told>(life.log)).sort((one, other) => one.at - other.at);
  const world = recordedWorld(seed, remainder, log);
  const { guilty, wrongly } = convictionsIn(world);
  const unfair = wrongly.map((entity) => `${entity} was left alone, and fewer than three owners died over it`);
  const evidence = {
    people,
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
        : [...remainder.wrong, ...collected(lostTooSoon(world)), ...collected(brokenPromises(world, evidence))],
    convicted: guilty,
    times: timesOf(world, remainder, log),
  };
}

/** What is too broken to be looked at is a finding as well. */
function* collected(findings: Iterable<string>): Iterable<string> {
  try {
    yield* findings;
  } catch (error) {
    yield `It cannot be judged: ${String(error)}`;
  }
}
