import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Transition } from "../process/transitions.ts";
import type { Terminal } from "./call.ts";
import { type Progress, progressOn } from "./progress.ts";

/** A screen: lines, a cursor, and what is used to move it and to clear. */
class Screen {
  lines: string[] = [];
  #row = 0;

  /** As a window does that is made narrower. */
  wrap(columns: number): void {
    const parts = this.lines.flatMap((line) => line.match(new RegExp(`.{1,${columns}}`, "gu")) ?? [line]);
    this.#row += parts.length - this.lines.length;
    this.lines = parts;
  }

  write(text: string): void {
    // oxlint-disable-next-line no-control-regex
    for (const [, up, clear, rest, plain] of text.matchAll(/\u001B\[(\d+)A|(\u001B\[2K)|(\u001B\[J)|([^\u001B]+)/g)) {
      if (up !== undefined) this.#row -= Number(up);
      else if (rest !== undefined) this.lines.length = this.#row;
      else if (clear !== undefined) this.lines[this.#row] = "";
      else this.#put(plain!);
    }
  }

  #put(text: string): void {
    const parts = text.split("\n");
    for (const [i, part] of parts.entries()) {
      this.lines[this.#row] = (this.lines[this.#row] ?? "") + part;
      if (i < parts.length - 1) this.#row++;
    }
  }

  get shown(): string[] {
    return this.lines.filter((line) => line !== "");
  }
}

let screen: Screen;
beforeEach(() => {
  screen = new Screen();
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

function progress(more: Partial<Terminal> = {}): Progress {
  const terminal = {
    isLive: true,
    columns: 60,
    rows: 40,
    err: (text: string) => screen.write(text),
    style: (_: unknown, text: string) => text,
  };
  return progressOn(Object.defineProperties(terminal, Object.getOwnPropertyDescriptors(more)) as Terminal);
}

const change = (node: string | undefined, status: string, more: Partial<Transition> = {}): Transition => ({
  at: "2026-01-01T00:00:00.000Z",
  status,
  ...(node !== undefined && { node }),
  ...more,
});

describe("on a terminal", () => {
  test("one line for each node, drawn over where it stands", () => {
    const shown = progress();
    shown.begin({ id: "x1", workflow: "hello", nodes: ["load", "ocr"] });
    vi.advanceTimersByTime(100);
    expect(screen.shown).toEqual(["hello  x1  · pending", "  load  · pending", "  ocr   · pending"]);
    shown.change(change(undefined, "RUNNING"));
    shown.change(change("load", "COMPLETED", { ms: 31 }));
    shown.change(
      change("ocr", "WAITING", { attempt: 2, reason: "retry", error: { code: "HTTP_503", message: "no\u001B[2J" } }),
    );
    vi.advanceTimersByTime(100);
    expect(screen.shown).toEqual([
      "hello  x1  ▶ running",
      "  load  ✓ completed  31 ms",
      "  ocr   ◔ waiting    attempt 2 · retry · HTTP_503: no [2J",
    ]);
    shown.change(change(undefined, "COMPLETED"));
    shown.end();
    expect(screen.shown[0]).toBe("hello  x1  ✓ completed");
    expect(screen.shown).toHaveLength(3);
  });

  test("items of a map are counted on its line", () => {
    const shown = progress();
    shown.begin({ id: "x", workflow: "w", nodes: ["ocr"] });
    shown.change(change("ocr", "RUNNING", { items: 9 }));
    for (let i = 0; i < 5; i++) shown.change(change(`ocr[${i}]`, i < 3 ? "COMPLETED" : "RUNNING"));
    shown.end();
    expect(screen.shown[1]).toBe("  ocr  ▶ running    3/9 running 2");
  });

  test("more than thirty nodes are counted, and those that failed are named", () => {
    const nodes = Array.from({ length: 40 }, (_, i) => `n${i}`);
    const shown = progress();
    shown.begin({ id: "x", workflow: "w", nodes });
    shown.change(change("n7", "FAILED", { error: { code: "BAD", message: "no" } }));
    shown.end();
    expect(screen.shown).toEqual(["w  x  · pending", "  40 nodes: pending 39, failed 1", "  n7  ✗ failed     BAD: no"]);
  });

  test("nothing is drawn that does not fit into the window: what has scrolled away cannot be drawn over", () => {
    const nodes = Array.from({ length: 28 }, (_, i) => `n${i}`);
    const shown = progress({ rows: 24 });
    shown.begin({ id: "x", workflow: "w", nodes });
    for (const node of nodes) shown.change(change(node, "FAILED", { error: { code: "BAD", message: "no" } }));
    shown.end();
    expect(screen.shown.slice(0, 2)).toEqual(["w  x  · pending", "  28 nodes: failed 28"]);
    const small = progress({ rows: 6 });
    screen.lines = [];
    small.begin({ id: "x", workflow: "w", nodes });
    for (const node of nodes) small.change(change(node, "FAILED"));
    small.end();
    expect(screen.shown).toHaveLength(5);
  });

  test("a line is cut at the edge, so that it stays one line", () => {
    const shown = progress({ columns: 30 });
    shown.begin({ id: "x", workflow: "w".repeat(100), nodes: ["a"] });
    shown.end();
    expect(screen.shown[0]).toBe(`${"w".repeat(28)}…`);
  });

  test("also where it is very narrow, and where letters are wide", () => {
    const narrow = progress({ columns: 10 });
    narrow.begin({ id: "x", workflow: "w".repeat(100), nodes: ["a"] });
    narrow.end();
    expect(screen.shown).toEqual([`${"w".repeat(8)}…`, "  a  · p…"]);
    screen.lines = [];
    const wide = progress({ columns: 10 });
    wide.begin({ id: "x", workflow: "請求書の処理", nodes: ["📄📄📄📄📄"] });
    wide.end();
    expect(screen.shown.map((line) => line.trim())).toEqual(["請求書の…", "📄📄📄…"]);
  });

  test("what a window that is made narrower has wrapped is drawn over too", () => {
    const window = { columns: 60 };
    const shown = progress({
      get columns() {
        return window.columns;
      },
    });
    shown.begin({ id: "x", workflow: "w".repeat(100), nodes: ["a"] });
    vi.advanceTimersByTime(100);
    expect(screen.shown).toHaveLength(2);
    window.columns = 20;
    screen.wrap(20);
    shown.change(change("a", "RUNNING"));
    vi.advanceTimersByTime(100);
    expect(screen.shown).toEqual([`${"w".repeat(18)}…`, "  a  ▶ running"]);
  });
});

test("off a terminal one line for each change, with the state as a word", () => {
  const shown = progress({ isLive: false });
  shown.begin({ id: "x", workflow: "w", nodes: ["ocr"] });
  shown.change(change("ocr", "COMPLETED", { ms: 102 }));
  shown.change(change(undefined, "COMPLETED"));
  shown.end();
  expect(screen.shown).toEqual([
    "2026-01-01T00:00:00.000Z ocr completed 102ms",
    "2026-01-01T00:00:00.000Z w completed",
  ]);
});
