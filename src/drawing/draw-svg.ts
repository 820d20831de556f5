import { arrange } from "./arrange.ts";
import type { Diagram } from "./diagram.ts";
import type { StatusOf } from "./draw-text.ts";
import { shownState } from "./states.ts";

const BOX_WIDTH = 168;
const BOX_HEIGHT = 48;
const COLUMN = 232;
const ROW = 64;
const MARGIN = 16;
const MAX_CHARS = 22;

export interface SvgOptions {
  readonly statusOf?: StatusOf | undefined;
  /** Where a click on a node leads. */
  readonly href?: (id: string) => string;
}

/**
 * The graph as a picture that needs nothing else: one file, no script, its own style for light and dark. Every state is
 * a word and a symbol besides its colour.
 */
export function drawSvg(diagram: Diagram, { statusOf, href }: SvgOptions = {}): string {
  const { columns, rows, row } = arrange(diagram);
  const width = (columns - 1) * COLUMN + BOX_WIDTH + 2 * MARGIN;
  const height = (rows - 1) * ROW + BOX_HEIGHT + 2 * MARGIN;
  const left = (node: number): number => MARGIN + diagram.nodes[node]!.level * COLUMN;
  const top = (node: number): number => MARGIN + row[node]! * ROW;
  const title = `Graph of ${diagram.name}: ${diagram.nodes.length} ${diagram.nodes.length === 1 ? "node" : "nodes"} in ${columns} ${columns === 1 ? "level" : "levels"}`;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="head" d="M0 0 8 4 0 8z"/></marker>' +
      // How wide letters are is known only where they are drawn.
      `<clipPath id="box"><path d="M0 0h${BOX_WIDTH - 4}v${BOX_HEIGHT}H0z"/></clipPath></defs>`,
  ];
  for (const { from, to, on } of diagram.edges) {
    const x1 = left(from) + BOX_WIDTH;
    const y1 = top(from) + BOX_HEIGHT / 2;
    const x2 = left(to) - 2;
    const y2 = top(to) + BOX_HEIGHT / 2;
    const bend = Math.max(24, (x2 - x1) / 2);
    const dashed = on === "completed" ? "" : " dashed";
    parts.push(
      `<path class="edge${dashed}" marker-end="url(#arrow)" d="M${n(x1)} ${n(y1)}C${n(x1 + bend)} ${n(y1)} ${n(x2 - bend)} ${n(y2)} ${n(x2)} ${n(y2)}"/>`,
    );
  }
  for (const [i, { id, handler }] of diagram.nodes.entries()) {
    const status = statusOf?.(id);
    const state = status === undefined ? undefined : shownState(status);
    const second = state === undefined ? handler : `${state.symbol} ${state.word} · ${handler}`;
    const box =
      `<g class="node ${escaped(state?.word ?? "")}" transform="translate(${n(left(i))} ${n(top(i))})">` +
      `<title>${escaped(state === undefined ? `${id}, ${handler}` : `${id}, ${handler}, ${state.word}`)}</title>` +
      `<rect width="${BOX_WIDTH}" height="${BOX_HEIGHT}" rx="6"/>` +
      `<g clip-path="url(#box)"><text x="10" y="20">${escaped(cut(id))}</text>` +
      `<text class="second" x="10" y="37">${escaped(cut(second))}</text></g></g>`;
    parts.push(href === undefined ? box : `<a href="${escaped(href(id))}">${box}</a>`);
  }
  return `${parts.join("\n")}\n</svg>\n`;
}

const STYLE = [
  "text{font:600 13px system-ui,sans-serif;fill:#1a1a1a}",
  ".second{font-weight:400;font-size:12px;fill:#444}",
  "rect{fill:#fff;stroke:#6b6b6b;stroke-width:1.5}",
  ".edge{fill:none;stroke:#7a7a7a;stroke-width:1.3}.dashed{stroke-dasharray:5 4}.head{fill:#7a7a7a}",
  ".completed rect{stroke:#1a7f37;fill:#e9f7ec}",
  ".failed rect{stroke:#b3261e;fill:#fdecea;stroke-width:2.5}",
  ".running rect,.queued rect{stroke:#0b57a4;fill:#e8f1fb}",
  ".waiting rect,.paused rect{stroke:#8a5a00;fill:#fff6e0}",
  ".skipped rect,.cancelled rect{stroke-dasharray:4 3;fill:#f3f3f3}",
  "@media (prefers-color-scheme:dark){text{fill:#f0f0f0}.second{fill:#c8c8c8}rect{fill:#1e1e1e;stroke:#9a9a9a}",
  ".completed rect{stroke:#57c274;fill:#12301b}.failed rect{stroke:#ff8a80;fill:#3a1512}",
  ".running rect,.queued rect{stroke:#7db7f5;fill:#10263d}.waiting rect,.paused rect{stroke:#e5b04a;fill:#33270a}",
  ".skipped rect,.cancelled rect{fill:#2a2a2a}.edge{stroke:#9a9a9a}.head{fill:#9a9a9a}}",
].join("");

function n(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function cut(text: string): string {
  const chars = Array.from(text);
  return chars.length <= MAX_CHARS ? text : `${chars.slice(0, MAX_CHARS - 1).join("")}…`;
}

/** Names come from whoever wrote the workflow; in a page they are text and nothing else. */
function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#39;")
    .replaceAll(/[\p{Cc}\p{Cs}\p{Bidi_Control}]/gu, " ");
}
