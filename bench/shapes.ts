import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A node, and the nodes whose outputs it is given. Parents come before their children. */
export interface ShapeNode {
  readonly id: string;
  readonly after: readonly string[];
}

/** A graph that every contender runs. */
export interface Shape {
  readonly name: string;
  readonly label: string;
  readonly nodes: readonly ShapeNode[];
  /** How long a handler takes; 0 = it only computes its output. */
  readonly taskMs: number;
}

const FAN = 100;

export function chain(length: number, taskMs = 0): Shape {
  const nodes = Array.from({ length }, (_, i) => ({ id: `s${i}`, after: i === 0 ? [] : [`s${i - 1}`] }));
  const label = taskMs === 0 ? `chain of ${length}` : `chain of ${length}, ${taskMs} ms each`;
  return { name: taskMs === 0 ? `chain${length}` : `chain${length}x${taskMs}ms`, label, nodes, taskMs };
}

/** One node, `width` that follow it, and one that follows them all. */
export function fan(width: number): Shape {
  const middle = Array.from({ length: width }, (_, i) => `k${i}`);
  const nodes = [{ id: "a", after: [] }, ...middle.map((id) => ({ id, after: ["a"] })), { id: "d", after: middle }];
  return { name: `fan${width}`, label: `1→${width}→1`, nodes, taskMs: 0 };
}

/** One node and all the others behind it: a graph of any size with one level. */
export function star(size: number): Shape {
  const rest = Array.from({ length: size - 1 }, (_, i) => ({ id: `k${i}`, after: ["a"] }));
  return { name: `star${size}`, label: `1→${size - 1}`, nodes: [{ id: "a", after: [] }, ...rest], taskMs: 0 };
}

const DIAMOND: Shape = {
  name: "diamond",
  label: "diamond",
  nodes: [
    { id: "a", after: [] },
    { id: "b", after: ["a"] },
    { id: "c", after: ["a"] },
    { id: "d", after: ["b", "c"] },
  ],
  taskMs: 0,
};

/** The part of a WfFormat 1.5 document that says what depends on what. */
interface Trace {
  readonly workflow: {
    readonly specification: {
      readonly tasks: readonly {
        readonly id: string;
        readonly parents: readonly string[];
        readonly children: readonly string[];
      }[];
    };
  };
}

/** The graph of a recorded execution, with ids that every contender accepts. */
function montage(): Shape {
  const file = join(import.meta.dirname, "data", "montage-chameleon-2mass-005d-001.json");
  const { tasks } = (JSON.parse(readFileSync(file, "utf8")) as Trace).workflow.specification;
  const parents = new Map(tasks.map(({ id, parents }) => [id, new Set(parents)]));
  for (const { id, children } of tasks) for (const child of children) parents.get(child)!.add(id);
  const nodes: ShapeNode[] = [];
  const named = new Map<string, string>();
  const visit = (id: string): void => {
    if (named.has(id)) return;
    const before = [...parents.get(id)!];
    for (const parent of before) visit(parent);
    named.set(id, id.replaceAll(/\W/g, "_"));
    nodes.push({ id: named.get(id)!, after: before.map((parent) => named.get(parent)!) });
  };
  for (const { id } of tasks) visit(id);
  return { name: "montage", label: "a real trace: Montage, 58 tasks", nodes, taskMs: 0 };
}

export const SHAPES: readonly Shape[] = [DIAMOND, chain(3), fan(FAN), chain(50), montage(), chain(40, 10)];

export function shapeNamed(name: string): Shape {
  const size = /^star(\d+)$/.exec(name)?.[1];
  const shape = size === undefined ? SHAPES.find((one) => one.name === name) : star(Number(size));
  if (shape === undefined) throw new Error(`there is no shape ${name}: ${SHAPES.map(({ name }) => name).join(", ")}`);
  return shape;
}

/** Nodes that nothing follows: an execution is over when all of them have run. */
export function sinksOf({ nodes }: Shape): ReadonlySet<string> {
  const followed = new Set(nodes.flatMap(({ after }) => after));
  return new Set(nodes.map(({ id }) => id).filter((id) => !followed.has(id)));
}

/** Nodes by how far they are from the beginning, for contenders that are told what to do next instead of a graph. */
export function levelsOf({ nodes }: Shape): readonly (readonly ShapeNode[])[] {
  const depth = new Map<string, number>();
  const levels: ShapeNode[][] = [];
  for (const node of nodes) {
    const own = Math.max(-1, ...node.after.map((id) => depth.get(id)!)) + 1;
    depth.set(node.id, own);
    (levels[own] ??= []).push(node);
  }
  return levels;
}

export interface Output {
  readonly n: number;
}

/** What every handler does: a number out of its parents' numbers. */
export function outputOf(inputs: Iterable<Output>): Output {
  let n = 1;
  for (const input of inputs) n += input.n;
  // Paths double at every join: kept small, so that what is stored has the same length everywhere.
  return { n: n % 1_000_000 };
}
