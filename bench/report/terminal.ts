import type { ApiFigure } from "../api/measure-api.ts";
import { ratioText, type Spread } from "../statistics.ts";
import type { LatencySummary, Summary, ThroughputSummary } from "../summary.ts";

/** The tables of a run, one for each shape and measure. */
export function tables(summaries: readonly Summary[]): string {
  const parts: string[] = [];
  for (const shape of new Set(summaries.map((one) => one.shape))) {
    const here = summaries.filter((one) => one.shape === shape);
    const rates = here.filter((one): one is ThroughputSummary => one.measure === "throughput");
    const delays = here.filter((one): one is LatencySummary => one.measure === "latency");
    if (rates.length > 0) parts.push(`\n${shape}: how much\n${throughputTable(rates)}`);
    if (delays.length > 0) parts.push(`\n${shape}: how soon, when idle\n${latencyTable(delays)}`);
  }
  return parts.join("\n");
}

function throughputTable(rows: readonly ThroughputSummary[]): string {
  const peers = rows.filter(({ kind, declared }) => kind === "peer" && declared);
  const best = peers.toSorted((a, b) => b.stepsPerSecond.median - a.stepsPerSecond.median)[0];
  const head = ["", "executions/s", "steps/s", "lowest–highest", `÷ ${best?.label ?? "best peer"}`, "CPU s/1000 steps"];
  head.push("of which", "peak MiB", "of bare limit", "others' cores");
  return grid([
    head,
    ...rows.map((row) => [
      row.label,
      figure(row.executionsPerSecond.median),
      figure(row.stepsPerSecond.median),
      range(row.stepsPerSecond),
      best === undefined ? "–" : ratioText(row.stepsPerSecond.median / best.stepsPerSecond.median),
      figure(row.cpuPer1000Steps.median),
      Object.entries(row.cpuByProcess)
        .map(([name, seconds]) => `${name} ${figure(seconds)}`)
        .join(", "),
      figure(row.peakMiB),
      row.ofLimit === undefined ? "" : `${Math.round(row.ofLimit * 100)} %`,
      row.othersCores.toFixed(1),
    ]),
  ]);
}

function latencyTable(rows: readonly LatencySummary[]): string {
  return grid([
    ["", "edge p50 ms", "lowest–highest", "edge p99", "whole p50", "whole p99", "to first step", "overhead a step"],
    ...rows.map((row) => [
      row.label,
      figure(row.edgeP50Ms.median),
      range(row.edgeP50Ms),
      figure(row.edgeP99Ms.median),
      figure(row.wholeP50Ms.median),
      figure(row.wholeP99Ms.median),
      figure(row.firstP50Ms.median),
      figure(row.overheadP50Ms.median),
    ]),
  ]);
}

export function apiTable(figures: readonly ApiFigure[]): string {
  return grid([
    ["", "a second", "lowest–highest", "server CPU s/1000", "of the bare loop"],
    ...figures.map(({ name, perSecond, serverCpuPer1000, ofBare }) => [
      name,
      figure(perSecond.median),
      range(perSecond),
      figure(serverCpuPer1000),
      ofBare === undefined ? "" : `${Math.round(ofBare * 100)} %`,
    ]),
  ]);
}

/** Three digits that mean something. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "–";
  if (value >= 100) return Math.round(value).toLocaleString("en");
  return Number(value.toPrecision(3)).toString();
}

function range({ lowest, highest }: Spread): string {
  return `${figure(lowest)}–${figure(highest)}`;
}

export function grid(rows: readonly (readonly string[])[]): string {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows
    .map((row) => row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  "))
    .join("\n");
}
