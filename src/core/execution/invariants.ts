import { edgeCounts } from "./spread.ts";
import { EDGE, type ExecutionState } from "./state.ts";
import { stuckUnits } from "./wakers.ts";

/** Our own bug: the state contradicts itself. Thrown before anything of it is stored. */
export class InvariantBroken extends Error {
  override readonly name = "InvariantBroken";
}

/** What is cheap enough to hold after every decision, whatever the size of the graph. */
export function checkTouched(state: ExecutionState): void {
  const { id, live, openCount } = state;
  const { total } = state.liveByQueue;
  if (total !== live.size) broken(id, `${live.size} tasks are out, ${total} are counted by queue`);
  if (openCount < 0) broken(id, `${openCount} nodes are open`);
  if (state.closing < 0) broken(id, `${state.closing} units have to be closed`);
  if (state.status === "running" && openCount > 0 && !hasWaker(state)) {
    broken(id, `${openCount} nodes are open and nothing will ever move them`);
  }
  const wakes = state.timers.peekMs() !== null || state.calendar.peekMs() !== null;
  if (state.isEnded && (state.ready.count > 0 || state.skips.length > 0 || wakes)) {
    broken(id, "it has ended and still has something to do");
  }
  if (state.isEnded && state.asks.size > 0) broken(id, "it has ended and still stands at a gate");
  const limit = state.plan.workflow.max_parallel_nodes;
  if (limit !== null && live.size > limit) broken(id, `${live.size} nodes run at once, ${limit} may`);
}

/** Something that will make this execution move: work that `advance` sees, a task with its deadline, a timer, a child. */
function hasWaker(state: ExecutionState): boolean {
  if (state.ready.count > 0 || state.skips.length > 0 || state.live.size > 0 || state.children.size > 0) return true;
  if (state.asks.size > 0) return true;
  return state.timers.peekMs() !== null || state.calendar.peekMs() !== null;
}

/** Everything, by looking at all units and edges: for tests and the simulator. */
export function checkWhole(state: ExecutionState): void {
  checkTouched(state);
  let open = 0;
  for (let node = 0; node < state.plan.graph.nodeCount; node++) {
    if (!state.isNodeEnded(node)) open++;
    checkEdges(state, node);
  }
  if (open !== state.openCount) broken(state.id, `${open} nodes are open, ${state.openCount} are counted`);
  checkCounts(state);
  if (state.isEnded) return;
  for (let unit = 0; unit < state.runs.length; unit++) checkUnit(state, unit);
  for (const map of state.maps.values()) checkMap(state, map.node);
  const [stuck] = stuckUnits(state);
  if (stuck !== undefined) {
    const { unit, lost } = stuck;
    const what = lost === "waker" ? "nothing will ever move it" : "its deadline stands in no heap";
    broken(state.id, `${state.nameOf(unit)} is ${state.statusOf(unit)} and ${what}`);
  }
}

function checkCounts({ id, liveByQueue, ready }: ExecutionState): void {
  const inLine = ready.inTurn.reduce((count, line) => count + ready.of(line).length, 0);
  const standing = ready.toArrays().flat().length;
  if (inLine !== ready.count || standing !== ready.count) {
    broken(id, `${standing} units stand in line, ${inLine} of them where somebody looks, ${ready.count} are counted`);
  }
  const out = [...liveByQueue].reduce((count, [, ofQueue]) => count + ofQueue, 0);
  if (out !== liveByQueue.total) broken(id, `${out} tasks are out by queue, ${liveByQueue.total} in all`);
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

/** No unit has more than its state asks for: a task and a place in line would be two dispatches. */
function checkUnit(state: ExecutionState, unit: number): void {
  const run = state.runs[unit];
  if (run === undefined) return;
  const name = state.nameOf(unit);
  const live = state.live.has(unit);
  const inLine = state.inLine[unit] === 1;
  const due = run.dueAtMs !== null;
  const isMap = state.planOf(unit).item !== null;
  checkAsks(state, unit);
  switch (state.statusOf(unit)) {
    case "pending": {
      const mayJoin = state.planOf(unit).spec.join_timeout_seconds !== undefined && !state.isItem(unit);
      const joins = mayJoin && state.joined[unit] === 0;
      if (live || (due && !joins)) broken(state.id, `${name} is pending and has a task or deadline`);
      return;
    }
    case "queued":
      if (live && inLine) broken(state.id, `${name} is queued, with a task and a place in line`);
      return;
    case "running":
      if (!isMap && inLine) broken(state.id, `${name} is running and stands in line`);
      return;
    case "waiting":
      if (live) broken(state.id, `${name} waits and has a task`);
      return;
    case "completed":
    case "failed":
    case "skipped":
    case "cancelled":
      if (live || due || inLine) broken(state.id, `${name} has ended and still has a task, timer or place`);
  }
}

/** What stands at a gate is not on its way; what is out or in line has been let through all it has asked. */
function checkAsks(state: ExecutionState, unit: number): void {
  const asks = state.asks.get(unit);
  if (asks === undefined) return;
  const name = state.nameOf(unit);
  const waiting = asks.filter(({ status }) => status === "asked").length;
  if (state.isNodeEnded(unit)) broken(state.id, `${name} has ended and still stands at a gate`);
  if (waiting > 1) broken(state.id, `${name} waits at ${waiting} gates at once`);
  if (waiting > 0 && (state.live.has(unit) || state.inLine[unit] === 1)) {
    broken(state.id, `${name} waits at a gate, and has a task or a place in line`);
  }
}

function checkMap(state: ExecutionState, node: number): void {
  const map = state.maps.get(node)!;
  if (state.statusOf(node) !== "running") return;
  let completed = 0;
  let failed = 0;
  let open = 0;
  for (let unit = map.base; unit < map.base + map.count; unit++) {
    const status = state.statusOf(unit);
    if (status === "completed") completed++;
    else if (status === "failed") failed++;
    else if (unit - map.base < map.next) open++;
  }
  if (completed !== map.completed || failed !== map.failed || open !== map.open) {
    broken(state.id, `the items of ${state.nameOf(node)} are miscounted`);
  }
  if (map.open > map.concurrency) broken(state.id, `${map.open} items of ${state.nameOf(node)} are under way`);
}

function broken(id: string, what: string): never {
  throw new InvariantBroken(`execution ${id}: ${what}`);
}
