import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** What has to hold and does not fit into `npm test`: at most 75 minutes on two cores. Goes on after a step that fails. */
const MINUTES = "10";
const STEPS: readonly (readonly [name: string, args: readonly string[]])[] = [
  ["the nemesis on Redis", ["test/nemesis/main.ts", "--store", "redis", "--minutes", MINUTES]],
  ["the nemesis on Postgres", ["test/nemesis/main.ts", "--store", "postgres", "--minutes", MINUTES]],
  [
    "the nemesis on Redis with an archive in Postgres",
    ["test/nemesis/main.ts", "--store", "redis-postgres", "--minutes", MINUTES],
  ],
  ["the nemesis on a Redis that loses everything", ["test/nemesis/main.ts", "--loss", "--minutes", "4"]],
  ["deliberate bugs, each of which the simulation must catch", ["test/mutants/run.ts"]],
  ["deliberate bugs that only a fleet shows", ["test/nemesis/main.ts", "--mutants"]],
  ["wide and many on Redis", ["test/nemesis/wide.ts", "--store", "redis"]],
  ["wide and many on Postgres", ["test/nemesis/wide.ts", "--store", "postgres"]],
  ["200 kills of the embedded server", ["test/crash/main.ts", "--kills", "200"]],
];

const root = join(import.meta.dirname, "..");
const only = process.argv.slice(2);
const failed: string[] = [];
for (const [name, args] of STEPS) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
  process.stdout.write(`\n── ${name}\n`);
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: "inherit" });
  if (status !== 0) failed.push(name);
}
process.stdout.write(failed.length === 0 ? "\nall of it holds\n" : `\nFAILED: ${failed.join("; ")}\n`);
process.exit(failed.length === 0 ? 0 : 1);
