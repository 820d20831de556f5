import { oneLine } from "./print.ts";
import type { ShownExecution } from "./shapes.ts";

/** Why an execution did not end well, what it has kept, and what to do next. */
export function failureText(execution: ShownExecution, canGoOn: boolean): string {
  const { execution_id: id, workflow, status, error, nodes = {}, retryable_from: retryable = [] } = execution;
  const failed = Object.entries(nodes).filter(([, node]) => node.status === "FAILED");
  const lines = [`${status}  ${workflow} ${id}`];
  if (error !== null && error.node_id === undefined) lines.push(`  ${error.code}: ${error.message}`);
  for (const [name, node] of failed.slice(0, 10)) {
    const attempts = node.attempt > 1 ? ` after ${node.attempt} attempts` : "";
    lines.push(`  node "${name}" failed${attempts}`, `    ${node.error?.code ?? ""}: ${node.error?.message ?? ""}`);
  }
  if (failed.length > 10) lines.push(`  … and ${failed.length - 10} more nodes failed`);
  const kept = count(nodes, "COMPLETED");
  const unrun = count(nodes, "SKIPPED") + count(nodes, "CANCELLED");
  if (status !== "CANCELLED") {
    lines.push(
      `  ${kept === 1 ? "1 node keeps its result" : `${kept} nodes keep their results`}; ${unrun} did not run`,
    );
  }
  const [first] = retryable;
  if (canGoOn) {
    const part = first === undefined ? "" : `     or a part: millrace rerun ${id} --from ${shellWord(first)}`;
    lines.push(`  next: millrace retry ${id}${part}`);
  }
  return `${lines.map(oneLine).join("\n")}\n`;
}

function count(nodes: NonNullable<ShownExecution["nodes"]>, status: string): number {
  return Object.values(nodes).filter((node) => node.status === status).length;
}

/** A name that can be pasted into a shell. */
export function shellWord(text: string): string {
  return /^[\w.@%+=:,/-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
