import type { ShownExplanation } from "../api/service/histories.ts";
import type { ShownEvent } from "../api/service/event-view.ts";
import type { Workflow } from "../definition/workflow.ts";
import { diagramOf } from "../drawing/diagram.ts";
import { drawSvg } from "../drawing/draw-svg.ts";
import { isQuiet, partsOf, withParts } from "../drawing/fold-parts.ts";
import { namesOf } from "../drawing/node-names.ts";
import { isOver, shownDuration } from "../drawing/states.ts";
import type { Json } from "../json/json.ts";
import { shownTime } from "./executions-page.ts";
import { type Html, inPath, markup, trusted } from "./html.ts";
import { layout, state } from "./layout.ts";

/** The part of an execution that the page shows. */
export interface PageExecution {
  readonly execution_id: string;
  readonly workflow: string;
  readonly version: number | null;
  readonly status: string;
  readonly batch_status?: string;
  readonly generation: number;
  readonly input: Json;
  readonly output: Json;
  readonly error: { readonly code: string; readonly message: string; readonly node_id?: string } | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly nodes?: Readonly<Record<string, PageNode>>;
  readonly nodes_omitted?: number;
}

interface PageNode {
  readonly status: string;
  readonly attempt: number;
  readonly error: PageExecution["error"];
  readonly reason: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly child_execution_id: string | null;
  readonly items?: { readonly total: number; readonly completed: number; readonly failed: number };
}

export interface PageLine {
  readonly at: string;
  readonly node_id: string;
  readonly attempt: number;
  readonly level?: "error";
  readonly message: string;
  readonly fields?: Json;
}

export interface ExecutionView {
  readonly execution: PageExecution;
  readonly workflow: Workflow;
  readonly why: readonly ShownExplanation[];
  readonly events: readonly ShownEvent[];
  /** What its handlers have logged; undefined if that was too much to ask. */
  readonly lines: readonly PageLine[] | undefined;
  /** Come back by itself. */
  readonly isLive: boolean;
}

/** Beyond this a picture is a carpet; the table has them all. */
const MAX_DRAWN = 400;
const MAX_REASONS = 50;
const MAX_LINES = 100;
const MAX_JSON_CHARS = 20_000;
const LIVE_SECONDS = 2;

/** `/runs/<id>`: state, graph, the same as a table, why it waits, what went in and came out, its log, what happened. */
export function executionPage(view: ExecutionView): string {
  const { execution } = view;
  const { execution_id: id, workflow, status, batch_status, input, output } = execution;
  const comesBack = view.isLive && !isOver(status);
  const body = markup`<h1>${workflow} ${state(batch_status ?? status)}</h1>
${!isOver(status) && links(view.isLive)}
${summary(execution)}
${why(view)}
<h2 id="graph">Graph</h2>
${graph(view)}
<h2 id="nodes">Nodes</h2>
${nodes(view)}
<h2>Input</h2>
${json(input)}
<h2>Output</h2>
${json(output)}
<h2>What you can do</h2>
<ul>
${actions(execution)}</ul>
<h2 id="logs">Logs</h2>
${logs(view)}
<h2>Events</h2>
${events(view)}`;
  return layout(`${workflow} ${id}`, body, comesBack ? LIVE_SECONDS : undefined);
}

function links(isLive: boolean): Html {
  if (!isLive) return markup`<p><a href="?">Reload</a> · <a href="?live=1">Follow live</a></p>`;
  return markup`<p class="soft">This page comes back every ${LIVE_SECONDS} seconds. <a href="?">Stop that</a></p>`;
}

function summary(execution: PageExecution): Html {
  const { execution_id: id, version, generation, created_at: created, error } = execution;
  const took = durationOf(execution);
  return markup`<dl>
<dt>Execution</dt><dd><code>${id}</code></dd>
<dt>Version</dt><dd>${version ?? "–"}</dd>
<dt>Created</dt><dd><time datetime="${created}">${shownTime(created)}</time></dd>
${generation > 1 && markup`<dt>Generation</dt><dd>${generation}</dd>`}
${took !== "" && markup`<dt>Took</dt><dd>${took}</dd>`}
${error !== null && markup`<dt>Error</dt><dd>${errorText(error)}</dd>`}
</dl>`;
}

function errorText({ code, message, node_id: node }: NonNullable<PageExecution["error"]>): Html {
  return markup`${node !== undefined && markup`<code>${node}</code> `}<strong>${code}</strong> ${message}`;
}

function why({ why: reasons, execution }: ExecutionView): Html | undefined {
  if (reasons.length === 0) return undefined;
  const left = reasons.length - MAX_REASONS;
  const rows = reasons.slice(0, MAX_REASONS).map(
    ({ sentence }) => markup`<li>${sentence}</li>
`,
  );
  return markup`<h2>Why it is not done</h2>
<ul>
${rows}</ul>
${left > 0 && markup`<p>And ${left} more: <code>millrace why ${execution.execution_id}</code></p>`}`;
}

function graph({ execution, workflow }: ExecutionView): Html {
  const { execution_id: id, nodes: states } = execution;
  const diagram = diagramOf(workflow);
  const count = diagram.nodes.length;
  if (count > MAX_DRAWN) {
    return markup`<p>${count} nodes are too many for a picture here: <code>millrace graph ${id} --format svg</code></p>`;
  }
  const statusOf = withParts(partsOf(workflow), (node) => states?.[node]?.status);
  const svg = drawSvg(diagram, { statusOf, href: (node) => `#node-${inPath(node)}` });
  return markup`<div class="scroll" tabindex="0" role="region" aria-label="Graph; the table below says the same">
${trusted(svg)}</div>`;
}

function nodes({ execution, workflow }: ExecutionView): Html {
  const { nodes: all = {}, nodes_omitted: omitted, execution_id: id } = execution;
  const parts = partsOf(workflow);
  const names = namesOf(workflow);
  const shown = Object.entries(all).filter(([name, { status }]) => !parts.has(name) || !isQuiet(status));
  if (omitted !== undefined) {
    return markup`<p>${omitted} nodes: <a href="/v1/executions/${id}/nodes">all of them as JSON</a></p>`;
  }
  return markup`<table>
<thead><tr>
<th scope="col">Node</th><th scope="col">Status</th><th scope="col" class="wide">Attempt</th><th scope="col" class="wide">Took</th><th scope="col">Notes</th>
</tr></thead>
<tbody>
${shown.map(([nodeId, node]) => nodeRow(id, nodeId, node, names.get(nodeId)))}</tbody>
</table>`;
}

function nodeRow(id: string, nodeId: string, node: PageNode, name: string | undefined): Html {
  const { status, attempt, error, reason, items, child_execution_id: child } = node;
  const place = inPath(nodeId);
  return markup`<tr id="node-${place}">
<th scope="row"><a href="/v1/executions/${id}/nodes/${place}"><code>${nodeId}</code></a>${name !== undefined && markup` <span class="soft">${name}</span>`}</th>
<td class="short">${state(status)}</td><td class="wide">${attempt}</td><td class="short wide">${durationOf(node)}</td>
<td>${items !== undefined && markup`${items.completed} of ${items.total} items `}
${child !== null && markup`<a href="/runs/${inPath(child)}">child execution</a> `}
${reason ?? ""} ${error !== null && errorText(error)}</td>
</tr>
`;
}

function durationOf(timed: { readonly started_at: string | null; readonly finished_at: string | null }): string {
  const { started_at: started, finished_at: finished } = timed;
  return started === null || finished === null ? "" : shownDuration(Date.parse(finished) - Date.parse(started));
}

function json(value: Json): Html {
  const text = JSON.stringify(value, null, 2);
  const left = text.length - MAX_JSON_CHARS;
  return markup`<pre tabindex="0">${left > 0 ? `${text.slice(0, MAX_JSON_CHARS)}\n… ${left} more characters` : text}</pre>`;
}

const AFTERWARDS = ["rerun --from NODE", "export"];

/** What is possible, where that is not as with most that run or are over. */
const ACTIONS: Readonly<Record<string, readonly string[]>> = {
  PENDING: ["trigger", "cancel"],
  PAUSED: ["resume", "cancel"],
  COMPLETED: AFTERWARDS,
};

function actions({ execution_id: id, status }: PageExecution): readonly Html[] {
  const verbs = ACTIONS[status] ?? (isOver(status) ? ["retry", ...AFTERWARDS] : ["watch", "pause", "cancel"]);
  const commands = verbs.map((verb) => `millrace ${verb.replace(/^\w+/, `$& ${id}`)}`);
  return commands.map((command) => markup`<li><code>${command}</code></li>\n`);
}

function logs({ lines, execution }: ExecutionView): Html {
  const { execution_id: id } = execution;
  const command = markup`<code>millrace logs ${id}</code>`;
  if (lines === undefined) return markup`<p>Its history is long: ${command}</p>`;
  if (lines.length === 0) return markup`<p>Its handlers have logged nothing.</p>`;
  const last = lines.slice(-MAX_LINES);
  return markup`<table>
<caption>The last ${last.length} of ${lines.length}; ${command}</caption>
<thead><tr>
<th scope="col">Time (UTC)</th><th scope="col">Node</th><th scope="col">Line</th>
</tr></thead>
<tbody>
${last.map(logRow)}</tbody>
</table>`;
}

function logRow({ at, node_id: node, attempt, level, message, fields }: PageLine): Html {
  const again = attempt > 1 && markup` attempt ${attempt}`;
  const text = fields === undefined ? message : `${message}  ${JSON.stringify(fields)}`;
  return markup`<tr>
<td><time datetime="${at}">${at.slice(11, -1)}</time></td><td><code>${node}</code>${again}</td>
<td>${level === undefined ? text : markup`<pre tabindex="0">${text}</pre>`}</td>
</tr>
`;
}

function events({ events: all, execution }: ExecutionView): Html {
  const link = markup`<a href="/v1/executions/${execution.execution_id}/events">all as JSON</a>`;
  return markup`<table>
<caption>The last ${all.length}; ${link}</caption>
<thead><tr>
<th scope="col">#</th><th scope="col">Time (UTC)</th><th scope="col">Event</th><th scope="col">Node</th>
</tr></thead>
<tbody>
${all.map(eventRow)}</tbody>
</table>`;
}

function eventRow({ seq, at, type, node_id: node, attempt }: ShownEvent): Html {
  const again = attempt !== undefined && attempt > 1 && markup` attempt ${attempt}`;
  return markup`<tr>
<td>${seq}</td><td><time datetime="${at}">${at.slice(11, -1)}</time></td><td>${type.replaceAll("_", " ")}</td>
<td>${node !== undefined && markup`<code>${node}</code>`}${again}</td>
</tr>
`;
}
