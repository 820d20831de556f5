import { NearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import type { TopologicalOrder } from "./cycles.ts";
import { NODE_FIELDS } from "./fields.ts";
import type { Graph } from "./graph.ts";
import type { KnownHandlers } from "./handlers.ts";
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

/** Warns of what is said about tasks on a node that makes none. Only where somebody wrote it. */
export function checkTaskFields(list: NodeList, handlers: KnownHandlers, problems: ProblemList): void {
  for (let index = 0; index < list.nodes.length; index++) {
    const { id, handler, config } = list.nodes[index]!;
    const raw = list.raw[index]!;
    if (!isJsonObject(raw) || handlers.get(handler)?.engine !== true) continue;
    if (raw["inputs"] === true && handler !== "output") {
      const details = { id, field: "inputs", runs: `${quote(handler)} nodes` };
      const hint = "Refer to what is needed in the config.";
      problems.add("FIELD_WITHOUT_EFFECT", list.field(index, "inputs"), details, { hint, atKey: true });
    }
    const item = handler === "map" ? config["handler"] : undefined;
    if (typeof item === "string" && handlers.get(item)?.engine !== true) continue;
    const runs =
      handler !== "map"
        ? `${quote(handler)} nodes`
        : typeof item === "string"
          ? `a map of ${quote(item)}`
          : "a map of nodes";
    for (const { field, at } of taskFields(list, index, raw)) {
      const hint = taskFieldHint(field, item ?? handler);
      problems.add("FIELD_WITHOUT_EFFECT", at, { id, field, runs }, { hint, atKey: true });
    }
  }
}

function* taskFields(list: NodeList, index: number, raw: JsonObject): Iterable<{ field: string; at: string }> {
  const given = (name: string): boolean => raw[name] !== undefined && raw[name] !== null;
  if (given("timeout_seconds")) yield { field: "timeout_seconds", at: list.field(index, "timeout_seconds") };
  if (
    given("queue_timeout_seconds") &&
    raw["queue_timeout_seconds"] !== NODE_FIELDS["queue_timeout_seconds"]!.default
  ) {
    yield { field: "queue_timeout_seconds", at: list.field(index, "queue_timeout_seconds") };
  }
  // In a definition that was stored all that a node inherits is written out, and nobody meant it for this one.
  const isStored = given("condition_on_error") && given("queue_timeout_seconds");
  if (isStored) return;
  for (const name of ["retry", "retry_config", "max_retries", "queue"]) {
    if (given(name)) yield { field: name, at: list.pointer(index) + pointerStep(name) };
  }
  const { handler, config } = list.nodes[index]!;
  if (handler === "map" && config["retry"] !== undefined) yield { field: "retry", at: list.config(index, "/retry") };
}

/** Where the same can be said with an effect. */
function taskFieldHint(field: string, runs: Json): string {
  if (runs === "map") return "Write it on the nodes inside.";
  if (runs === "workflow") return "Write it in the workflow that is called.";
  if (field === "timeout_seconds" && runs === "review") return 'How long it may take is "due_seconds" of its config.';
  if (field === "timeout_seconds" && runs === "wait") {
    return 'How long it waits for a signal is "timeout_seconds" of its config.';
  }
  return "Remove it.";
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
