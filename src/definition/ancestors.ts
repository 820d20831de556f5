import type { TopologicalOrder } from "./cycles.ts";
import type { Graph } from "./graph.ts";

/** Edges that all questions of one definition together may look at. Beyond it a question gets no answer. */
const WORK_LIMIT = 100_000_000;
/** A definition with a circle is refused anyway; what else is wrong with it is told as far as that costs little. */
const CIRCLES_WORK_LIMIT = 5_000_000;

/** A question: does `ancestor` come before `node`? */
export interface AncestorQuestion {
  readonly node: number;
  readonly ancestor: number;
}

/**
 * Answers many questions about an acyclic graph: true, false, or undefined if the limit was reached.
 *
 * Nearly all are answered at once: by the order of the nodes, or because the node hangs below the other one in one
 * spanning forest (in a chain or a tree that is everything). The rest is walked, from whichever side has fewer
 * starting points, and never beyond the rank of what is looked for.
 */
export function answerAncestors(
  graph: Graph,
  { order, rank }: TopologicalOrder,
  questions: readonly AncestorQuestion[],
  workLimit: number = WORK_LIMIT,
): (boolean | undefined)[] {
  if (questions.length === 0) return [];
  const forest = spanningForest(graph, order);
  const answers: (boolean | undefined)[] = [];
  const open: number[] = [];
  for (let i = 0; i < questions.length; i++) {
    const { node, ancestor } = questions[i]!;
    const from = forest.enter[ancestor]!;
    if (rank[ancestor]! >= rank[node]!) answers.push(false);
    else if (from <= forest.enter[node]! && forest.enter[node]! < forest.leave[ancestor]!) answers.push(true);
    else {
      answers.push(undefined);
      open.push(i);
    }
  }
  if (open.length > 0) walk(new Walks(graph, rank, workLimit), questions, open, answers);
  return answers;
}

/** The same for nodes that are in a circle or behind one, where no order helps: all of it is walked, up to a lower limit. */
export function answerAmidCircles(graph: Graph, questions: readonly AncestorQuestion[]): (boolean | undefined)[] {
  const answers: (boolean | undefined)[] = questions.map(() => undefined);
  if (questions.length === 0) return answers;
  const unranked = new Int32Array(graph.nodeCount);
  walk(new Walks(graph, unranked, CIRCLES_WORK_LIMIT), questions, [...questions.keys()], answers);
  return answers;
}

/** Depth-first numbers of a forest in which each node hangs below its first parent. */
function spanningForest(graph: Graph, order: Int32Array): { enter: Int32Array; leave: Int32Array } {
  const { nodeCount, parentStart, edgeParent } = graph;
  // Sizes from the leaves up, numbers from the roots down: no walk, no stack.
  const size = new Int32Array(nodeCount).fill(1);
  const treeParent = new Int32Array(nodeCount).fill(-1);
  for (let i = order.length - 1; i >= 0; i--) {
    const node = order[i]!;
    if (parentStart[node] === parentStart[node + 1]) continue;
    const parent = edgeParent[parentStart[node]!]!;
    treeParent[node] = parent;
    size[parent]! += size[node]!;
  }
  const enter = new Int32Array(nodeCount);
  const leave = new Int32Array(nodeCount);
  const nextFree = new Int32Array(nodeCount);
  let nextRoot = 0;
  for (const node of order) {
    const parent = treeParent[node]!;
    if (parent === -1) {
      enter[node] = nextRoot;
      nextRoot += size[node]!;
    } else {
      enter[node] = nextFree[parent]!;
      nextFree[parent]! += size[node]!;
    }
    leave[node] = enter[node] + size[node]!;
    nextFree[node] = enter[node] + 1;
  }
  return { enter, leave };
}

function walk(
  walks: Walks,
  questions: readonly AncestorQuestion[],
  open: readonly number[],
  answers: (boolean | undefined)[],
): void {
  const byNode = Map.groupBy(open, (i) => questions[i]!.node);
  const byAncestor = Map.groupBy(open, (i) => questions[i]!.ancestor);
  const backward = byNode.size <= byAncestor.size;
  for (const [start, asked] of backward ? byNode : byAncestor) {
    const goals = asked.map((i) => (backward ? questions[i]!.ancestor : questions[i]!.node));
    if (!walks.visitFrom(start, goals, backward)) return;
    for (const i of asked) answers[i] = walks.reached(backward ? questions[i]!.ancestor : questions[i]!.node);
  }
}

class Walks {
  readonly #graph: Graph;
  readonly #rank: Int32Array;
  readonly #workLimit: number;
  /** The walk that last came through a node. Never cleared: a new walk has a new number. */
  readonly #stamp: Int32Array;
  #walk = 0;
  #work = 0;

  constructor(graph: Graph, rank: Int32Array, workLimit: number) {
    this.#graph = graph;
    this.#rank = rank;
    this.#workLimit = workLimit;
    this.#stamp = new Int32Array(graph.nodeCount);
  }

  /** Walks until all goals are found, or nothing is left on the way to the furthest. False at the work limit. */
  visitFrom(start: number, goals: readonly number[], backward: boolean): boolean {
    const { parentStart, edgeParent, childStart, childEdge, edgeChild } = this.#graph;
    const rank = this.#rank;
    let limit = rank[goals[0]!]!;
    for (const goal of goals) limit = backward ? Math.min(limit, rank[goal]!) : Math.max(limit, rank[goal]!);
    const walk = ++this.#walk;
    const wanted = new Set(goals);
    // Depth first: where most ways lead to the goal, it need not look at all of them.
    const stack = [start];
    for (let node = stack.pop(); node !== undefined && wanted.size > 0; node = stack.pop()) {
      const from = backward ? parentStart[node]! : childStart[node]!;
      const to = backward ? parentStart[node + 1]! : childStart[node + 1]!;
      this.#work += to - from;
      if (this.#work > this.#workLimit) return false;
      for (let k = from; k < to; k++) {
        const next = backward ? edgeParent[k]! : edgeChild[childEdge[k]!]!;
        if (this.#stamp[next] === walk || (backward ? rank[next]! < limit : rank[next]! > limit)) continue;
        this.#stamp[next] = walk;
        stack.push(next);
        if (wanted.delete(next) && wanted.size === 0) break;
      }
    }
    return true;
  }

  reached(node: number): boolean {
    return this.#stamp[node] === this.#walk;
  }
}
