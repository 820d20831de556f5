import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { BatchLog } from "./batch-log.ts";
import { progressText } from "./batch-progress.ts";
import { countItems, itemsOf, type Segment, segmentsOf, sharing } from "./segments.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-segments-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(text: string): string {
  const file = join(folder, "items.jsonl");
  writeFileSync(file, text);
  return file;
}

async function all(file: string, items: number, bytes: number, after = { number: 0, from: 0, start: 0 }) {
  const found: Segment[] = [];
  for await (const segment of segmentsOf(file, { items, bytes }, after)) found.push(segment);
  return found;
}

describe("the items of a file", () => {
  test("are its lines, with blank ones between, and with or without an end of the last", async () => {
    const file = fileOf('1\r\n\n  \n"zwei \u{1f48e}"\n[3]');
    expect(await countItems(file, "f")).toBe(3);
    const [first, second, ...more] = await all(file, 2, 1_000);
    expect(more).toEqual([]);
    expect([first, second]).toMatchObject([
      { number: 0, from: 0, count: 2, start: 0 },
      { number: 1, from: 2, count: 1, start: first!.end },
    ]);
    expect(await itemsOf(file, first!)).toEqual([1, "zwei \u{1f48e}"]);
    expect(await itemsOf(file, second!)).toEqual([[3]]);
  });

  test("are the same whether they are read at once or from the middle on", async () => {
    const lines = Array.from({ length: 5_000 }, (_, i) => JSON.stringify({ i, text: "é".repeat(i % 50) }));
    const file = fileOf(`${lines.join("\n")}\n`);
    const segments = await all(file, 700, 20_000);
    expect(segments.every(({ start, end }) => end - start <= 20_000)).toBe(true);
    const read = await Promise.all(segments.map((segment) => itemsOf(file, segment)));
    expect(read.flat()).toEqual(lines.map((line) => JSON.parse(line) as unknown));
    const { number, from, count, end } = segments[2]!;
    expect(await all(file, 700, 20_000, { number: number + 1, from: from + count, start: end })).toEqual(
      segments.slice(3),
    );
  });

  test("one that is larger than a segment is one by itself", async () => {
    const file = fileOf(`1\n"${"x".repeat(100)}"\n2\n`);
    expect((await all(file, 10, 50)).map(({ count }) => count)).toEqual([1, 1, 1]);
  });
});

test.each([
  // at a time, items → segments at a time, items at a time in each, items of a segment
  [100, 1_000_000, 4, 25, 500],
  [100, 100, 4, 25, 25],
  [10, 1_000, 2, 5, 100],
  [1, 10, 1, 1, 10],
  [4_000, 1_000_000, 4, 1_000, 1_000],
  [100, 0, 4, 25, 1],
])("%d at a time of %d are shared out", (concurrency, total, lanes, each, items) => {
  expect(sharing(concurrency, total)).toMatchObject({ lanes, each, size: { items } });
  expect(lanes * each).toBeLessThanOrEqual(concurrency);
});

test("what a batch has come to is read again, but for a line that was cut off", () => {
  const file = join(folder, "log");
  const input = { bytes: 1, sha256: "x" };
  const head = {
    batch: "b",
    workflow: "w",
    version: "v",
    input,
    total: 2,
    lanes: 1,
    each: 1,
    size: { items: 1, bytes: 9 },
  };
  const log = BatchLog.begin(file, head);
  const first = log.plan({ number: 0, from: 0, count: 1, start: 0, end: 2 });
  log.posted(first, "x");
  log.written(first, { completed: 0, failed: 1, cancelled: 0 });
  log.plan({ number: 1, from: 1, count: 1, start: 2, end: 4 });
  writeFileSync(file, '{"kind":"posted","num', { flag: "a" });
  const read = BatchLog.read(file)!;
  expect([read.head, read.begun, read.isComplete]).toEqual([head, log.begun, false]);
  read.posted(read.begun[1]!, "y");
  read.written(read.begun[1]!, { completed: 1, failed: 0, cancelled: 0 });
  expect(BatchLog.read(file)!.isComplete).toBe(true);
  read.again(read.begun[0]!);
  expect(BatchLog.read(file)).toMatchObject({ isComplete: false, begun: [{ id: "x", retries: 1 }, { id: "y" }] });
});

test("progress tells the rate and when it will be done", () => {
  const counts = { completed: 411, failed: 1, cancelled: 0, running: 100 };
  expect(progressText(1_000, counts, 112, 4_000)).toBe("412/1000 completed 411 failed 1 running 100 28.0/s ETA 21.0 s");
});
