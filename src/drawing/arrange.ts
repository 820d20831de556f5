import type { Diagram } from "./diagram.ts";

/** Where each node stands: its column is its level, its row counts from 0 within a column that is centred. */
export interface Arrangement {
  readonly columns: number;
  readonly rows: number;
  /** By node number; rows may be fractions. */
  readonly row: Float64Array;
}

const SWEEPS = 4;

/**
 * Orders each level so that edges cross little: forward and back, every node moves to the middle of its neighbours.
 * Linear in nodes and edges for each sweep, but for sorting.
 */
export function arrange({ nodes, edges, levels }: Diagram): Arrangement {
  const order = levels.map((level) => [...level]);
  const parents: number[][] = nodes.map(() => []);
  const children: number[][] = nodes.map(() => []);
  for (const { from, to } of edges) {
    parents[to]!.push(from);
    children[from]!.push(to);
  }
  const place = new Float64Array(nodes.length);
  const number = (level: readonly number[]): void => {
    for (const [i, node] of level.entries()) place[node] = i - (level.length - 1) / 2;
  };
  for (const level of order) number(level);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const forward = sweep % 2 === 0;
    const neighbours = forward ? parents : children;
    for (const level of forward ? order : order.toReversed()) {
      const middle = new Map(level.map((node) => [node, middleOf(neighbours[node]!, place) ?? place[node]!]));
      level.sort((a, b) => middle.get(a)! - middle.get(b)!);
      number(level);
    }
  }
  const rows = Math.max(...order.map((level) => level.length));
  return { columns: order.length, rows, row: place.map((value) => value + (rows - 1) / 2) };
}

function middleOf(neighbours: readonly number[], place: Float64Array): number | undefined {
  if (neighbours.length === 0) return undefined;
  let sum = 0;
  for (const node of neighbours) sum += place[node]!;
  return sum / neighbours.length;
}
