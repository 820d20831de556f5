import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Database } from "./database.ts";
import { HeaderCounts } from "./header-counts.ts";

const PUT = `insert or replace into entities (entity, class, workflow) values (?, ?, ?)`;

/** One commit of one header: whether its first record comes with it, and what becomes of it. */
const step = fc.record({
  entity: fc.constantFrom("a", "b", `execution/${"0a".repeat(16)}`, `execution/${"0-".repeat(16)}`),
  to: fc.constantFrom("open", "endedWell", "endedBadly", "gone", "rolled back", "asked"),
  workflow: fc.constantFrom("", "w"),
});

test("entities are counted as the file has them, however they came to be there", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const db = new Database(":memory:");
      db.script(`create table entities (entity text primary key, class text not null, workflow text not null) strict`);
      const counts = new HeaderCounts(db);
      // Some are there before anybody asks.
      db.run(PUT, "b", "open", "w");
      const stored = new Set(["b"]);
      counts.get();
      for (const { entity, to, workflow } of steps) {
        if (to === "asked") expect(counts.get()).toEqual(new HeaderCounts(db).get());
        else if (to === "rolled back") counts.forget();
        else if (to === "gone") {
          counts.noteGone([entity, entity]);
          db.run(`delete from entities where entity = ?`, entity);
          stored.delete(entity);
        } else {
          const version = stored.has(entity) ? 2 : 1;
          // What is said of it last counts.
          const headers = [
            [entity, entity],
            ["endedWell", to],
            ["", ""],
            ["w", workflow],
          ];
          counts.note(headers, [[entity], [version]]);
          db.run(PUT, entity, to, workflow);
          stored.add(entity);
        }
      }
      expect(counts.get()).toEqual(new HeaderCounts(db).get());
      db.close();
    }),
  );
});

test("one that begins or goes on is not looked up", () => {
  const db = new Database(":memory:");
  db.script(`create table entities (entity text primary key, class text not null, workflow text not null) strict`);
  const counts = new HeaderCounts(db);
  counts.get();
  db.script(`drop table entities`);
  counts.note([["a"], ["open"], [""], ["w"]], [["a"], [1]]);
  counts.note([["a"], ["endedWell"], [""], ["w"]], [["a"], [2]]);
  expect(counts.get()).toEqual({ ended: 1, open: 0 });
  db.close();
});
