import type { ListedExecution } from "../api/service/executions.ts";
import { shownDuration } from "../drawing/states.ts";
import { type Html, inPath, markup } from "./html.ts";
import { layout, state } from "./layout.ts";

export interface ExecutionsView {
  readonly items: readonly ListedExecution[];
  readonly next: string | null;
  readonly status: string | undefined;
  /** Reviews that wait for somebody, as many as are shown. */
  readonly reviews: readonly {
    readonly id: string;
    readonly title: string | null;
    readonly node_id: string;
    readonly execution_id: string;
  }[];
  /** Open ones, as far as they were counted. */
  readonly deadLetters: { readonly count: number; readonly hasMore: boolean };
  /** The archive does not answer, and what it alone has is not among these. */
  readonly isIncomplete: boolean;
}

const FILTERS = ["RUNNING", "PENDING", "PAUSED", "COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];

/** `/`: what runs and what has run, newest first. */
export function executionsPage(view: ExecutionsView): string {
  const { items, next, status, isIncomplete } = view;
  const older = next !== null && markup`<p><a href="/?${query({ status, cursor: next })}">Older executions</a></p>`;
  const body = markup`<h1>Executions</h1>
${isIncomplete && INCOMPLETE}
${needsYou(view)}
<nav class="filters" aria-label="By status">
${filter("all", "/", status === undefined)}
${FILTERS.map((name) => filter(name.toLowerCase(), `/?status=${name}`, name === status))}
</nav>
${items.length === 0 ? !isIncomplete && NOTHING : table(items)}
${older}`;
  return layout("Executions", body);
}

const INCOMPLETE = markup`<p class="problem">The archive does not answer: what only it has is left out.</p>`;
const NOTHING = markup`<p>Nothing here yet. Run something: <code>millrace run workflow.yaml --server</code></p>`;

function filter(word: string, href: string, isHere: boolean): Html {
  return markup`<a href="${href}"${isHere && markup` aria-current="page"`}>${word}</a>
`;
}

function table(items: readonly ListedExecution[]): Html {
  return markup`<table>
<caption>Newest first</caption>
<thead><tr>
<th scope="col">Execution</th><th scope="col">Workflow</th><th scope="col">Status</th>
<th scope="col" class="wide">Created</th><th scope="col" class="wide">Took</th>
</tr></thead>
<tbody>
${items.map(row)}</tbody>
</table>`;
}

function row(item: ListedExecution): Html {
  const { execution_id: id, workflow, status, batch_status, created_at: created, finished_at: finished } = item;
  const took = finished === null ? "" : shownDuration(Date.parse(finished) - Date.parse(created));
  return markup`<tr>
<td><a href="/runs/${inPath(id)}"><code>${id}</code></a></td><td>${workflow}</td><td>${state(batch_status ?? status)}</td>
<td class="wide"><time datetime="${created}">${shownTime(created)}</time></td><td class="short wide">${took}</td>
</tr>
`;
}

function needsYou({ reviews, deadLetters }: ExecutionsView): Html | undefined {
  const { count, hasMore } = deadLetters;
  if (reviews.length === 0 && count === 0) return undefined;
  const waiting = reviews.map(({ id, title, node_id: node, execution_id: execution }) => {
    const link = markup`<a href="/runs/${inPath(execution)}">${title ?? node}</a>`;
    return markup`<li>${link} waits for a person: <code>millrace approve ${id}</code></li>
`;
  });
  const letters =
    count > 0 &&
    markup`<li>${count}${hasMore ? " or more" : ""} dead ${count === 1 ? "letter" : "letters"}: <code>millrace dlq ls --status open</code></li>
`;
  return markup`<h2>Needs you</h2>
<ul>
${waiting}${letters}</ul>`;
}

export function shownTime(iso: string): string {
  return iso.replace("T", " ").replace(/\.\d+Z$/, " UTC");
}

function query(values: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return new URLSearchParams(given).toString();
}
