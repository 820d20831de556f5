import { NearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { isJsonObject, type Json } from "../json/json.ts";
import type { TopologicalOrder } from "./cycles.ts";
import type { Graph } from "./graph.ts";
import type { NodeList } from "./node-list.ts";
import type { ProblemList } from "./problems.ts";
import type { WorkflowNode } from "./workflow.ts";

/** Checks the routers of a graph and gives the nodes that are targets of a route: those may be skipped. */
export function checkRouters(
  list: NodeList,
  graph: Graph,
  { rank }: TopologicalOrder,
  problems: ProblemList,
): ReadonlySet<number> {
  const targets = new Set<number>();
  const nearest = new NearestName(graph.ids);
  for (let index = 0; index < list.nodes.length; index++) {
    const node = list.nodes[index]!;
    if (node.handler !== "router") continue;
    const children = new Set<number>();
    for (let k = graph.childStart[index]!; k < graph.childStart[index + 1]!; k++) {
      children.add(graph.edgeChild[graph.childEdge[k]!]!);
    }
    for (const { id, below } of routeTargets(node)) {
      const target = graph.indexOf.get(id);
      if (target !== undefined && children.has(target)) {
        targets.add(target);
        continue;
      }
      const known = target !== undefined;
      const suggestion = known ? undefined : nearest.find(id);
      const reason = known ? `${quote(id)} does not depend on it` : `it sends to ${quote(id)}, which is not a node`;
      // A node that may come before the router cannot come after it as well: that would be a circle.
      const hint = known
        ? rank[target]! > rank[index]!
          ? `Add ${quote(node.id)} to the dependencies of ${quote(id)}.`
          : "A router sends to nodes that come after it, and list it in their dependencies."
        : suggestion === undefined
          ? undefined
          : `Did you mean ${quote(suggestion)}?`;
      problems.add("CONFIG_INVALID", list.config(index, below), { id: node.id, reason }, { hint });
    }
    if (node.config["mode"] === "exclusive" && node.config["else"] === undefined) {
      const hint = 'Add "else" with the node that runs when no route fits.';
      problems.add("ROUTE_WITHOUT_ELSE", list.field(index, "config"), { id: node.id }, { hint });
    }
  }
  return targets;
}

function* routeTargets({ config }: WorkflowNode): Iterable<{ id: string; below: string }> {
  const routes: readonly Json[] = Array.isArray(config["routes"]) ? config["routes"] : [];
  for (let i = 0; i < routes.length; i++) {
    const route = routes[i]!;
    if (isJsonObject(route)) yield* idsOf(route["to"], `/routes/${i}/to`);
  }
  yield* idsOf(config["else"], "/else");
}

function* idsOf(to: Json | undefined, below: string): Iterable<{ id: string; below: string }> {
  if (typeof to === "string") yield { id: to, below };
  else if (Array.isArray(to)) {
    for (let i = 0; i < to.length; i++) {
      const id: Json = to[i] as Json;
      if (typeof id === "string") yield { id, below: `${below}/${i}` };
    }
  }
}

/** Warns of waits that the workflow's own timeout would always cut short. Only of those somebody wrote. */
export function checkWaits(list: NodeList, timeoutSeconds: number, problems: ProblemList): void {
  if (timeoutSeconds === 0) return;
  for (let index = 0; index < list.nodes.length; index++) {
    const node = list.nodes[index]!;
    const wait = longestWait(node, list.raw[index]!);
    if (wait === undefined || wait.seconds <= timeoutSeconds) continue;
    const path = wait.field === "repeat" ? list.field(index, "repeat") : list.config(index, `/${wait.field}`);
    const details = { id: node.id, waitSeconds: wait.seconds, timeoutSeconds };
    problems.add("WAIT_EXCEEDS_TIMEOUT", path, details, {
      hint: "Raise the workflow's timeout_seconds, or wait less.",
    });
  }
}

const WAIT_FIELDS: ReadonlyMap<string, readonly string[]> = new Map([
  ["wait", ["seconds", "timeout_seconds"]],
  ["delay", ["seconds"]],
  ["review", ["due_seconds"]],
]);

function longestWait(node: WorkflowNode, raw: Json): { seconds: number; field: string } | undefined {
  const written = isJsonObject(raw) && isJsonObject(raw["config"]) ? raw["config"] : {};
  for (const field of WAIT_FIELDS.get(node.handler) ?? []) {
    const seconds = written[field];
    if (typeof seconds === "number") return { seconds, field };
  }
  if (node.repeat === undefined) return undefined;
  return { seconds: node.repeat.every_seconds * (node.repeat.max - 1), field: "repeat" };
}

/** A condition that stands inside a router's config. */
export function routeConditions({ config }: WorkflowNode): readonly { text: string; below: string }[] {
  const routes: readonly Json[] = Array.isArray(config["routes"]) ? config["routes"] : [];
  return routes.flatMap((route, i) =>
    isJsonObject(route) && typeof route["when"] === "string"
      ? [{ text: route["when"], below: `/routes/${i}/when` }]
      : [],
  );
}
