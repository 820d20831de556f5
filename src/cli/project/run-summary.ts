import { isQuiet } from "../../drawing/fold-parts.ts";
import { shownDuration, shownState } from "../../drawing/states.ts";
import type { Terminal } from "../call.ts";
import { oneLine } from "../print.ts";
import type { ShownExecution, ShownNode } from "../shapes.ts";
import { writtenNodes } from "../written-nodes.ts";

/** More rows than this are no summary. */
const MAX_ROWS = 30;

/** One execution as `dev` tells it when it is over. */
export function runSummary(execution: ShownExecution, number: number, url: string, terminal: Terminal): string {
  const { workflow, status, execution_id: id, error } = execution;
  const took = spanOf(execution);
  const { word } = shownState(status);
  const format = status === "COMPLETED" ? "green" : "red";
  const title = `  ${workflow} #${number}   ${terminal.style(format, word)}${took === undefined ? "" : ` in ${shownDuration(took.endMs - took.startMs)}`}`;
  const written = new Set(writtenNodes(execution.nodes));
  const nodes = Object.entries(execution.nodes ?? {}).filter(
    ([name, node]) => written.has(name) || !isQuiet(node.status),
  );
  const lines = nodes.length > MAX_ROWS ? [`    ${counts(nodes)}`] : rows(nodes);
  if (error !== null) lines.push(`    ${oneLine(`${error.code}: ${error.message}`)}`);
  return `${[title, ...lines, `  open ${url}/runs/${id}`].join("\n")}\n`;
}

function rows(nodes: readonly (readonly [string, ShownNode])[]): string[] {
  const width = Math.max(...nodes.map(([id]) => id.length));
  const spans = nodes.map(([, node]) => spanOf(node));
  const times = spans.map((span) => (span === undefined ? "" : shownDuration(span.endMs - span.startMs)));
  const timeWidth = Math.max(...times.map((time) => time.length));
  return nodes.map(([id, node], i) => {
    const { symbol, word } = shownState(node.status);
    const notes = [
      ...(node.status === "COMPLETED" ? [] : [word]),
      ...(node.attempt > 1 ? [`attempt ${node.attempt}`] : []),
      ...(node.items === undefined ? [] : [`${node.items.completed} of ${node.items.total} items`]),
      ...(isParallel(spans, i) ? ["(parallel)"] : []),
    ];
    return `    ${symbol} ${oneLine(id).padEnd(width)}   ${times[i]!.padStart(timeWidth)}   ${notes.join(" ")}`.trimEnd();
  });
}

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

function spanOf(timed: { readonly started_at: string | null; readonly finished_at: string | null }): Span | undefined {
  if (timed.started_at === null || timed.finished_at === null) return undefined;
  return { startMs: Date.parse(timed.started_at), endMs: Date.parse(timed.finished_at) };
}

/** Whether another node was at work at the same time. */
function isParallel(spans: readonly (Span | undefined)[], index: number): boolean {
  const own = spans[index];
  if (own === undefined) return false;
  return spans.some(
    (other, i) => i !== index && other !== undefined && other.startMs < own.endMs && own.startMs < other.endMs,
  );
}

function counts(nodes: readonly (readonly [string, ShownNode])[]): string {
  const groups = Map.groupBy(nodes, ([, { status }]) => status);
  return [...groups].map(([status, all]) => `${all.length} ${shownState(status).word}`).join(", ");
}
