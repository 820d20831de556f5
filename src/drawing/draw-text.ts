import type { Diagram } from "./diagram.ts";
import { shownState } from "./states.ts";

/** The state of a node, upper-case, by its id. */
export type StatusOf = (id: string) => string | undefined;

/** More names than this on one line help nobody. */
const MAX_PARENTS = 8;

/** The graph as text: one line for each node, level by level. Says in words all that the picture shows. */
export function drawText(diagram: Diagram, statusOf?: StatusOf): string {
  const { name, nodes, edges, levels } = diagram;
  const parents = new Map<number, string[]>();
  for (const { from, to, on } of edges) {
    const list = parents.get(to) ?? [];
    if (list.length === 0) parents.set(to, list);
    const { id } = nodes[from]!;
    list.push(on === "completed" ? id : `${id} (${on})`);
  }
  const idWidth = Math.max(...nodes.map(({ id }) => id.length));
  const handlerWidth = Math.max(...nodes.map(({ handler }) => handler.length));
  const lines = [
    `${name}   ${count(nodes.length, "node")} · ${count(edges.length, "dependency")} · ${count(levels.length, "level")}`,
  ];
  for (const [i, level] of levels.entries()) {
    lines.push("", `level ${i + 1}`);
    for (const node of level) {
      const { id, handler, condition } = nodes[node]!;
      const state = statusOf === undefined ? "" : `${stateColumn(statusOf(id))}  `;
      const notes = [after(parents.get(node) ?? []), condition === undefined ? "" : `if ${condition}`];
      const told = notes.filter((note) => note !== "").join(" · ");
      lines.push(`  ${state}${id.padEnd(idWidth)}   ${handler.padEnd(handlerWidth)}   ${told}`.trimEnd());
    }
  }
  return `${lines.join("\n")}\n`;
}

function stateColumn(status: string | undefined): string {
  const { symbol, word } = shownState(status ?? "PENDING");
  return `${symbol} ${word.padEnd(9)}`;
}

function after(parents: readonly string[]): string {
  if (parents.length === 0) return "";
  const more = parents.length - MAX_PARENTS;
  return `after ${parents.slice(0, MAX_PARENTS).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function count(amount: number, noun: string): string {
  if (amount === 1) return `1 ${noun}`;
  return `${amount} ${noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : `${noun}s`}`;
}
