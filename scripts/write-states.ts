import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { EXECUTION_MOVES, type Move, NODE_MOVES } from "../src/core/execution/moves.ts";

/** docs/states.md, drawn from the tables that `evolve` enforces. */
export function statesPage(): string {
  return `# States

Drawn from \`src/core/execution/moves.ts\` by \`npm run docs\`. \`evolve\` refuses every move that is not in these tables.

## Node

${diagram(NODE_MOVES)}

The event that ends an execution ends whatever is open in it, all at once, and the states of those nodes are derived when
they are read: CANCELLED, or under fail_fast SKIPPED for descendants of what failed. \`cancelled\` is stored only when a new
generation is opened that leaves them closed.

${table(NODE_MOVES)}

## Execution

${diagram(EXECUTION_MOVES)}

${table(EXECUTION_MOVES)}
`;
}

function diagram(moves: readonly Move<string>[]): string {
  const lines = moves.map(([from, event, to]) => `  ${from} --> ${to}: ${event}`);
  return `\`\`\`mermaid\nstateDiagram-v2\n${[...new Set(lines)].join("\n")}\n\`\`\``;
}

function table(moves: readonly Move<string>[]): string {
  const rows = moves.map(([from, event, to, why]) => `| ${from} | ${event} | ${to} | ${why} |`);
  return `| From | Event | To | Why |\n|---|---|---|---|\n${rows.join("\n")}`;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, "..", "docs", "states.md"), statesPage());
}
