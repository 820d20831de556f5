import { shownDuration, shownState } from "../drawing/states.ts";
import type { Transition } from "../process/transitions.ts";
import type { Format, Terminal } from "./call.ts";
import { oneLine } from "./print.ts";

/** Shows how an execution goes on, on stderr. */
export interface Progress {
  /** Called once, before anything else. */
  begin(execution: { readonly id: string; readonly workflow: string; readonly nodes: readonly string[] }): void;
  change(transition: Transition): void;
  /** Leaves the terminal as it should stay. */
  end(): void;
}

const COLOURS: Readonly<Record<string, Format>> = {
  COMPLETED: "green",
  FAILED: "red",
  PARTIAL: "yellow",
  RUNNING: "cyan",
  WAITING: "yellow",
};

export function progressOn(terminal: Terminal): Progress {
  return terminal.isLive ? new LiveProgress(terminal) : new LineProgress(terminal);
}

/** Off a terminal: one line for each change, the same for people and for grep. */
class LineProgress implements Progress {
  readonly #terminal: Terminal;
  #workflow = "";

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  begin({ workflow }: { readonly workflow: string }): void {
    this.#workflow = workflow;
  }

  change(transition: Transition): void {
    const { node = this.#workflow, status, at } = transition;
    this.#terminal.err(`${at} ${oneLine(node)} ${[shownState(status).word, ...notesOf(transition)].join(" ")}\n`);
  }

  end(): void {}
}

function notesOf({ ms, attempt, reason, until, error }: Transition): string[] {
  return [
    ...(ms === undefined ? [] : [`${ms}ms`]),
    ...(attempt !== undefined && attempt > 1 ? [`attempt=${attempt}`] : []),
    ...(reason === undefined ? [] : [`reason=${reason}`]),
    ...(until === undefined ? [] : [`until=${until}`]),
    ...(error === undefined ? [] : [oneLine(`${error.code}: ${error.message}`)]),
  ];
}

/** More rows than this are no overview any more; then states are counted. */
const MAX_ROWS = 30;
const FRAME_MS = 80;

interface Row {
  status: string;
  note: string;
}

/** On a terminal: a list that is drawn over, at most a screen of it. */
class LiveProgress implements Progress {
  readonly #terminal: Terminal;
  readonly #rows = new Map<string, Row>();
  readonly #items = new Map<string, Map<string, string>>();
  readonly #totals = new Map<string, number>();
  #title = "";
  #status = "PENDING";
  /** How wide each line is that was drawn. */
  #drawn: readonly number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  begin(execution: { readonly id: string; readonly workflow: string; readonly nodes: readonly string[] }): void {
    this.#title = `${execution.workflow}  ${execution.id}`;
    for (const id of execution.nodes) this.#rows.set(id, { status: "PENDING", note: "" });
    this.#soon();
  }

  change(transition: Transition): void {
    const { node, status } = transition;
    if (node === undefined) {
      this.#status = status;
      // A new generation begins with what it keeps; what runs again says so itself.
    } else if (this.#rows.has(node)) {
      this.#rows.set(node, { status, note: liveNote(transition) });
      if (transition.items !== undefined) this.#totals.set(node, transition.items);
    } else this.#item(node, status);
    this.#soon();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#draw();
    this.#drawn = [];
  }

  /** `ocr[3]` is shown as a part of `ocr`. */
  #item(name: string, status: string): void {
    const map = name.slice(0, Math.max(0, name.indexOf("[")));
    const items = this.#items.get(map) ?? new Map<string, string>();
    this.#items.set(map, items.set(name, status));
  }

  #soon(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#draw();
    }, FRAME_MS);
  }

  #draw(): void {
    // What has scrolled out of the window cannot be drawn over any more; the cursor takes a row too.
    const most = Math.max(1, Math.min(MAX_ROWS, this.#terminal.rows - 2));
    const below = this.#rows.size <= most ? this.#list() : this.#counts().slice(0, most);
    const lines = [this.#line(this.#title, this.#status, ""), ...below];
    const { columns } = this.#terminal;
    // A window that was made narrower has wrapped what stood in it.
    const rows = this.#drawn.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    const cut = lines.map(({ text, format }) => ({ text: cutTo(Math.max(1, columns - 1), text), format }));
    const drawn = cut.map(({ text, format }) => {
      const styled = format === undefined ? text : this.#terminal.style(format, text, "stderr");
      return `\u001B[2K${styled}\n`;
    });
    this.#terminal.err(`${rows > 0 ? `\u001B[${rows}A` : ""}${drawn.join("")}${rows > drawn.length ? "\u001B[J" : ""}`);
    this.#drawn = cut.map(({ text }) => widthOf(text));
  }

  #list(): { text: string; format: Format | undefined }[] {
    const width = Math.max(...[...this.#rows.keys()].map((id) => id.length));
    return [...this.#rows].map(([id, { status, note }]) => {
      const items = this.#items.get(id);
      const counted =
        items === undefined ? note : [this.#itemsOf(id, items), note].filter((part) => part !== "").join(" · ");
      return this.#line(`  ${oneLine(id).padEnd(width)}`, status, counted);
    });
  }

  /** `412/1000 running 8 failed 1` */
  #itemsOf(id: string, items: ReadonlyMap<string, string>): string {
    const statuses = [...items.values()];
    const done = statuses.filter((status) => status === "COMPLETED").length;
    const others = countsOf(statuses.filter((status) => status !== "COMPLETED")).replaceAll(",", "");
    return `${done}/${this.#totals.get(id) ?? items.size} ${others}`.trimEnd();
  }

  /** Every state that occurs, and the few nodes that somebody may have to look at. */
  #counts(): { text: string; format: Format | undefined }[] {
    const bad = [...this.#rows].filter(([, { status }]) => status === "FAILED").slice(0, MAX_ROWS / 2);
    const all = [...this.#rows.values()].map(({ status }) => status);
    return [
      { text: `  ${this.#rows.size} nodes: ${countsOf(all)}`, format: undefined },
      ...bad.map(([id, { status, note }]) => this.#line(`  ${oneLine(id)}`, status, note)),
    ];
  }

  #line(name: string, status: string, note: string): { text: string; format: Format | undefined } {
    const { symbol, word } = shownState(status);
    return { text: `${name}  ${symbol} ${word.padEnd(9)}  ${note}`.trimEnd(), format: COLOURS[status] };
  }
}

/** What takes two columns: letters of East Asia, and pictures. */
const WIDE =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|\p{Emoji_Presentation}|[\u{20000}-\u{3FFFD}]/u;

function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += WIDE.test(letter) ? 2 : 1;
  return width;
}

/** A line that is too long would become two, and what is drawn over it would not cover both. */
function cutTo(columns: number, text: string): string {
  if (widthOf(text) <= columns) return text;
  let cut = "";
  let width = 1;
  for (const letter of text) {
    width += widthOf(letter);
    if (width > columns) break;
    cut += letter;
  }
  return `${cut}…`;
}

function liveNote({ ms, attempt, reason, error }: Transition): string {
  const parts = [
    ...(ms === undefined ? [] : [shownDuration(ms)]),
    ...(attempt !== undefined && attempt > 1 ? [`attempt ${attempt}`] : []),
    ...(reason === undefined ? [] : [reason]),
    ...(error === undefined ? [] : [oneLine(`${error.code}: ${error.message}`)]),
  ];
  return parts.join(" · ");
}

function countsOf(statuses: Iterable<string>): string {
  const counts = new Map<string, number>();
  for (const status of statuses) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${shownState(status).word} ${count}`).join(", ");
}
