import type { Entry } from "./contender.ts";
import { ENTRIES, entryNamed } from "./entries.ts";
import { type Shape, SHAPES, shapeNamed } from "./shapes.ts";
import type { Measure } from "./turn.ts";

export type Mode = "quick" | "default" | "full";

/** One thing to measure, once in each round. */
export interface Item {
  readonly entry: Entry;
  readonly shape: Shape;
  readonly measure: Measure;
}

export interface Plan {
  readonly rounds: number;
  readonly items: readonly Item[];
}

interface Lengths {
  readonly rounds: number;
  readonly warmSeconds: number;
  readonly seconds: number;
  readonly runs: number;
}

const LENGTHS: Readonly<Record<Mode, Lengths>> = {
  quick: { rounds: 3, warmSeconds: 1.5, seconds: 1.5, runs: 40 },
  default: { rounds: 3, warmSeconds: 1.5, seconds: 2.5, runs: 100 },
  full: { rounds: 3, warmSeconds: 3, seconds: 7, runs: 300 },
};

/** Those that a quick look has room for: ours, and what they are held against. */
const QUICK = ["millrace-embedded", "millrace-redis-everysec", "bullmq-everysec", "pg-boss-looped", "bare-sqlite"];
/** Those that run every shape in a run of normal length: ours, and the fastest peer that takes a declared graph. */
const EVERYWHERE = [
  "millrace-embedded",
  "millrace-redis-everysec",
  "millrace-postgres",
  "pg-boss-looped",
  "bare-sqlite",
];

export function planOf(mode: Mode, only: readonly string[], shapes: readonly string[]): Plan {
  const lengths = LENGTHS[mode];
  const wanted = (entry: Entry): boolean =>
    only.length > 0 ? only.includes(entry.name) : mode !== "quick" || QUICK.includes(entry.name);
  const entries = ENTRIES.filter(wanted);
  for (const name of only) entryNamed(name);
  const chosen = shapes.length > 0 ? shapes.map(shapeNamed) : mode === "quick" ? [shapeNamed("diamond")] : SHAPES;
  const items = chosen.flatMap((shape) => itemsOf(shape, entries, mode, lengths));
  return { rounds: lengths.rounds, items };
}

function itemsOf(shape: Shape, entries: readonly Entry[], mode: Mode, lengths: Lengths): readonly Item[] {
  const { warmSeconds, seconds } = lengths;
  const isMain = shape.name === "diamond";
  const here = entries.filter(
    (entry) => entry.runs(shape) && (isMain || mode === "full" || EVERYWHERE.includes(entry.name)),
  );
  const latencies = here.flatMap((entry) => latencyOf(entry, shape, mode, lengths) ?? []);
  const soon = latencies.map(([entry, measure]): Item => ({ entry, shape, measure }));
  // Steps that take their time are not there to be counted.
  if (shape.taskMs > 0) return soon;
  const throughput: Measure = { kind: "throughput", warmSeconds, seconds };
  return [...here.map((entry): Item => ({ entry, shape, measure: throughput })), ...(isMain ? soon : [])];
}

/** How often, or undefined for one that has nothing to say or takes longer to say it than there is time. */
function latencyOf(
  entry: Entry,
  shape: Shape,
  mode: Mode,
  { runs }: Lengths,
): readonly [readonly [Entry, Measure]] | undefined {
  const isSeldom = entry.latency === "seldom";
  const isEndless = isSeldom && (shape.taskMs > 0 || mode === "quick");
  if (entry.latency === "none" || isEndless) return undefined;
  const few = Math.ceil(runs / 20);
  // A service has run for a while when somebody asks how soon it answers: what was compiled a moment ago says little.
  const counts = isSeldom
    ? { warmRuns: 2, runs: few }
    : shape.taskMs > 0
      ? { warmRuns: 10, runs: few }
      : { warmRuns: 150, runs };
  return [[entry, { kind: "latency", ...counts }]];
}

/** Names an item in one round, for a run that is taken up again. */
export function itemKey({ entry, shape, measure }: Item, round: number): string {
  return `${entry.name} ${shape.name} ${measure.kind} ${round}`;
}
