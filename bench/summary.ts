import type { Entry } from "./contender.ts";
import type { Item } from "./plan.ts";
import type { TurnResult } from "./run-turn.ts";
import { quantile, type Spread, spreadOf } from "./statistics.ts";

/** What the rounds of one item came to. */
export type Summary = ThroughputSummary | LatencySummary;

interface Common {
  readonly entry: string;
  readonly label: string;
  readonly kind: Entry["kind"];
  readonly declared: boolean;
  readonly shape: string;
  readonly steps: number;
  /** Cores that others used, at their highest. */
  readonly othersCores: number;
}

export interface ThroughputSummary extends Common {
  readonly measure: "throughput";
  readonly executionsPerSecond: Spread;
  readonly stepsPerSecond: Spread;
  /** Of all processes together, and by process. */
  readonly cpuPer1000Steps: Spread;
  readonly cpuByProcess: Readonly<Record<string, number>>;
  readonly peakMiB: number;
  /** Of the bare limit of the same run, 0 to 1 or beyond. */
  readonly ofLimit?: number;
}

export interface LatencySummary extends Common {
  readonly measure: "latency";
  readonly edgeP50Ms: Spread;
  readonly edgeP99Ms: Spread;
  readonly wholeP50Ms: Spread;
  readonly wholeP99Ms: Spread;
  readonly firstP50Ms: Spread;
  /** For each step, beyond what its handler took itself. */
  readonly overheadP50Ms: Spread;
  /** All edges of all rounds, as a few points of their distribution. */
  readonly edgeQuantiles: readonly (readonly [part: number, ms: number])[];
}

const QUANTILES = [0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999];

export function summarize(item: Item, results: readonly TurnResult[]): Summary {
  const { entry, shape, measure } = item;
  const common: Common = {
    entry: entry.name,
    label: entry.label,
    kind: entry.kind,
    declared: entry.declared,
    shape: shape.name,
    steps: shape.nodes.length,
    othersCores: Math.max(...results.map(({ othersCores }) => othersCores)),
  };
  return measure.kind === "throughput" ? throughputOf(common, results) : latencyOf(common, results);
}

function throughputOf(common: Common, results: readonly TurnResult[]): ThroughputSummary {
  const rates: number[] = [];
  const costs: number[] = [];
  const byProcess = new Map<string, number[]>();
  for (const { measured, cpuSeconds } of results) {
    if (measured.kind !== "throughput") continue;
    const thousands = (measured.executions * common.steps) / 1_000;
    rates.push(measured.executions / measured.seconds);
    costs.push(Object.values(cpuSeconds).reduce((sum, one) => sum + one, 0) / thousands);
    for (const [name, seconds] of Object.entries(cpuSeconds)) {
      byProcess.set(name, [...(byProcess.get(name) ?? []), seconds / thousands]);
    }
  }
  return {
    ...common,
    measure: "throughput",
    executionsPerSecond: spreadOf(rates),
    stepsPerSecond: spreadOf(rates.map((rate) => rate * common.steps)),
    cpuPer1000Steps: spreadOf(costs),
    cpuByProcess: Object.fromEntries([...byProcess].map(([name, values]) => [name, spreadOf(values).median])),
    peakMiB: Math.max(...results.map(({ peakMiB }) => peakMiB)),
  };
}

function latencyOf(common: Common, results: readonly TurnResult[]): LatencySummary {
  const rounds = results.flatMap(({ measured }) => (measured.kind === "latency" ? [measured] : []));
  const of = (name: "edgesMs" | "wholesMs" | "firstsMs" | "overheadsMs", part: number): Spread =>
    spreadOf(rounds.map((round) => quantile(round[name], part)));
  const edges = rounds.flatMap(({ edgesMs }) => edgesMs);
  return {
    ...common,
    measure: "latency",
    edgeP50Ms: of("edgesMs", 0.5),
    edgeP99Ms: of("edgesMs", 0.99),
    wholeP50Ms: of("wholesMs", 0.5),
    wholeP99Ms: of("wholesMs", 0.99),
    firstP50Ms: of("firstsMs", 0.5),
    overheadP50Ms: of("overheadsMs", 0.5),
    edgeQuantiles: QUANTILES.map((part) => [part, quantile(edges, part)]),
  };
}

/** Holds each against its bare limit of the same run. */
export function againstLimits(summaries: readonly Summary[], entries: readonly Entry[]): readonly Summary[] {
  const limitOf = new Map(entries.map(({ name, limit }) => [name, limit]));
  return summaries.map((one) => {
    if (one.measure !== "throughput") return one;
    const limit = summaries.find(
      (other): other is ThroughputSummary =>
        other.measure === "throughput" && other.entry === limitOf.get(one.entry) && other.shape === one.shape,
    );
    if (limit === undefined) return one;
    return { ...one, ofLimit: one.stepsPerSecond.median / limit.stepsPerSecond.median };
  });
}
