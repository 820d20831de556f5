import { Line } from "../line.ts";
import type { PlanLine } from "./plan.ts";

/** The line of units that the engine runs itself is the first of every plan. */
export const ENGINE_LINE = 0;

/** Of so few lines all are looked at: that is sooner done than keeping the list of those that somebody stands in. */
const FEW = 16;

/**
 * Units that may run now, by queue and priority; in each line in the order in which they became ready. A workflow may have as
 * many lines as it has nodes, and every step asks who is next: so nobody who has a turn looks through all of them.
 */
export class ReadyLines {
  /** How many stand in all of them together. */
  count = 0;

  /** The lines of the plan, and behind them those that an edit has opened. */
  private lines: readonly PlanLine[];
  /** Their numbers in the order in which they have their turn. */
  private order: readonly number[];
  private readonly units: Line[];
  /** The places in `order`, by number. Like the next one only of many lines. */
  private places: Int32Array | null = null;
  /** The numbers of the lines that somebody stands in, in the order of their turn. */
  private busy: number[] | null = null;

  constructor(lines: readonly PlanLine[], order: readonly number[]) {
    this.lines = lines;
    this.order = order;
    this.units = lines.map(() => new Line());
    if (lines.length > FEW) this.keepBusy();
  }

  /** The lines in the order of their turn, at least all those that somebody stands in. */
  get inTurn(): readonly number[] {
    return this.busy ?? this.order;
  }

  of(line: number): Line {
    return this.units[line]!;
  }

  queueOf(line: number): string {
    return this.lines[line]!.queue;
  }

  push(line: number, unit: number): void {
    const units = this.units[line]!;
    if (this.busy !== null && units.length === 0) this.busy.splice(this.placeOf(line), 0, line);
    units.push(unit);
    this.count++;
  }

  remove(line: number, unit: number): void {
    const units = this.units[line]!;
    const before = units.length;
    units.remove(unit);
    if (units.length === before) return;
    this.count--;
    if (this.busy !== null && units.length === 0) this.busy.splice(this.placeOf(line), 1);
  }

  clear(): void {
    if (this.count === 0) return;
    for (const line of this.inTurn) this.units[line]!.clear();
    if (this.busy !== null) this.busy = [];
    this.count = 0;
  }

  /** Those that stand in each line, of those lines that somebody stands in. */
  toArrays(): number[][] {
    return this.units.flatMap((line) => (line.length === 0 ? [] : [line.toArray()]));
  }

  /** The line of a queue and priority, opened if there is none. */
  find(queue: string, priority: number): number {
    const found = this.lines.findIndex((line) => line.queue === queue && (queue === "" || line.priority === priority));
    if (found >= 0) return found;
    const line = this.units.push(new Line()) - 1;
    this.lines = [...this.lines, { queue, priority }];
    const isEngine = (of: number): number => Number(of === ENGINE_LINE);
    this.order = [...this.order, line].sort(
      (a, b) => isEngine(b) - isEngine(a) || this.lines[b]!.priority - this.lines[a]!.priority || a - b,
    );
    if (this.lines.length > FEW) this.keepBusy();
    return line;
  }

  private keepBusy(): void {
    this.places = new Int32Array(this.order.length);
    for (let place = 0; place < this.order.length; place++) this.places[this.order[place]!] = place;
    this.busy = this.order.filter((line) => this.units[line]!.length > 0);
  }

  /** Where a line stands among the busy ones, or would. */
  private placeOf(line: number): number {
    const busy = this.busy!;
    const places = this.places!;
    const place = places[line]!;
    let [from, to] = [0, busy.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (places[busy[middle]!]! < place) from = middle + 1;
      else to = middle;
    }
    return from;
  }
}
