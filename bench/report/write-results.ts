import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";
import type { ApiFigure } from "../api/measure-api.ts";
import { type Growth, growthChart } from "../growth.ts";
import type { LatencySummary, Summary, ThroughputSummary } from "../summary.ts";
import { type Bar, barChart, lineChart } from "./charts.ts";

export const RESULTS: string = join(import.meta.dirname, "..", "results");

/** The machine that the figures are of. */
export function machine(): Readonly<Record<string, string | number>> {
  return {
    processor: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    platform: `${process.platform} ${process.arch}`,
  };
}

/** JSON, and a chart for each thing that was measured. */
export function writeResults(
  mode: string,
  summaries: readonly Summary[],
  settings: Readonly<Record<string, string>>,
): void {
  mkdirSync(RESULTS, { recursive: true });
  const told = { mode, measuredAt: new Date().toISOString(), machine: machine(), settings, summaries };
  writeFileSync(join(RESULTS, `${mode}.json`), `${JSON.stringify(told, null, 2)}\n`);
  drawResults(mode, summaries);
}

function drawResults(mode: string, summaries: readonly Summary[]): void {
  for (const shape of new Set(summaries.map((one) => one.shape))) {
    const here = summaries.filter((one) => one.shape === shape);
    const rates = here.filter((one): one is ThroughputSummary => one.measure === "throughput");
    const delays = here.filter((one): one is LatencySummary => one.measure === "latency");
    const save = (name: string, chart: string): void =>
      writeFileSync(join(RESULTS, `${mode}-${shape}-${name}.svg`), chart);
    if (rates.length > 0) {
      save("steps", barChart(`Steps a second, ${shape}`, "more is better", bars(rates, "stepsPerSecond")));
      save("cpu", barChart(`CPU seconds for 1,000 steps, ${shape}`, "less is better", bars(rates, "cpuPer1000Steps")));
    }
    if (delays.length > 0) save("latency", latencyChart(shape, delays));
  }
}

export function writeGrowth(mode: string, growths: readonly Growth[]): void {
  mkdirSync(RESULTS, { recursive: true });
  const file = join(RESULTS, `${mode}-growth.json`);
  const before = existsSync(file)
    ? (JSON.parse(readFileSync(file, "utf8")) as { growths: readonly Growth[] }).growths
    : [];
  // What is not measured this time is as it was: all of it takes long.
  const others = before.filter((one) => growths.every(({ name }) => name !== one.name));
  const told = { mode, machine: machine(), growths: [...others, ...growths] };
  writeFileSync(file, `${JSON.stringify(told, null, 2)}\n`);
  drawGrowth(mode, growths);
}

function drawGrowth(mode: string, growths: readonly Growth[]): void {
  for (const one of growths) writeFileSync(join(RESULTS, `${mode}-growth-${one.name}.svg`), growthChart(one));
}

export function writeApi(mode: string, figures: readonly ApiFigure[]): void {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(
    join(RESULTS, `${mode}-api.json`),
    `${JSON.stringify({ mode, machine: machine(), figures }, null, 2)}\n`,
  );
}

function bars(rows: readonly ThroughputSummary[], field: "stepsPerSecond" | "cpuPer1000Steps"): readonly Bar[] {
  return rows.map(({ label, kind, [field]: value }) => ({ label, kind, value }));
}

function latencyChart(shape: string, rows: readonly LatencySummary[]): string {
  return lineChart({
    title: `From the end of a parent to the beginning of its child, ${shape}, idle`,
    xLabel: "milliseconds, logarithmic",
    yLabel: "part of all edges that took no longer",
    logarithmicX: true,
    series: rows.map(({ label, edgeQuantiles }) => ({
      label,
      points: edgeQuantiles.map(([part, ms]) => [ms, part] as const),
    })),
  });
}

/** The charts once more, of what was measured before. */
if (import.meta.main) {
  for (const mode of ["quick", "default", "full"]) {
    const read = (file: string): Record<string, unknown> =>
      existsSync(join(RESULTS, file)) ? (JSON.parse(readFileSync(join(RESULTS, file), "utf8")) as never) : {};
    drawResults(mode, (read(`${mode}.json`)["summaries"] ?? []) as readonly Summary[]);
    drawGrowth(mode, (read(`${mode}-growth.json`)["growths"] ?? []) as readonly Growth[]);
  }
}
