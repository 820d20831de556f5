import type { Diagram } from "./diagram.ts";
import type { StatusOf } from "./draw-text.ts";
import { shownState } from "./states.ts";

/** The graph for Graphviz. */
export function drawDot({ name, nodes, edges }: Diagram, statusOf?: StatusOf): string {
  const lines = [`digraph ${quoted(name)} {`, "  rankdir=LR;", '  node [shape=box, fontname="sans-serif"];'];
  for (const [i, { id, handler, condition }] of nodes.entries()) {
    const status = statusOf?.(id);
    const parts = [id, handler, ...(condition === undefined ? [] : [`if ${condition}`])];
    if (status !== undefined) parts.push(`${shownState(status).symbol} ${shownState(status).word}`);
    lines.push(`  n${i} [label=${quoted(parts.join("\n"))}];`);
  }
  for (const { from, to, on } of edges) {
    lines.push(
      on === "completed" ? `  n${from} -> n${to};` : `  n${from} -> n${to} [style=dashed, label=${quoted(on)}];`,
    );
  }
  return `${lines.join("\n")}\n}\n`;
}

function quoted(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`;
}
