import { spawnSync } from "node:child_process";
import { join } from "node:path";

/** They prove that the simulation can fail. The others take up to 2,000 schedules each: `npm run mutants` has all. */
const QUICK_MUTANTS: readonly string[] = [
  "bucket-fills-too-fast",
  "budget-forgets-who-is-under-way",
  "cache-goes-by-handler",
  "caught-failure-stops-all",
  "close-forgets-revoke",
  "condition-on-error-inverted",
  "consume-more-than-decided",
  "continue-is-fail-branch",
  "dead-letter-forgotten",
  "dispatch-after-close",
  "dispatch-before-commit",
  "fail-fast-forgotten",
  "failure-does-not-spread",
  "fenced-is-fine",
  "join-on-first-parent",
  "key-changes-with-attempt",
  "late-result-counts",
  "load-without-advance",
  "lost-worker-burns-attempt",
  "lost-worker-keeps-its-place",
  "mail-after-commit",
  "more-places-than-there-are",
  "no-wake-for-work",
  "one-attempt-too-many",
  "output-of-the-wrong-parent",
  "poison-never-ends",
  "request-not-remembered",
  "snapshot-ahead",
  "timer-fires-early",
  "wake-only-later",
];

/** Everything that has to hold, in one command. Stops at the first step that fails. */
const STEPS: readonly (readonly [name: string, command: readonly string[]])[] = [
  ["types", ["tsc", "--noEmit"]],
  ["lint", ["oxlint", "--type-aware"]],
  ["format", ["oxfmt", "--check"]],
  ["tests, with real SQLite, Postgres and Redis", ["vitest", "run"]],
  ["2,000 simulated schedules with fresh seeds", ["node", "src/simulator/main.ts", "--schedules", "2000"]],
  ["deliberate bugs that a few schedules show", ["node", "test/mutants/run.ts", "--only", QUICK_MUTANTS.join(",")]],
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
