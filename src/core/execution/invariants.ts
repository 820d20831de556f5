import { edgeCounts } from "./evolve.ts";
import { EDGE, type ExecutionState } from "./state.ts";

/** Our own bug: the state contradicts itself. Thrown before anything of it is stored. */
export class InvariantBroken extends Error {
  override readonly name = "InvariantBroken";
}

/** What is cheap enough to hold after every decision, whatever the size of the graph. */
export function checkTouched(state: ExecutionState): void {
  const { id, live, openCount } = state;
  let liveTasks = 0;
  for (const count of state.liveByQueue.values()) liveTasks += count;
  if (liveTasks !== live.size) broken(id, `${live.size} tasks are out, ${liveTasks} are counted by queue`);
  if (openCount < 0) broken(id, `${openCount} nodes are open`);
  if (state.status === "running" && openCount > 0 && !hasWaker(state)) {
    broken(id, `${openCount} nodes are open and nothing will ever move them`);
  }
  if (state.isEnded && (state.readyCount > 0 || state.skips.length > 0 || state.timers.peekMs() !== null)) {
    broken(id, "it has ended and still has something to do");
  }
  const limit = state.plan.workflow.max_parallel_nodes;
  if (limit !== null && live.size > limit) broken(id, `${live.size} nodes run at once, ${limit} may`);
}

/** Something that will make this execution move: work that `advance` sees, a task with its deadline, a timer. */
function hasWaker(state: ExecutionState): boolean {
  return state.readyCount > 0 || state.skips.length > 0 || state.live.size > 0 || state.timers.peekMs() !== null;
}

/** Everything, by looking at all nodes and edges: for tests and the simulator. */
export function checkWhole(state: ExecutionState): void {
  checkTouched(state);
  let open = 0;
  for (let node = 0; node < state.plan.graph.nodeCount; node++) {
    if (!state.isNodeEnded(node)) open++;
    checkEdges(state, node);
    if (!state.isEnded) checkNode(state, node);
  }
  if (open !== state.openCount) broken(state.id, `${open} nodes are open, ${state.openCount} are counted`);
}

function checkEdges(state: ExecutionState, node: number): void {
  const { graph } = state.plan;
  const counts = { [EDGE.undecided]: 0, [EDGE.ok]: 0, [EDGE.void]: 0, [EDGE.bad]: 0 };
  for (let edge = graph.parentStart[node]!; edge < graph.parentStart[node + 1]!; edge++) {
    const verdict = state.edges[edge]! as keyof typeof counts;
    counts[verdict]++;
    const parentEnded = state.isNodeEnded(graph.edgeParent[edge]!);
    if (parentEnded !== (verdict !== EDGE.undecided)) broken(state.id, `an edge into ${graph.ids[node]} is wrong`);
  }
  const said = edgeCounts(state, node);
  if (said.undecided !== counts[EDGE.undecided] || said.ok !== counts[EDGE.ok] || said.bad !== counts[EDGE.bad]) {
    broken(state.id, `the parents of ${graph.ids[node]} are miscounted`);
  }
}

/** Each open node has exactly the waker its state asks for. */
function checkNode(state: ExecutionState, node: number): void {
  const id = state.plan.graph.ids[node]!;
  const run = state.runs[node];
  const live = state.live.has(node);
  const inLine = state.inLine[node] === 1;
  const due = run?.dueAtMs ?? null;
  switch (state.statusOf(node)) {
    case "pending":
      if (live || due !== null) broken(state.id, `${id} is pending and has a task or deadline`);
      if (state.status === "running" && state.undecided[node] === 0 && !inLine && !state.skipReasons.has(node)) {
        broken(state.id, `${id} has all its parents and stands in no line`);
      }
      return;
    case "queued":
      if (live === inLine) broken(state.id, `${id} is queued, with ${live ? "a task and a place in line" : "neither"}`);
      if (live && due === null) broken(state.id, `${id} is queued without a deadline`);
      return;
    case "running":
      if (!live || due === null) broken(state.id, `${id} is running without a task or a deadline`);
      return;
    case "waiting":
      if (live || due === null) broken(state.id, `${id} waits without a timer`);
      return;
    case "completed":
    case "failed":
    case "skipped":
      if (live || due !== null || inLine) broken(state.id, `${id} has ended and still has a task, timer or place`);
  }
}

function broken(id: string, what: string): never {
  throw new InvariantBroken(`execution ${id}: ${what}`);
}
