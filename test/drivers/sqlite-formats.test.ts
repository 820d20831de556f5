import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MIGRATIONS } from "../../src/drivers/sqlite/file/migrations.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import {
  deadLetter,
  ENTITY,
  header,
  inboxTexts,
  listing,
  OTHER,
  record,
  snapshot,
} from "../../src/store/conformance/things.ts";

/** Stores as each format was written by the release that had it, dumped as text. They only ever get more. */
const FORMATS = join(import.meta.dirname, "sqlite", "formats");

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-formats-"));
});
afterEach(() => rm(folder, { recursive: true }));

function write(format: number): string {
  const file = join(folder, `format-${format}.db`);
  const db = new DatabaseSync(file);
  db.exec(readFileSync(join(FORMATS, `format-${format}.sql`), "utf8"));
  db.close();
  return file;
}

function schema(file: string): unknown {
  const db = new DatabaseSync(file, { readOnly: true });
  const rows = db.prepare("select type, name, tbl_name from sqlite_schema order by name").all();
  const columns = db.prepare(
    "select t.name as t, c.name as c, c.type, c.pk from sqlite_schema t, pragma_table_info(t.name) c order by 1, 2",
  );
  const found = [rows, columns.all()];
  db.close();
  return found;
}

describe("a store of an earlier format", () => {
  const formats = MIGRATIONS.map((_, i) => i + 1);

  test("is kept here for every format there ever was", () => {
    expect(readdirSync(FORMATS).sort()).toEqual(formats.map((format) => `format-${format}.sql`));
  });

  for (const format of formats) {
    test(`${format} is opened with all that is in it, and can do what the newest can`, async () => {
      const file = write(format);
      const store = await openSqlite({ file, host: nodeHost });
      const [loaded, other, purged] = await store.journal.load([
        { partition: 0, entity: ENTITY },
        { partition: 0, entity: OTHER, aboveVersion: 0 },
        { partition: 0, entity: "execution/purged" },
      ]);
      expect(loaded).toEqual({
        entity: ENTITY,
        snapshot: snapshot(ENTITY, 2),
        records: [record(ENTITY, 3)],
        wakeAtMs: 5000,
      });
      expect([other?.records, purged?.records]).toEqual([[record(OTHER, 1)], []]);
      const ended = header(OTHER, { createdAtMs: 2000, class: "endedWell", endedAtMs: 3000 });
      expect((await store.queries.headers({ limit: 10 })).items).toEqual([ended, header(ENTITY)]);
      expect((await store.queries.deadLetters({ limit: 10 })).items).toEqual([deadLetter("letter", 10)]);
      expect(await inboxTexts(store)).toEqual(['"mail"']);
      expect(await store.records.get([{ scope: ENTITY, hash: "blob" }])).toEqual(['"blob"']);
      expect((await store.records.versions("name")).map(({ hash }) => hash)).toEqual(["b", "a"]);
      expect((await store.queries.workflows({ limit: 10 })).items).toEqual([{ name: "name", version: 2, hash: "b" }]);
      expect(await store.records.registered()).toEqual([{ process: "p", role: "worker", text: "{}" }]);
      const owner = await acquire(store);
      const { epoch, seq, lastTimeMs, suspect } = owner.tenure;
      expect([epoch, seq, lastTimeMs, suspect]).toEqual([2, 1, 4000, "m"]);
      await owner.commit({ records: [record(ENTITY, 4)], listings: [listing("l", "a")], purge: [OTHER] });
      expect((await store.queries.listing({ list: "l", limit: 10 })).items).toEqual([listing("l", "a")]);
      expect((await store.queries.listing({ list: "reviews", limit: 10 })).items).toEqual([]);
      await store.close();
    });

    test(`${format} has the same tables afterwards as a new one`, async () => {
      const file = write(format);
      await (await openSqlite({ file, host: nodeHost })).close();
      const fresh = join(folder, "fresh.db");
      await (await openSqlite({ file: fresh, host: nodeHost })).close();
      expect(schema(file)).toEqual(schema(fresh));
    });
  }
});
