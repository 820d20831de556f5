import { spawn } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { INVARIANTS } from "../../src/simulator/checker/check.ts";
import { MUTANTS } from "./mutants.ts";

/** How many schedules a bug may survive. */
const MOST_SCHEDULES = 2000;

interface Caught {
  readonly mutant: string;
  readonly schedules: number;
  /** The invariants that the first failing schedule broke, in the order in which they were found. */
  readonly invariants: readonly string[];
  readonly message: string;
}

const ROOT = join(import.meta.dirname, "..", "..");

/** Simulates with one bug put in, until something is violated. */
function simulate(mutant: string, seed: number): Promise<Caught> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        "--import",
        join(ROOT, "test/mutants/hook.ts"),
        join(ROOT, "src/simulator/main.ts"),
        "--first",
        "--json",
        `--schedules=${MOST_SCHEDULES}`,
        `--seed=${seed}`,
        "--processes=1",
      ],
      { env: { ...process.env, MILLRACE_MUTANT: mutant } },
    );
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk) => (out += String(chunk)));
    child.stderr.on("data", (chunk) => (err += String(chunk)));
    child.on("error", reject);
    child.on("close", (code) => {
      if (code === 0) return resolve({ mutant, schedules: MOST_SCHEDULES, invariants: [], message: "" });
      try {
        const { schedules, failures } = JSON.parse(out) as {
          schedules: number;
          failures: { violations: { invariant: string; message: string }[] }[];
        };
        const violations = failures[0]!.violations;
        const invariants = [...new Set(violations.map((violation) => violation.invariant))];
        resolve({ mutant, schedules, invariants, message: violations[0]!.message.split("\n")[0]! });
      } catch {
        // An unhandled rejection or an endless loop is a way of being caught too, but it must be the simulation's.
        if (err.includes("does not fit") || err.includes("there is no mutant")) reject(new Error(err));
        else
          resolve({
            mutant,
            schedules: 0,
            invariants: ["CRASH"],
            message: err.split("\n").find((line) => /Error/.test(line)) ?? err,
          });
      }
    });
  });
}

const KNOWN: ReadonlySet<string> = new Set(INVARIANTS.map(({ id }) => id));

/**
 * For each invariant the bugs that no other would have noticed, in the world that showed them. What the engine asserts of
 * itself is none.
 */
function whoCaughtWhat(results: readonly Caught[]): string {
  const own = ({ invariants }: Caught): readonly string[] => invariants.filter((id) => KNOWN.has(id));
  const alone = Map.groupBy(
    results.filter((caught) => own(caught).length === 1),
    (caught) => own(caught)[0]!,
  );
  const lines = INVARIANTS.map(({ id, name }) => {
    const mutants = alone.get(id)?.map(({ mutant }) => mutant) ?? [];
    const helped = results.filter(({ invariants }) => invariants.includes(id)).length;
    const said = mutants.length > 0 ? `alone: ${mutants.join(", ")}` : `never alone, together with others ${helped}`;
    return `${id.padEnd(14)} ${name.padEnd(40)} ${said}\n`;
  });
  return `which invariant caught what\n${lines.join("")}`;
}

const { values } = parseArgs({
  options: { only: { type: "string" }, seed: { type: "string", default: "1" } },
});
const chosen = MUTANTS.filter(({ name }) => values.only === undefined || values.only.split(",").includes(name));
process.stdout.write(`${chosen.length} of ${MUTANTS.length} mutants; all of them: npm run mutants\n`);
const results: Caught[] = [];
const queue = [...chosen];
await Promise.all(
  [1, 2].map(async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const caught = await simulate(next.name, next.firstSeed ?? Number(values.seed));
      results.push(caught);
      const verdict =
        caught.invariants.length === 0 ? "SURVIVED" : `${caught.invariants.join(" ")} after ${caught.schedules}`;
      process.stdout.write(`${next.name.padEnd(30)} ${verdict}  ${caught.message.slice(0, 140)}\n`);
    }
  }),
);
if (values.only === undefined) process.stdout.write(`\n${whoCaughtWhat(results)}`);
const survived = results.filter(({ invariants }) => invariants.length === 0);
process.stdout.write(
  `\n${results.length} mutants, ${results.length - survived.length} caught, ${survived.length} survived\n`,
);
process.stdout.write(`${results.length - survived.length} passed, ${survived.length} failed\n`);
process.exitCode = survived.length > 0 ? 1 : 0;
