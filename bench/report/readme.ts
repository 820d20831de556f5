import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SHAPES } from "../shapes.ts";
import { ratioText } from "../statistics.ts";
import type { LatencySummary, Summary, ThroughputSummary } from "../summary.ts";
import { figure } from "./terminal.ts";

const ROOT = join(import.meta.dirname, "..", "..");
export const README: string = join(ROOT, "README.md");
/** The last run that was not only a quick one: figures of a release that is gone are of no use to anybody. */
export const MEASURED: string = ["full.json", "default.json"]
  .map((name) => join(ROOT, "bench", "results", name))
  .filter((file) => existsSync(file))
  .toSorted((a, b) => measuredAt(b).localeCompare(measuredAt(a)))[0]!;

/** Empty of one from before that was written down. */
function measuredAt(file: string): string {
  return (JSON.parse(readFileSync(file, "utf8")) as { measuredAt?: string }).measuredAt ?? "";
}

const PART = /(<!-- figures: npm run bench -->\n)[^]*?(<!-- end of the figures -->)/;

interface Results {
  readonly mode: string;
  readonly machine: Readonly<Record<string, string | number>>;
  readonly summaries: readonly Summary[];
}

/** The README with the figures of a run in their place. */
export function withFigures(readme: string, results: Results): string {
  if (!PART.test(readme)) throw new Error("the README has no place for figures");
  return readme.replace(PART, (_, begin: string, end: string) => `${begin}\n${figuresOf(results)}\n\n${end}`);
}

function figuresOf({ mode, machine, summaries }: Results): string {
  const { processor, cores, memoryGiB, node = "" } = machine;
  const diamond = summaries.filter(({ shape }) => shape === "diamond");
  const rates = diamond.filter((one): one is ThroughputSummary => one.measure === "throughput");
  const delays = diamond.filter((one): one is LatencySummary => one.measure === "latency");
  const best = rates
    .filter(({ kind, declared }) => kind === "peer" && declared)
    .toSorted((a, b) => b.stepsPerSecond.median - a.stepsPerSecond.median)[0];
  const others = Math.max(...diamond.map(({ othersCores }) => othersCores));
  const head = ["", "steps/s", `beside ${best?.label ?? "peers"}`, "CPU s per 1,000 steps", "of its bare limit"];
  const rows = rates.map(({ label, entry, stepsPerSecond, cpuPer1000Steps, ofLimit }) => [
    label,
    figure(stepsPerSecond.median),
    best === undefined || best.entry === entry ? "" : ratioText(stepsPerSecond.median / best.stepsPerSecond.median),
    figure(cpuPer1000Steps.median),
    ofLimit === undefined ? "" : `${Math.round(ofLimit * 100)} %`,
    figureOf(delays.find((one) => one.entry === entry)),
  ]);
  return [
    `The diamond (four steps that do nothing, data on every edge), medians of interleaved rounds on ${cores} cores`,
    `(${processor}, ${memoryGiB} GiB, Node ${node.toString().slice(1)}), of which others used up to ${others.toFixed(1)} meanwhile:`,
    "",
    ...table([[...head, "parent end → child start, p50"], ...rows]),
    "",
    `![steps a second](bench/results/${mode}-diamond-steps.svg)`,
    "",
    "The other graphs, steps a second; and of 40 steps that take 10 ms each, what a step takes beyond that:",
    "",
    ...table(othersOf(summaries)),
  ].join("\n");
}

/** A row for each contender that ran more than the diamond. */
function othersOf(summaries: readonly Summary[]): readonly (readonly string[])[] {
  const shapes = SHAPES.filter(({ name }) => name !== "diamond" && summaries.some(({ shape }) => shape === name));
  const entries = new Map(summaries.map(({ entry, label }) => [entry, label]));
  const rows = Array.from(entries, ([entry, label]) => [
    label,
    ...shapes.map(({ name }) => cellOf(summaries.find((one) => one.entry === entry && one.shape === name))),
  ]);
  return [
    ["", ...shapes.map(({ label }) => label)],
    ...rows.filter(([, ...cells]) => cells.some((cell) => cell !== "")),
  ];
}

function cellOf(one: Summary | undefined): string {
  if (one === undefined) return "";
  return one.measure === "latency" ? `${figure(one.overheadP50Ms.median)} ms` : figure(one.stepsPerSecond.median);
}

function figureOf(delay: LatencySummary | undefined): string {
  return delay === undefined ? "" : `${figure(delay.edgeP50Ms.median)} ms`;
}

/** In columns, as the formatter has it. */
function table([head, ...rows]: readonly (readonly string[])[]): readonly string[] {
  const widths = head!.map((_, i) => Math.max(3, ...[head!, ...rows].map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join(" | ")} |`;
  const rule = `| ${widths.map((width, i) => (i === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`)).join(" | ")} |`;
  return [line(head!), rule, ...rows.map(line)];
}

if (import.meta.main) {
  const results = JSON.parse(readFileSync(MEASURED, "utf8")) as Results;
  writeFileSync(README, withFigures(readFileSync(README, "utf8"), results));
}
