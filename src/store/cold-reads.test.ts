import { expect, test, vi } from "vitest";
import { Random } from "../simulator/random.ts";
import type { Archive } from "./archive.ts";
import { withArchive } from "./cold-reads.ts";
import type { Header, HeaderQuery, Page, Store } from "./contract.ts";
import { pageOf, parseCursor } from "./page.ts";

function header(id: number, more: Partial<Header> = {}): Header {
  const entity = `execution/${String(id).padStart(3, "0")}`;
  // Several share a moment: then their names decide.
  const times = { createdAtMs: 1_000 + Math.floor(id / 3), endedAtMs: null };
  return { entity, class: "endedWell", status: "COMPLETED", workflow: "w", tenant: "t", version: 1, ...times, ...more };
}

/** The list of a store, as drivers give it. */
function listOf(headers: () => readonly Header[]): (query: HeaderQuery) => Promise<Page<Header>> {
  return async (query) => {
    const { atMs, key } = parseCursor(query.cursor);
    const found = headers()
      .filter((one) => one.createdAtMs < atMs || (one.createdAtMs === atMs && one.entity < key))
      .filter((one) => query.class === undefined || one.class === query.class)
      .toSorted((a, b) => b.createdAtMs - a.createdAtMs || (a.entity < b.entity ? 1 : -1));
    return pageOf(found.slice(0, query.limit + 1), query.limit, (one) => ({ atMs: one.createdAtMs, key: one.entity }));
  };
}

function both(hot: () => readonly Header[], cold: () => readonly Header[]): Store["queries"] {
  const store = {
    capabilities: { partitionCount: 1 },
    queries: {
      headers: listOf(hot),
      header: async (_: number, entity: string) => hot().find((one) => one.entity === entity) ?? null,
    },
  } as unknown as Store;
  return withArchive(store, { queries: { headers: listOf(cold) } } as unknown as Archive).queries;
}

async function walk(queries: Store["queries"], query: HeaderQuery): Promise<Header[]> {
  const found: Header[] = [];
  let cursor: string | undefined;
  do {
    const page = await queries.headers({ ...query, ...(cursor !== undefined && { cursor }) });
    expect(page.items.length).toBeLessThanOrEqual(query.limit);
    found.push(...page.items);
    cursor = page.cursor ?? undefined;
  } while (cursor !== undefined);
  return found;
}

test("whatever is where, both lists are one: in order, without doubles, and nothing is left out", async () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = new Random(seed);
    const places = Array.from({ length: 30 }, () => random.pick(["hot", "cold", "both"] as const));
    const all = places.map((place, id) =>
      place !== "cold" && random.chance(0.3) ? header(id, { class: "open", status: "RUNNING" }) : header(id),
    );
    const hot = all.filter((_, i) => places[i] !== "cold");
    // What the archive knows of something that the store still has is out of date.
    const cold = all
      .filter((_, i) => places[i] !== "hot")
      .map((one) => (hot.includes(one) ? { ...one, class: "open" as const, status: "RUNNING" } : one));
    const queries = both(
      () => hot,
      () => cold,
    );
    const limit = random.integer(1, 12);
    const inOrder = all.toSorted((a, b) => b.createdAtMs - a.createdAtMs || (a.entity < b.entity ? 1 : -1));
    expect(await walk(queries, { limit })).toEqual(inOrder);
    for (const wanted of ["open", "endedWell"] as const) {
      const expected = inOrder.filter((one) => one.class === wanted);
      expect(await walk(queries, { limit, class: wanted })).toEqual(expected);
    }
  }
});

test("what leaves the store while both are read is shown once", async () => {
  const one = header(1);
  let reads = 0;
  // It is in the list of the store, and gone when somebody looks whether the store has it.
  const queries = both(
    () => (reads++ === 0 ? [one] : []),
    () => [one],
  );
  expect((await queries.headers({ limit: 10 })).items).toEqual([one]);
  // It is gone before the list of the store is read.
  expect((await queries.headers({ limit: 10 })).items).toEqual([one]);
});

test("without the archive the list is that of the store, and each page says so", async () => {
  const [old, young] = [header(1), header(4)];
  const queries = both(
    () => [old, young],
    () => {
      throw new Error("away");
    },
  );
  const incomplete = "archive_unavailable";
  const first = await queries.headers({ limit: 1 });
  expect(first).toMatchObject({ items: [young], incomplete });
  const last = { items: [old], cursor: null, incomplete };
  expect(await queries.headers({ limit: 1, cursor: first.cursor! })).toEqual(last);
  // What is open has not left the store: nothing of it can be missing.
  expect(await queries.headers({ limit: 1, class: "open" })).toEqual({ items: [], cursor: null });
});

test("an archive that says nothing is taken for away after a while", async () => {
  vi.useFakeTimers();
  try {
    const silent = (): Promise<never> => new Promise(() => {});
    const store = {
      capabilities: { partitionCount: 1 },
      queries: { headers: listOf(() => [header(4)]), header: async () => null },
    };
    const archive = { queries: { headers: silent, header: silent } };
    const { queries } = withArchive(store as unknown as Store, archive as unknown as Archive);
    const listing = queries.headers({ limit: 10 });
    const reading = queries.header(0, "execution/x").catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await listing).toEqual({ items: [header(4)], cursor: null, incomplete: "archive_unavailable" });
    expect(await reading).toMatchObject({ code: "STORE_UNAVAILABLE", message: expect.stringContaining("The archive") });
  } finally {
    vi.useRealTimers();
  }
});

test("with the archive no page says that anything is missing", async () => {
  const queries = both(
    () => [header(4)],
    () => [header(1)],
  );
  expect(await queries.headers({ limit: 10 })).toEqual({ items: [header(4), header(1)], cursor: null });
});

test("what only the archive may have is not told as missing, nor as the store's trouble, while it is away", async () => {
  const away = new Error("ECONNREFUSED");
  const nothing = async (): Promise<null> => null;
  const silent = (): Promise<never> => Promise.reject(away);
  const store = { capabilities: { partitionCount: 1 }, queries: { header: nothing, deadLetter: nothing } };
  const archive = { queries: { header: silent, deadLetter: silent } };
  const { queries } = withArchive(store as unknown as Store, archive as unknown as Archive);
  const told = { name: "StoreError", code: "STORE_UNAVAILABLE", cause: away };
  await expect(queries.header(0, "execution/x")).rejects.toMatchObject(told);
  await expect(queries.deadLetter("x")).rejects.toMatchObject({
    message: expect.stringContaining("The archive does not answer") as string,
  });
});
