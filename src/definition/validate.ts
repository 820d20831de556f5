import { quote } from "../errors/registry.ts";
import { checkRouters, checkTaskFields, checkWaits } from "./control-nodes.ts";
import { findCycles, topologicalOrder, type TopologicalOrder } from "./cycles.ts";
import { buildGraph, type Graph } from "./graph.ts";
import type { KnownHandlers } from "./handlers.ts";
import type { LoadedDefinition } from "./load.ts";
import { SkipAnalysis } from "./may-skip.ts";
import type { NodeList } from "./node-list.ts";
import type { ProblemList } from "./problems.ts";
import { type ListCheck, TemplateChecker } from "./templates.ts";

/** More names than this in one message help nobody. */
const MAX_NAMES = 20;

/** Checks what spans several nodes of a loaded definition: the graph, routes, waits, templates. */
export function validate({ workflow, lists }: LoadedDefinition, handlers: KnownHandlers, problems: ProblemList): void {
  const checks = new Map<NodeList, ListCheck>();
  for (const list of lists) {
    const graph = buildGraph(list.nodes);
    const topology = topologicalOrder(graph);
    reportCycles(list, graph, topology, problems);
    const routed = checkRouters(list, graph, topology, problems);
    checkWaits(list, workflow.timeout_seconds, problems);
    checkTaskFields(list, handlers, problems);
    const skips = new SkipAnalysis(graph, topology, list.nodes, routed);
    // A map's inner graph comes after the one it stands in.
    const outer = list.parent === undefined ? undefined : checks.get(list.parent.list);
    checks.set(list, { list, graph, topology, skips, outer, questions: [], amidCircles: [] });
  }
  new TemplateChecker(handlers, workflow.input_schema, problems).check([...checks.values()]);
}

function reportCycles(list: NodeList, graph: Graph, topology: TopologicalOrder, problems: ProblemList): void {
  const { cycles, behind } = findCycles(graph, topology);
  for (const cycle of cycles) {
    const [first] = cycle;
    const last = cycle.at(-1)!;
    const ids = cycle.slice(0, MAX_NAMES).map((node) => graph.ids[node]!);
    const more = cycle.length - ids.length;
    const path = more > 0 ? [...ids, `… ${more} more`, ids[0]!] : [...ids, ids[0]!];
    const hint =
      `Remove one of these dependencies, for instance ${quote(graph.ids[last]!)} from those of ${quote(ids[0]!)}. ` +
      'To run a node again use "retry" or "repeat".';
    problems.add("CYCLE_DETECTED", list.pointer(first!), { path }, { hint });
  }
  if (behind.length > 0) {
    const ids = behind.slice(0, MAX_NAMES).map((node) => graph.ids[node]!);
    const hint = "They become reachable once the circle is gone.";
    problems.add("ORPHAN_STEPS", list.pointer(behind[0]!), { ids, more: behind.length - ids.length }, { hint });
  }
}
