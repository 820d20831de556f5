import { parseArgs } from "node:util";
import { ALL_NAMES } from "./failpoints.ts";
import { MUTANTS } from "./mutants.ts";
import { summary } from "./summary.ts";
import { sweep, type Verdict } from "./sweep.ts";
import { worldsOf } from "./worlds.ts";

/**
 * The crash sweep at any length: `npm run crash -- --kills 500`. Each world dies at some failpoints in turn; when one
 * fails it prints the command that repeats it.
 */
const { values } = parseArgs({
  options: {
    kills: { type: "string" },
    seed: { type: "string" },
    /** One or several, in this order; each kill takes the next. With `@3` at the third hit. */
    failpoint: { type: "string" },
    mutant: { type: "string" },
    keep: { type: "boolean", default: false },
    list: { type: "boolean", default: false },
  },
});

function fail(sentence: string): never {
  process.stderr.write(`${sentence}\n`);
  process.exit(2);
}

if (values.list) {
  process.stdout.write(`${ALL_NAMES.join("\n")}\n`);
  process.exit();
}
const chosen = values.failpoint?.split(",");
const unknown = chosen?.find((place) => !ALL_NAMES.includes(place.split("@")[0]!));
if (unknown !== undefined) fail(`there is no failpoint ${unknown}; --list shows them all`);
if (values.mutant !== undefined && !MUTANTS.some(({ name }) => name === values.mutant)) {
  fail(`there is no mutant ${values.mutant}: ${MUTANTS.map(({ name }) => name).join(", ")}`);
}
const seed = Number(values.seed ?? Math.floor(Math.random() * 1e6));
const kills = Number(values.kills ?? chosen?.length ?? ALL_NAMES.length);
const verdicts: Verdict[] = [];
for (const options of worldsOf(seed, kills, chosen)) {
  const verdict = await sweep({ ...options, mutant: values.mutant }, values.keep ? "always" : undefined);
  verdicts.push(verdict);
  const { violations, command, folder } = verdict;
  const said = violations.length === 0 ? "ok" : ["FAILED", ...violations.slice(0, 20), command].join("\n  ");
  process.stdout.write(`seed ${options.seed}: ${verdict.kills.join(" ")}: ${said}\n`);
  if (folder !== undefined) process.stdout.write(`  its files are in ${folder}\n`);
}
process.stdout.write(`${summary(verdicts)}\n`);
process.exit(verdicts.some(({ violations }) => violations.length > 0) ? 1 : 0);
