import type { Mode } from "./plan.ts";
import { lineChart } from "./report/charts.ts";
import { figure, grid } from "./report/terminal.ts";
import { attempt, type Urls } from "./run-turn.ts";
import { shapeNamed } from "./shapes.ts";
import { median } from "./statistics.ts";

/** Something that grows, while what a step costs should not. */
interface Axis {
  readonly name: string;
  readonly title: string;
  readonly xLabel: string;
  readonly points: Readonly<Record<Mode, readonly number[]>>;
  readonly at: (x: number) => { readonly entry: string; readonly shape: string };
  /** What is there before anything is measured takes its time. */
  readonly isCrowd?: true;
}

const diamondWith = (field: string) => (x: number) => ({ entry: `millrace-embedded@${field}=${x}`, shape: "diamond" });
const onRedisWith = (field: string) => (x: number) => ({ entry: `millrace-redis@${field}=${x}`, shape: "diamond" });
const MANY = { quick: [0, 2_000], default: [0, 1_000, 10_000, 50_000], full: [0, 1_000, 10_000, 100_000, 1_000_000] };
const FEW = { quick: [1, 2], default: [1, 2, 4], full: [1, 2, 4, 8] };

const AXES: readonly Axis[] = [
  {
    name: "size",
    title: "What a step costs in larger graphs",
    xLabel: "nodes",
    points: { quick: [10, 1_000], default: [10, 100, 1_000, 10_000], full: [10, 100, 1_000, 10_000, 100_000] },
    at: (x) => ({ entry: "millrace-embedded", shape: `star${x}` }),
  },
  {
    name: "waiting",
    title: "What a step costs beside executions that wait",
    xLabel: "open executions",
    points: MANY,
    at: diamondWith("waiting"),
    isCrowd: true,
  },
  {
    name: "history",
    title: "What a step costs beside executions that have ended",
    xLabel: "finished executions",
    points: MANY,
    at: diamondWith("finished"),
    isCrowd: true,
  },
  {
    name: "partitions",
    title: "What a step costs with more partitions, on Redis",
    xLabel: "partitions",
    points: { quick: [1, 32], default: [1, 8, 32, 128], full: [1, 8, 32, 128, 512] },
    at: onRedisWith("partitions"),
  },
  {
    name: "engines",
    title: "What a step costs with more engines, on Redis",
    xLabel: "engines",
    points: FEW,
    at: onRedisWith("engines"),
  },
  {
    name: "workers",
    title: "What a step costs with more workers, on Redis",
    xLabel: "workers",
    points: FEW,
    at: onRedisWith("workers"),
  },
];

export interface Growth {
  readonly name: string;
  readonly title: string;
  readonly xLabel: string;
  /** CPU seconds for 1,000 steps and the memory of all processes, at each point. */
  readonly points: readonly { readonly x: number; readonly cpuPer1000Steps: number; readonly peakMiB: number }[];
}

/** How long one of a crowd may take to be there. */
const CROWD_MS = 1;
/** How often each point is measured; they take turns. */
const ROUNDS = 3;
const SECONDS: Readonly<Record<Mode, number>> = { quick: 1, default: 3, full: 6 };

/** By CPU, not by rate: a point that finds the machine busy still tells. What was found so far is told after each axis. */
export async function measureGrowth(
  mode: Mode,
  only: readonly string[],
  urls: Urls,
  tell: (found: readonly Growth[]) => void,
): Promise<void> {
  const found: Growth[] = [];
  for (const axis of AXES.filter(({ name }) => only.length === 0 || only.includes(name))) {
    const costs = new Map<number, { cpu: number[]; peakMiB: number }>();
    for (let round = 1; round <= ROUNDS; round++) {
      for (const x of axis.points[mode]) {
        process.stderr.write(`${axis.name} ${x} ${round}\n`);
        const { entry, shape } = axis.at(x);
        const measure = { kind: "throughput", warmSeconds: SECONDS[mode] / 2, seconds: SECONDS[mode] } as const;
        const result = await attempt({ entry, shape, measure }, urls, axis.isCrowd === true ? x * CROWD_MS : 0);
        if (result?.measured.kind !== "throughput") continue;
        const { measured, cpuSeconds, peakMiB } = result;
        const steps = measured.executions * shapeNamed(shape).nodes.length;
        const cpu = (Object.values(cpuSeconds).reduce((sum, one) => sum + one, 0) / steps) * 1_000;
        const before = costs.get(x) ?? { cpu: [], peakMiB: 0 };
        costs.set(x, { cpu: [...before.cpu, cpu], peakMiB: Math.max(before.peakMiB, peakMiB) });
      }
    }
    const { name, title, xLabel } = axis;
    const points = [...costs].map(([x, { cpu, peakMiB }]) => ({ x, cpuPer1000Steps: median(cpu), peakMiB }));
    found.push({ name, title, xLabel, points });
    tell(found);
  }
}

export function growthTable(growths: readonly Growth[]): string {
  const rows = growths.flatMap(({ name, points }) =>
    points.map(({ x, cpuPer1000Steps, peakMiB }) => {
      const times = cpuPer1000Steps / points[0]!.cpuPer1000Steps;
      return [name, x.toLocaleString("en"), figure(cpuPer1000Steps), `${times.toFixed(2)}×`, figure(peakMiB)];
    }),
  );
  return grid([["", "at", "CPU s/1000 steps", "÷ first", "peak MiB"], ...rows]);
}

/** From zero, so that flat looks flat. */
export function growthChart({ title, xLabel, points }: Growth): string {
  return lineChart({
    title,
    xLabel: `${xLabel}, logarithmic`,
    yLabel: "CPU seconds for 1,000 steps",
    logarithmicX: true,
    series: [{ label: "CPU", points: points.map(({ x, cpuPer1000Steps }) => [Math.max(1, x), cpuPer1000Steps]) }],
  });
}
