import { expect, test } from "vitest";
import { header } from "../../store/conformance/things.ts";
import type { CommitBatch, JournalRecord } from "../../store/contract.ts";
import { YoungEntities } from "./young-entities.ts";

const record = (entity: string, version: number, count = 1, text = `${entity} ${version}`): JournalRecord => ({
  entity,
  version,
  count,
  format: 1,
  text,
});
const batch = (told: Partial<CommitBatch>): CommitBatch =>
  ({ records: [], headers: [], wakes: [], purge: [], ...told }) as unknown as CommitBatch;

test("knows the version of what was made since, and of nothing else", () => {
  const young = new YoungEntities();
  young.committed(batch({ records: [record("a", 1, 3), record("b", 7)] }));
  young.committed(batch({ records: [record("a", 4)] }));
  expect([young.version("a"), young.version("b"), young.version("c")]).toEqual([4, undefined, undefined]);
});

test("keeps what comes after somebody has begun to follow, with the time of its wake", () => {
  const young = new YoungEntities();
  young.committed(batch({ records: [record("a", 1, 2)], wakes: [{ entity: "a", atMs: 5 }] }));
  expect(young.tail("a", 2)).toBeUndefined();
  young.follow("a");
  expect(young.tail("a", 2)).toEqual({ entity: "a", snapshot: null, records: [], wakeAtMs: 5 });
  young.committed(batch({ records: [record("a", 3, 2), record("a", 5)], wakes: [{ entity: "a", atMs: null }] }));
  const told = (above: number): unknown => young.tail("a", above)?.records.map(({ version }) => version);
  expect([told(1), told(2), told(3), told(4), told(5)]).toEqual([undefined, [3, 5], [3, 5], [5], []]);
  expect(young.tail("a", 2)!.wakeAtMs).toBeNull();
});

test("knows what the header says", () => {
  const young = new YoungEntities();
  const told = (entity: string, is: "open" | "endedWell"): CommitBatch["headers"] => [header(entity, { class: is })];
  young.committed(batch({ records: [record("a", 1), record("b", 1), record("c", 5)], headers: told("a", "open") }));
  young.committed(batch({ headers: told("c", "open") }));
  expect([young.isOpen("a"), young.isOpen("b"), young.isOpen("c")]).toEqual([true, false, false]);
  expect([young.header("a")?.class, young.header("b"), young.header("c")]).toEqual(["open", null, undefined]);
  young.committed(batch({ headers: told("a", "endedWell") }));
  expect([young.isOpen("a"), young.header("a")]).toEqual([false, header("a", { class: "endedWell" })]);
  young.committed(batch({ purge: ["a"] }));
  expect(young.header("a")).toBeUndefined();
});

test("finds whose headers and wakes a batch has, in whatever order, and the last of them counts", () => {
  const young = new YoungEntities();
  young.committed(batch({ records: [record("c", 1)] }));
  for (const entity of ["c", "a", "b"]) young.follow(entity);
  young.committed(
    batch({
      records: [record("a", 1), record("b", 1)],
      headers: ["c", "b", "a"].map((entity) => header(entity, { status: `of ${entity}` })),
      wakes: [
        { entity: "b", atMs: 2 },
        { entity: "c", atMs: 3 },
        { entity: "a", atMs: 9 },
        { entity: "a", atMs: 1 },
      ],
    }),
  );
  for (const entity of ["a", "b"]) young.follow(entity);
  const told = (entity: string): unknown => [young.header(entity)?.status, young.tail(entity, 1)?.wakeAtMs];
  expect(["a", "b", "c"].map(told)).toEqual([
    ["of a", 1],
    ["of b", 2],
    ["of c", 3],
  ]);
  const [first, last] = ["first", "last"].map((status) => header("a", { status }));
  young.committed(batch({ records: [record("a", 2)], headers: [first!, last!] }));
  expect(young.header("a")).toBe(last);
});

test("forgets what is purged, cut or in doubt, and what comes later does not bring it back", () => {
  const young = new YoungEntities();
  const make = (...entities: string[]): void =>
    young.committed(batch({ records: entities.map((entity) => record(entity, 1)) }));
  const all = ["a", "b", "c", "d", "e", "f"];
  make(...all);
  for (const entity of all) young.follow(entity);
  young.committed(batch({ purge: ["a"], cut: [{ entity: "b", belowVersion: 1 }] }));
  young.doubt(batch({ records: [record("c", 2)], wakes: [{ entity: "d", atMs: 1 }] }));
  young.doubt(batch({ purge: ["e"], cut: [{ entity: "f", belowVersion: 1 }] }));
  young.committed(batch({ records: ["b", "c", "d", "f"].map((entity) => record(entity, 2)) }));
  for (const entity of all) {
    const known = [young.version(entity), young.header(entity), young.tail(entity, 1)];
    expect(known).toEqual([undefined, undefined, undefined]);
  }
  make("a");
  expect(young.version("a")).toBe(1);
});

test("the tails of all together are bounded, and begin anew", () => {
  const young = new YoungEntities();
  young.committed(batch({ records: [record("a", 1), record("b", 1)] }));
  young.follow("a");
  young.follow("b");
  const long = "x".repeat(1024 * 1024);
  for (let version = 2; version <= 9; version++) {
    young.committed(batch({ records: [record("a", version, 1, long)] }));
  }
  expect(young.tail("a", 1)!.records).toHaveLength(8);
  young.committed(batch({ records: [record("b", 2, 1, "one too many")] }));
  expect([young.tail("a", 1), young.tail("b", 1), young.version("a"), young.version("b")]).toEqual([
    undefined,
    undefined,
    9,
    2,
  ]);
  young.follow("b");
  young.committed(batch({ records: [record("b", 3)] }));
  expect(young.tail("b", 2)!.records).toHaveLength(1);
});

test("of very many it knows the last ones", () => {
  const young = new YoungEntities();
  for (let i = 0; i < 15_001; i++) young.committed(batch({ records: [record(`e${i}`, 1)] }));
  expect([young.version("e0"), young.version("e9999"), young.version("e10000"), young.version("e15000")]).toEqual([
    undefined,
    undefined,
    1,
    1,
  ]);
});
