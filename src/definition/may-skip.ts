import type { TopologicalOrder } from "./cycles.ts";
import type { Graph } from "./graph.ts";
import type { WorkflowNode } from "./workflow.ts";

const COMPLETED = 0;
const FAILED = 1;
/** No node: the point that comes before all of them. */
const START = -1;

/**
 * Which nodes may have no output at the time another one runs.
 *
 * A node *may be skipped* if it has a condition, is the target of a route, or its join can find nothing but skipped
 * parents. A node that reads such a node is still safe if it can only run after that one has completed. For that,
 * each node has a *guard*: the nearest node that must have completed whenever it runs. Guards form a tree (they are the
 * dominators of the graph, as far as joins make them so), and a node is safe to read if it lies on the way up.
 */
export class SkipAnalysis {
  readonly #graph: Graph;
  readonly #nodes: readonly WorkflowNode[];
  readonly #order: Int32Array;
  readonly #maySkip: Uint8Array;
  #guards: GuardTree | undefined;

  constructor(graph: Graph, { order }: TopologicalOrder, nodes: readonly WorkflowNode[], routed: ReadonlySet<number>) {
    this.#graph = graph;
    this.#nodes = nodes;
    this.#order = order;
    this.#maySkip = new Uint8Array(graph.nodeCount);
    for (const node of order) {
      const skippable = nodes[node]!.condition !== undefined || routed.has(node) || this.#joinMaySkip(node);
      this.#maySkip[node] = skippable ? 1 : 0;
    }
  }

  /** True if `node` may run while `ancestor`, which comes before it, has no output. */
  mayLack(node: number, ancestor: number): boolean {
    if (this.#maySkip[ancestor] === 1 || this.#nodes[ancestor]!.on_error === "continue") {
      this.#guards ??= new GuardTree(this.#graph, this.#order, this.#nodes, this.#maySkip);
      return !this.#guards.isSure(node, ancestor);
    }
    return this.#isLooseParent(node, ancestor);
  }

  #joinMaySkip(node: number): boolean {
    const { parentStart, edgeParent, edgeOn } = this.#graph;
    const from = parentStart[node]!;
    const to = parentStart[node + 1]!;
    let firm = 0;
    for (let edge = from; edge < to; edge++) {
      // `on: done` always counts; `on: failed` does not count if the parent completes.
      const on = edgeOn[edge]!;
      if (on !== FAILED && (on !== COMPLETED || this.#maySkip[edgeParent[edge]!] === 0)) firm++;
    }
    const { join } = this.#nodes[node]!;
    if (join === "all_done" || from === to) return false;
    if (join === "all_success") return firm < to - from;
    return firm < quorumOf(join);
  }

  /** A parent that need not have completed, because the edge or the join says so. */
  #isLooseParent(node: number, parent: number): boolean {
    const { parentStart, edgeParent, edgeOn } = this.#graph;
    const from = parentStart[node]!;
    const to = parentStart[node + 1]!;
    const { join } = this.#nodes[node]!;
    const looseJoin = join !== "none_failed" && join !== "all_success" && quorumOf(join) < to - from;
    let loose = false;
    for (let edge = from; edge < to; edge++) {
      if (edgeParent[edge] !== parent) continue;
      if (edgeOn[edge] === COMPLETED && join !== "all_done" && !looseJoin) return false;
      loose = true;
    }
    return loose;
  }
}

/** How many parents must be ok: n of `quorum:n`, otherwise one. */
function quorumOf(join: WorkflowNode["join"]): number {
  return join.startsWith("quorum:") ? Number(join.slice("quorum:".length)) : 1;
}

/** The tree of guards, with jump pointers: any question takes a logarithmic number of steps, however deep the graph. */
class GuardTree {
  readonly #graph: Graph;
  readonly #nodes: readonly WorkflowNode[];
  readonly #maySkip: Uint8Array;
  readonly #guard: Int32Array;
  readonly #jump: Int32Array;
  readonly #depth: Int32Array;

  constructor(graph: Graph, order: Int32Array, nodes: readonly WorkflowNode[], maySkip: Uint8Array) {
    this.#graph = graph;
    this.#nodes = nodes;
    this.#maySkip = maySkip;
    this.#guard = new Int32Array(graph.nodeCount).fill(START);
    this.#jump = new Int32Array(graph.nodeCount).fill(START);
    this.#depth = new Int32Array(graph.nodeCount).fill(1);
    for (const node of order) this.#hang(node, this.#guardOf(node));
  }

  /** True if `node` runs only after `ancestor` has completed. */
  isSure(node: number, ancestor: number): boolean {
    if (this.#isAbove(ancestor, this.#guard[node]!)) return true;
    const { parentStart } = this.#graph;
    for (let edge = parentStart[node]!; edge < parentStart[node + 1]!; edge++) {
      if (this.#isFirm(node, edge) && this.#isAbove(ancestor, this.#evidence(edge))) return true;
    }
    return false;
  }

  /** The edge must be ok for the node to run. */
  #isFirm(node: number, edge: number): boolean {
    const { edgeOn, edgeParent, parentStart } = this.#graph;
    const { join } = this.#nodes[node]!;
    if (join === "all_success") return true;
    if (join === "none_failed") return edgeOn[edge] === COMPLETED && this.#maySkip[edgeParent[edge]!] === 0;
    return join !== "all_done" && quorumOf(join) >= parentStart[node + 1]! - parentStart[node]!;
  }

  /** The nearest node known to have completed if this edge is ok. */
  #evidence(edge: number): number {
    const { edgeOn, edgeParent } = this.#graph;
    const parent = edgeParent[edge]!;
    if (edgeOn[edge] === FAILED) return this.#guard[parent]!;
    if (edgeOn[edge] !== COMPLETED) return START;
    return this.#nodes[parent]!.on_error === "continue" ? this.#guard[parent]! : parent;
  }

  #guardOf(node: number): number {
    const { parentStart } = this.#graph;
    const from = parentStart[node]!;
    const to = parentStart[node + 1]!;
    if (from === to || this.#nodes[node]!.join === "all_done") return START;
    let firmest = START;
    let common: number | undefined;
    for (let edge = from; edge < to; edge++) {
      const evidence = this.#evidence(edge);
      if (this.#isFirm(node, edge) && this.#depthOf(evidence) > this.#depthOf(firmest)) firmest = evidence;
      common = common === undefined ? evidence : this.#meet(common, evidence);
    }
    // At least one edge is ok, so what all of them have in common has completed in any case.
    return this.#depthOf(firmest) > this.#depthOf(common!) ? firmest : common!;
  }

  #hang(node: number, guard: number): void {
    this.#guard[node] = guard;
    if (guard === START) return;
    this.#depth[node] = this.#depth[guard]! + 1;
    const jump = this.#jump[guard]!;
    const step = this.#depth[guard]! - this.#depthOf(jump);
    const isEven = jump !== START && this.#depth[jump]! - this.#depthOf(this.#jump[jump]!) === step;
    this.#jump[node] = isEven ? this.#jump[jump]! : guard;
  }

  #depthOf(node: number): number {
    return node === START ? 0 : this.#depth[node]!;
  }

  #isAbove(ancestor: number, node: number): boolean {
    return this.#climb(node, this.#depth[ancestor]!) === ancestor;
  }

  /** The node of a given depth on the way up, or the node itself if it is higher already. */
  #climb(node: number, depth: number): number {
    let at = node;
    while (this.#depthOf(at) > depth) {
      const jump = this.#jump[at]!;
      at = this.#depthOf(jump) >= depth ? jump : this.#guard[at]!;
    }
    return at;
  }

  /** The nearest node above both, or one of them. */
  #meet(a: number, b: number): number {
    const depth = Math.min(this.#depthOf(a), this.#depthOf(b));
    let left = this.#climb(a, depth);
    let right = this.#climb(b, depth);
    while (left !== right) {
      const jumps = this.#jump[left] !== this.#jump[right];
      left = jumps ? this.#jump[left]! : this.#guard[left]!;
      right = jumps ? this.#jump[right]! : this.#guard[right]!;
    }
    return left;
  }
}
