import { contentHash } from "../json/hash.ts";
import { check } from "./checker/check.ts";
import { countFeatures } from "./features.ts";
import type { Violation, World } from "./history.ts";
import { runSchedule, type ScheduleOptions, type ScheduleResult } from "./schedule.ts";

/** What one schedule showed. */
export interface Verdict {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly steps: number;
  readonly liveness: boolean;
  readonly executions: number;
  readonly faults: readonly (readonly [string, number])[];
  /** Kinds of events that were committed, and how often. */
  readonly events: readonly (readonly [string, number])[];
  /** What it exercised, and how often. */
  readonly features: readonly (readonly [string, number])[];
}

/** One in this many seeds is run twice: the same seed must give the same history. */
const TWICE_EVERY = 100;

/** Runs one schedule and checks what it recorded. A crash of the simulated code counts as a violation. */
export async function judge(options: ScheduleOptions): Promise<Verdict> {
  let result: ScheduleResult;
  try {
    result = await runSchedule(options);
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return crashed(options.seed, message);
  }
  const violations = [...check(result.world)];
  for (const bug of result.bugs) violations.push({ invariant: "ASSERT", message: bug });
  if (options.seed % TWICE_EVERY === 0) {
    const again = await runSchedule(options);
    if (traceHash(again.world) !== traceHash(result.world)) {
      violations.push({ invariant: "DETERMINISM", message: "the same seed gave another history" });
    }
  }
  return {
    seed: options.seed,
    violations,
    steps: result.steps,
    liveness: result.world.liveness,
    executions: result.world.remains.headers.length,
    faults: [...result.faults],
    events: countEvents(result.world),
    features: countFeatures(result.world),
  };
}

function crashed(seed: number, message: string): Verdict {
  const violations = [{ invariant: "CRASH", message }];
  return { seed, violations, steps: 0, liveness: false, executions: 0, faults: [], events: [], features: [] };
}

function traceHash(world: World): string {
  return contentHash(JSON.stringify(world.history));
}

function countEvents(world: World): [string, number][] {
  const counts = new Map<string, number>();
  for (const entry of world.history) {
    if (entry.log !== "journal" || entry.kind !== "commit") continue;
    for (const record of entry.records) {
      for (const event of record.events) counts.set(event.kind, (counts.get(event.kind) ?? 0) + 1);
    }
  }
  return [...counts];
}

/**
 * Makes a failing schedule smaller while it still fails in the same way: fewer executions, then fewer faults.
 *
 * @param budget how many schedules it may run
 */
export async function shrink(failing: ScheduleOptions, invariant: string, budget = 60): Promise<ScheduleOptions> {
  let best = failing;
  let left = budget;
  const stillFails = async (options: ScheduleOptions): Promise<boolean> => {
    if (left-- <= 0) return false;
    const verdict = await judge(options);
    return verdict.violations.some((violation) => violation.invariant === invariant);
  };
  for (const executions of [1, 2, 3, 5, 8]) {
    if (executions >= (best.executions ?? Infinity)) break;
    const smaller = { ...best, executions };
    if (await stillFails(smaller)) {
      best = smaller;
      break;
    }
  }
  const MOST_FAULTS = 25;
  let kept = new Set(best.keepFaults ?? Array.from({ length: MOST_FAULTS }, (_, i) => i));
  for (let size = Math.ceil(kept.size / 2); size >= 1 && left > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    const all = [...kept];
    for (let from = 0; from < all.length; from += size) {
      const fewer = new Set(kept);
      for (const fault of all.slice(from, from + size)) fewer.delete(fault);
      if (fewer.size < kept.size && (await stillFails({ ...best, keepFaults: fewer }))) kept = fewer;
    }
  }
  return { ...best, keepFaults: kept };
}
