import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** Everything that has to hold, in one command. Stops at the first step that fails. */
const STEPS: readonly (readonly [name: string, command: readonly string[]])[] = [
  ["types", ["tsc", "--noEmit"]],
  ["lint", ["oxlint", "--type-aware"]],
  ["format", ["oxfmt", "--check"]],
  ["tests, with real SQLite, Postgres and Redis", ["vitest", "run"]],
  ["2,000 simulated schedules with fresh seeds", ["node", "src/simulator/main.ts", "--schedules", "2000"]],
  ["deliberate bugs, a sample, each of which must be caught", ["node", "test/mutants/run.ts", "--sample", "30"]],
];

const root = join(import.meta.dirname, "..");
const only = process.argv.slice(2);
for (const [name, [program, ...args]] of STEPS) {
  if (only.length > 0 && !only.some((word) => name.includes(word))) continue;
  process.stdout.write(`\n── ${name}\n`);
  const startedAtMs = performance.now();
  const bin = join(root, "node_modules", ".bin", program!);
  const { status, error } = spawnSync(bin, args, { cwd: root, stdio: "inherit" });
  if (error !== undefined) throw error;
  process.stdout.write(`── ${name}: ${status === 0 ? "ok" : "FAILED"} in ${seconds(startedAtMs)} s\n`);
  if (status !== 0) {
    process.exitCode = status ?? 1;
    break;
  }
}

function seconds(sinceMs: number): string {
  return ((performance.now() - sinceMs) / 1000).toFixed(1);
}
