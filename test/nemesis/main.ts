import { parseArgs } from "node:util";
import { MUTANTS } from "./mutants.ts";
import { notice } from "./notice.ts";
import { report } from "./report.ts";
import { STORE_KINDS, type StoreKind } from "./stores.ts";
import { sweep, type Verdict } from "./sweep.ts";

/**
 * The nemesis at any length: `npm run nemesis -- --minutes 10 --store redis`. One world after another, each with a seed of
 * its own; one that fails prints the command that repeats it and keeps its files. `--loss` for worlds whose Redis is lost.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: "string" },
    store: { type: "string" },
    seed: { type: "string" },
    mutant: { type: "string" },
    /** Each deliberate bug in turn: it fails if one is not noticed. */
    mutants: { type: "boolean", default: false },
    /** The store loses everything, and is made again from its archive. */
    loss: { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
  },
});

function fail(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}

const mutant = MUTANTS.find(({ name }) => name === values.mutant);
const loses = values.loss || mutant?.loses === true;
const { store = mutant?.store ?? (loses ? "redis-postgres" : "redis") } = values;
if (loses && store !== "redis-postgres") fail("only a Redis with an archive is made again when it is lost");
if (!(STORE_KINDS as readonly string[]).includes(store)) fail(`there is no store ${store}: ${STORE_KINDS.join(", ")}`);
if (values.mutant !== undefined && mutant === undefined) {
  fail(`there is no mutant ${values.mutant}: ${MUTANTS.map(({ name }) => name).join(", ")}`);
}
if (values.mutants) process.exit((await noticeAll()) ? 0 : 1);
const untilMs = performance.now() + Number(values.minutes ?? 0) * 60_000;
const verdicts: Verdict[] = [];
let seed = Number(values.seed ?? Math.floor(Math.random() * 1e6));
do {
  const options = {
    seed: seed++,
    store: store as StoreKind,
    mutant,
    loses,
    takesTimes: mutant === undefined && !loses,
  };
  const verdict = await sweep(options, values.keep ? "always" : undefined);
  verdicts.push(verdict);
  const { violations, command, folder, kills, executions, seconds } = verdict;
  const said = violations.length === 0 ? "ok" : ["FAILED", ...violations.slice(0, 20), command].join("\n  ");
  const what = `${kills} kills, ${executions} executions, ${Math.round(seconds)} s`;
  process.stdout.write(`seed ${verdict.seed}: ${what}: ${said}\n`);
  if (folder !== undefined) process.stdout.write(`  its files are in ${folder}\n`);
} while (performance.now() < untilMs);
process.stdout.write(`\n${report(verdicts)}\n`);
process.exit(verdicts.some(({ violations }) => violations.length > 0) ? 1 : 0);

async function noticeAll(): Promise<boolean> {
  let isRight = true;
  for (const bug of MUTANTS) {
    const sentence = await notice(bug, Math.floor(Math.random() * 1e6));
    isRight &&= sentence !== undefined;
    process.stdout.write(`${bug.name}: ${sentence === undefined ? "NOT NOTICED" : `noticed: ${sentence}`}\n`);
  }
  return isRight;
}
