import type { Diagram } from "./diagram.ts";
import type { StatusOf } from "./draw-text.ts";
import { shownState } from "./states.ts";

/** The graph as Mermaid. Ids are numbered, so that no name can be taken for syntax. */
export function drawMermaid({ nodes, edges }: Diagram, statusOf?: StatusOf): string {
  const lines = ["flowchart LR"];
  for (const [i, { id, handler, condition }] of nodes.entries()) {
    const parts = [id, handler, ...(condition === undefined ? [] : [`if ${condition}`])];
    const status = statusOf?.(id);
    if (status !== undefined) parts.push(`${shownState(status).symbol} ${shownState(status).word}`);
    lines.push(`  n${i}["${parts.map(escaped).join("<br/>")}"]`);
  }
  for (const { from, to, on } of edges) {
    lines.push(on === "completed" ? `  n${from} --> n${to}` : `  n${from} -. ${on} .-> n${to}`);
  }
  return `${lines.join("\n")}\n`;
}

/** Mermaid reads HTML entities with `#` for `&`. */
function escaped(text: string): string {
  return text.replaceAll(/[^\p{L}\p{N} ._=+-]/gu, (char) => `#${char.codePointAt(0)};`);
}
