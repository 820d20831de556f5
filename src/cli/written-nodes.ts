import type { ShownNode } from "./shapes.ts";

/** The nodes that somebody wrote, without those that the SDK adds: `flag#when` to `flag`, `output#` to the workflow. */
export function writtenNodes(nodes: Readonly<Record<string, ShownNode>> = {}): string[] {
  return Object.keys(nodes).filter((name) => {
    const at = name.lastIndexOf("#");
    return name !== "output#" && (at < 1 || !Object.hasOwn(nodes, name.slice(0, at)));
  });
}
