import { type Spread } from "../statistics.ts";
import { dot, line, rect, svg, text } from "./svg.ts";
import { figure } from "./terminal.ts";

const WIDTH = 920;
const LABELS = 310;
const RIGHT = 110;
const ROW = 26;
const TOP = 56;
const COLOURS = { millrace: "#0b6e99", peer: "#b7a57a", limit: "#9aa0a6" } as const;
const LINES = [
  "#0b6e99",
  "#c2571a",
  "#5b8c2a",
  "#7a4fa3",
  "#b01e5a",
  "#6b6b6b",
  "#17becf",
  "#a67c00",
  "#e7298a",
  "#111111",
  "#8dd3c7",
  "#fb9a99",
  "#ffbf00",
  "#8c564b",
  "#cab2d6",
  "#1f3b8c",
  "#98df8a",
];

export interface Bar {
  readonly label: string;
  readonly kind: keyof typeof COLOURS;
  readonly value: Spread;
}

/** Bars with a whisker from the lowest round to the highest, on a logarithmic scale. */
export function barChart(title: string, unit: string, bars: readonly Bar[]): string {
  const lowest = Math.min(...bars.map(({ value }) => value.lowest));
  const highest = Math.max(...bars.map(({ value }) => value.highest));
  const from = 10 ** Math.floor(Math.log10(lowest) - 0.3);
  const room = WIDTH - LABELS - RIGHT;
  const scale = room / Math.log10(highest / from);
  const x = (value: number): number => LABELS + Math.log10(value / from) * scale;
  const height = TOP + bars.length * ROW + 24;
  const parts = [text(16, 24, title, { size: 15, bold: true }), text(16, 42, `${unit}, logarithmic`, { fill: "#666" })];
  for (let tick = from; tick <= highest; tick *= 10) {
    parts.push(
      line(
        [
          [x(tick), TOP - 6],
          [x(tick), height - 22],
        ],
        "#e4e4e4",
        1,
      ),
    );
    parts.push(text(x(tick), height - 8, figure(tick), { size: 10, anchor: "middle", fill: "#666" }));
  }
  for (const [i, { label, kind, value }] of bars.entries()) {
    const y = TOP + i * ROW;
    parts.push(text(LABELS - 8, y + 14, label, { anchor: "end", bold: kind === "millrace" }));
    parts.push(rect(LABELS, y + 2, Math.max(1, x(value.median) - LABELS), ROW - 10, COLOURS[kind]));
    parts.push(
      line(
        [
          [x(value.lowest), y + 10],
          [x(value.highest), y + 10],
        ],
        "#222",
        1.2,
      ),
    );
    for (const end of [value.lowest, value.highest])
      parts.push(
        line(
          [
            [x(end), y + 6],
            [x(end), y + 14],
          ],
          "#222",
          1.2,
        ),
      );
    parts.push(text(x(value.highest) + 8, y + 14, figure(value.median)));
  }
  return svg({ width: WIDTH, height, parts });
}

export interface Series {
  readonly label: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface LineChart {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly Series[];
  /** A distribution's second axis goes from 0 to 1; costs begin at zero so that flat looks flat. */
  readonly logarithmicX: boolean;
}

export function lineChart({ title, xLabel, yLabel, series, logarithmicX }: LineChart): string {
  const all = series.flatMap(({ points }) => points);
  const xs = all.map(([x]) => (logarithmicX ? Math.log10(Math.max(x, 1e-6)) : x));
  const [lowX, highX] = [Math.min(...xs), Math.max(...xs)];
  const stepY = roundStep(Math.max(...all.map(([, y]) => y)));
  const steps = Math.ceil(Math.max(...all.map(([, y]) => y)) / stepY - 1e-9);
  const highY = steps * stepY;
  const plot = { left: 70, top: TOP, width: WIDTH - 90 - 270, height: 280 };
  const place = ([x, y]: readonly [number, number]): [number, number] => {
    const along = ((logarithmicX ? Math.log10(Math.max(x, 1e-6)) : x) - lowX) / Math.max(1e-9, highX - lowX);
    return [plot.left + along * plot.width, plot.top + plot.height - (y / highY) * plot.height];
  };
  const height = plot.top + plot.height + 48;
  const parts = [text(16, 24, title, { size: 15, bold: true }), text(16, 42, yLabel, { fill: "#666" })];
  for (let i = 0; i <= steps; i++) {
    const value = stepY * i;
    const y = plot.top + plot.height - (i / steps) * plot.height;
    parts.push(
      line(
        [
          [plot.left, y],
          [plot.left + plot.width, y],
        ],
        "#e4e4e4",
        1,
      ),
    );
    parts.push(text(plot.left - 6, y + 4, figure(value), { size: 10, anchor: "end", fill: "#666" }));
  }
  const few = series.length === 1 && all.length < 12 ? all.map(([x]) => x) : undefined;
  for (const value of few ?? ticksOf(lowX, highX, logarithmicX)) {
    const [x] = place([value, 0]);
    parts.push(text(x, plot.top + plot.height + 16, figure(value), { size: 10, anchor: "middle", fill: "#666" }));
  }
  parts.push(text(plot.left + plot.width / 2, height - 10, xLabel, { anchor: "middle", fill: "#666" }));
  for (const [i, { label, points }] of series.entries()) {
    const colour = LINES[i % LINES.length]!;
    parts.push(line(points.map(place), colour, 2));
    if (points.length < 12) parts.push(...points.map((point) => dot(...place(point), colour)));
    parts.push(rect(plot.left + plot.width + 16, plot.top + i * 20, 12, 4, colour));
    parts.push(text(plot.left + plot.width + 34, plot.top + i * 20 + 6, label, { size: 11 }));
  }
  return svg({ width: WIDTH, height, parts });
}

/** About four of it reach the highest, and it is one that people count in. */
function roundStep(highest: number): number {
  const power = 10 ** Math.floor(Math.log10(highest / 4));
  return [1, 2, 2.5, 5, 10].map((digit) => digit * power).find((step) => step * 4 >= highest * (1 - 1e-9))!;
}

function ticksOf(low: number, high: number, logarithmic: boolean): readonly number[] {
  if (!logarithmic) return Array.from({ length: 5 }, (_, i) => low + ((high - low) * i) / 4);
  const ticks: number[] = [];
  for (let power = Math.floor(low); power <= high; power++)
    ticks.push(...[1, 2, 5].map((digit) => digit * 10 ** power));
  return ticks.filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high);
}
