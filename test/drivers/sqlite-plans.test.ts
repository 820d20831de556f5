import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterAll, expect, test } from "vitest";
import { SQL as COMMITS } from "../../src/drivers/sqlite/file/commit.ts";
import { openFile } from "../../src/drivers/sqlite/file/open-file.ts";
import { SQL as PURGES } from "../../src/drivers/sqlite/file/purge.ts";
import { SQL as READS } from "../../src/drivers/sqlite/file/reader.ts";
import { SQL as WRITES } from "../../src/drivers/sqlite/file/writer.ts";

const folder = mkdtempSync(join(tmpdir(), "millrace-plans-"));
const opened = openFile(join(folder, "m.db"), "plans");
const db = new DatabaseSync(opened.file);
afterAll(() => {
  db.close();
  opened.db.close();
  opened.lock.release();
  rmSync(folder, { recursive: true });
});

const STATEMENTS = [COMMITS, PURGES, READS, WRITES]
  .flatMap((sql): [string, string][] => Object.entries(sql))
  .filter(([, sql]) => /\bjournal\b/.test(sql));

/** A journal is as long as all that ever happened: whoever goes through it whole, or sorts it, is slow only when it hurts. */
test.each(STATEMENTS)("%s finds its records of the journal by the index, in its order", (_, sql) => {
  const plan = db.prepare(`explain query plan ${sql}`).all() as { detail: string }[];
  const steps = plan.map(({ detail }) => detail);
  expect(steps.filter((step) => /^SCAN (journal|main)/.test(step) || step.includes("TEMP B-TREE"))).toEqual([]);
});
