import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { extname } from "node:path";
import { parseArgs } from "node:util";
import { judge, shrink, type Verdict } from "./campaign.ts";
import type { ScheduleOptions } from "./schedule.ts";
import { readForSimulation, type SimulatedWorkflow } from "./user-workflow.ts";

const USAGE = `usage: npm run simulate -- [options]
  --schedules N    how many worlds to run (2000)
  --seed S         the first seed (drawn from the clock; printed)
  --dag FILE       attack this workflow instead of generated ones (JSON or YAML)
  --input JSON     its input
  --executions N   executions per world (5 to 10, children not counted)
  --faults 1,4,7   only these faults of the seed's plan
  --processes N    how many worlds at a time (one per core)
  --first          stop at the first violation
  --json           print the summary as JSON
exit: 0 nothing was violated, 1 something was, 2 usage`;

/** A world takes a second, and many on a busy machine: one that takes so long turns in circles, and somebody waits for it. */
const STUCK_MS = 600_000;

interface Plan {
  readonly from: number;
  readonly count: number;
  readonly step: number;
  readonly options: Omit<ScheduleOptions, "seed" | "keepFaults">;
  readonly faults: readonly number[] | null;
  readonly first: boolean;
}

interface Summary {
  schedules: number;
  live: number;
  steps: number;
  executions: number;
  readonly faults: Map<string, number>;
  readonly events: Map<string, number>;
  readonly features: Map<string, number>;
  readonly failures: Verdict[];
}

if (process.send !== undefined && process.argv[2] === "--child") {
  process.once("message", (plan) => void work(plan as Plan));
} else {
  process.exitCode = await main(process.argv.slice(2));
}

/** A child's part: every n-th seed, one verdict a message. */
async function work(plan: Plan): Promise<void> {
  for (let i = 0; i < plan.count; i++) {
    const verdict = await judge({
      ...plan.options,
      seed: plan.from + i * plan.step,
      ...(plan.faults !== null && { keepFaults: new Set(plan.faults) }),
    });
    await new Promise<void>((resolve) => void process.send!(verdict, () => resolve()));
    if (plan.first && verdict.violations.length > 0) break;
  }
  process.disconnect();
}

async function main(argv: readonly string[]): Promise<number> {
  let values;
  try {
    ({ values } = parseArgs({
      args: [...argv],
      options: {
        schedules: { type: "string", default: "2000" },
        seed: { type: "string" },
        dag: { type: "string" },
        input: { type: "string" },
        executions: { type: "string" },
        faults: { type: "string" },
        processes: { type: "string" },
        first: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    }));
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}\n`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(`${USAGE}\n`);
    return 0;
  }
  const count = Number(values.schedules);
  const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed);
  if (!Number.isSafeInteger(count) || count < 1 || !Number.isSafeInteger(seed)) {
    process.stderr.write(`--schedules and --seed take whole numbers\n${USAGE}\n`);
    return 2;
  }
  let options: Plan["options"];
  try {
    options = {
      ...(values.dag !== undefined && readWorkflow(values.dag)),
      ...(values.input !== undefined && { input: JSON.parse(values.input) as never }),
      ...(values.executions !== undefined && { executions: Number(values.executions) }),
    };
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return 2;
  }
  const faults = values.faults === undefined ? null : values.faults.split(",").map(Number);
  const processes = Math.min(count, Number(values.processes ?? availableParallelism()));
  const plans = Array.from({ length: processes }, (_, i): Plan => {
    const own = Math.ceil((count - i) / processes);
    return { from: seed + i, count: own, step: processes, options, faults, first: values.first };
  });
  if (!values.json) process.stdout.write(`${count} schedules from seed ${seed}, ${processes} at a time\n`);
  const startedAtMs = performance.now();
  const summary = await runAll(plans, values.json);
  const seconds = (performance.now() - startedAtMs) / 1000;
  if (values.json) process.stdout.write(`${JSON.stringify(plain(summary, seconds))}\n`);
  else await report(summary, seconds, options);
  return summary.failures.length > 0 ? 1 : 0;
}

async function runAll(plans: readonly Plan[], quiet: boolean): Promise<Summary> {
  const summary: Summary = {
    schedules: 0,
    live: 0,
    steps: 0,
    executions: 0,
    faults: new Map(),
    events: new Map(),
    features: new Map(),
    failures: [],
  };
  let isEnough = false;
  const children = plans.map((plan) => {
    const child = fork(import.meta.filename, ["--child"], { execArgv: process.execArgv });
    child.send(plan);
    return { plan, child };
  });
  await Promise.all(
    children.map(
      ({ plan, child }) =>
        new Promise<void>((resolve, reject) => {
          let done = 0;
          const watchdog = setTimeout(() => void child.kill("SIGKILL"), STUCK_MS);
          child.on("message", (message) => {
            done++;
            watchdog.refresh();
            const verdict = message as Verdict;
            add(summary, verdict);
            // At once: a long run may be ended before it has come to its report.
            if (!quiet && verdict.violations.length > 0) process.stdout.write(`  ${brief(verdict)}\n`);
            if (!quiet && summary.schedules % 1000 === 0) process.stdout.write(`  ${summary.schedules} …\n`);
            if (!plan.first || summary.failures.length === 0) return;
            isEnough = true;
            for (const other of children) other.child.kill();
          });
          child.on("exit", (code, signal) => {
            clearTimeout(watchdog);
            if (done < plan.count && !isEnough) {
              reject(new Error(`the process for seed ${plan.from + done * plan.step} died: ${code ?? signal}`));
            } else resolve();
          });
        }),
    ),
  );
  return summary;
}

function add(summary: Summary, verdict: Verdict): void {
  summary.schedules++;
  summary.steps += verdict.steps;
  summary.executions += verdict.executions;
  if (verdict.liveness) summary.live++;
  for (const [kind, count] of verdict.faults) summary.faults.set(kind, (summary.faults.get(kind) ?? 0) + count);
  for (const [kind, count] of verdict.events) summary.events.set(kind, (summary.events.get(kind) ?? 0) + count);
  for (const [name, count] of verdict.features) summary.features.set(name, (summary.features.get(name) ?? 0) + count);
  if (verdict.violations.length > 0) summary.failures.push(verdict);
}

function brief({ seed, violations }: Verdict): string {
  const { invariant, message } = violations[0]!;
  return `seed ${seed} ${invariant} ${message.split("\n")[0]}`;
}

async function report(summary: Summary, seconds: number, options: Plan["options"]): Promise<void> {
  const list = (counts: ReadonlyMap<string, number>): string =>
    [...counts]
      .sort(([, a], [, b]) => b - a)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(", ");
  const out = process.stdout;
  out.write(
    `\n${summary.schedules} schedules in ${seconds.toFixed(1)} s, ${summary.live} of them healed and had to end\n`,
  );
  out.write(`${summary.executions} executions, ${summary.steps} steps\n`);
  out.write(`faults: ${list(summary.faults)}\nevents: ${list(summary.events)}\n`);
  const isPair = (name: string): boolean => name.startsWith("join: ");
  const features = [...summary.features];
  const pairs = features.filter(([name]) => isPair(name)).map(([name, count]) => [name.slice(6), count] as const);
  out.write(`exercised: ${list(new Map(features.filter(([name]) => !isPair(name))))}\n`);
  out.write(`joins × strategies that came to their end in peace: ${list(new Map(pairs))}\n`);
  out.write(`violations: ${summary.failures.length}\n`);
  for (const failure of summary.failures.slice(0, 3)) {
    out.write(`\nseed ${failure.seed}\n`);
    for (const { invariant, message } of failure.violations.slice(0, 5)) out.write(`  ${invariant} ${message}\n`);
    const small = await shrink({ ...options, seed: failure.seed }, failure.violations[0]!.invariant);
    out.write(`  again: npm run simulate -- --schedules 1 --seed ${failure.seed}`);
    if (small.executions !== undefined) out.write(` --executions ${small.executions}`);
    out.write(` --faults ${[...(small.keepFaults ?? [])].join(",")}\n`);
  }
  for (const failure of summary.failures.slice(3)) {
    out.write(`${brief(failure)}\n`);
  }
}

function plain(summary: Summary, seconds: number): object {
  return {
    ...summary,
    seconds,
    faults: Object.fromEntries(summary.faults),
    events: Object.fromEntries(summary.events),
    features: Object.fromEntries(summary.features),
  };
}

function readWorkflow(file: string): SimulatedWorkflow {
  return readForSimulation(readFileSync(file, "utf8"), /^\.ya?ml$/.test(extname(file)) ? "yaml" : "json");
}
