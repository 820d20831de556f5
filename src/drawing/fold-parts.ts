import type { Dependency, Workflow, WorkflowNode } from "../definition/workflow.ts";

/** What a node of the SDK says that is only there for the sake of another: a condition or a title that is a function. */
const PART_OF = "x-millrace-part-of";

/** The nodes that nobody wrote, by the node that they are a part of. */
export function partsOf({ nodes }: Workflow): ReadonlyMap<string, string> {
  const ids = new Set(nodes.map(({ id }) => id));
  const parts = new Map<string, string>();
  for (const node of nodes) {
    const owner = node[PART_OF];
    if (typeof owner === "string" && owner !== node.id && ids.has(owner)) parts.set(node.id, owner);
  }
  return parts;
}

/** The nodes as they were written: what is a part of one is drawn into it, with whatever it waits for. */
export function foldParts(workflow: Workflow): readonly WorkflowNode[] {
  const parts = partsOf(workflow);
  if (parts.size === 0) return workflow.nodes;
  const shown = (id: string): string => parts.get(id) ?? id;
  const wanted = new Map<string, Map<string, Dependency>>();
  for (const { id, dependencies } of workflow.nodes) {
    const owner = shown(id);
    const list = wanted.get(owner) ?? new Map<string, Dependency>();
    wanted.set(owner, list);
    for (const dependency of dependencies) {
      const { id: from, on } =
        typeof dependency === "string" ? { id: dependency, on: "completed" as const } : dependency;
      const to = shown(from);
      if (to !== owner) list.set(`${to} ${on}`, on === "completed" ? to : { id: to, on });
    }
  }
  const own = Map.groupBy(parts.keys(), (part) => parts.get(part)!);
  return workflow.nodes
    .filter(({ id }) => !parts.has(id))
    .map(({ condition, ...node }) => {
      // It asks a part of its own, whose name says nothing to whoever wrote the function.
      const isOwn = own.get(node.id)?.some((part) => condition?.includes(part)) === true;
      const asked = isOwn ? "its function says so" : condition;
      const dependencies = [...wanted.get(node.id)!.values()];
      return { ...node, dependencies, ...(asked !== undefined && { condition: asked }) };
    });
}

/** Parts of a node that are done, or have not begun, are nobody's business. */
export function isQuiet(status: string): boolean {
  return status !== "FAILED" && status !== "RUNNING" && status !== "QUEUED" && status !== "WAITING";
}

/** How a node stands, with its parts: one that waits for a part of its own is not pending any more. */
export function withParts(
  parts: ReadonlyMap<string, string>,
  statusOf: (id: string) => string | undefined,
): (id: string) => string | undefined {
  const busy = new Map<string, string>();
  for (const [part, owner] of parts) {
    const status = statusOf(part);
    if (status !== undefined && !isQuiet(status)) busy.set(owner, status);
  }
  return (id) => {
    const own = statusOf(id);
    const isOpen = own === "PENDING" || own === "SKIPPED" || own === "CANCELLED";
    return isOpen ? (busy.get(id) ?? own) : own;
  };
}
