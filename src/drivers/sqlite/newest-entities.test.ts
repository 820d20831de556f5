import { expect, test } from "vitest";
import type { CommitBatch } from "../../store/contract.ts";
import { NewestEntities } from "./newest-entities.ts";

const name = (n: number): string => `execution/012345${String(n).padStart(4, "0")}`;
const sent = (entity: string, version = 1): CommitBatch =>
  ({ records: [{ entity, version, count: 1, format: 1, text: "" }] }) as unknown as CommitBatch;

/** Looked for often enough that the file was asked, and has answered. */
async function asked(greatest: string | null, meanwhile: (newest: NewestEntities) => void = () => {}) {
  const { promise, resolve } = Promise.withResolvers<string | null>();
  const newest = new NewestEntities(() => promise);
  for (let i = 0; i < 20; i++) expect(newest.isNew(name(9_000 + i))).toBe(false);
  meanwhile(newest);
  expect(newest.isNew(name(9_999)), "the file has not answered").toBe(false);
  resolve(greatest);
  await promise;
  await Promise.resolve();
  return newest;
}

test("a name greater than all in the file is new, until it is sent to be written", async () => {
  const newest = await asked(name(100));
  expect([99, 100, 101].map((n) => newest.isNew(name(n)))).toEqual([false, false, true]);
  newest.sent(sent(name(105)));
  expect([101, 105, 106].map((n) => newest.isNew(name(n)))).toEqual([false, false, true]);
  newest.sent(sent(name(107), 500));
  expect(
    [106, 107, 108].map((n) => newest.isNew(name(n))),
    "put back from an archive",
  ).toEqual([false, false, true]);
});

test("each name of a batch counts for those that begin like it", async () => {
  const newest = await asked(name(100));
  const names = ["e", name(104), "e", "execution/0", name(107), "other/0123456789abcdef", name(106)];
  newest.sent({ records: names.map((entity) => sent(entity).records[0]!) } as unknown as CommitBatch);
  expect([106, 107, 108].map((n) => newest.isNew(name(n)))).toEqual([false, false, true]);
});

test("what is sent while the file is asked counts", async () => {
  const newest = await asked(null, (one) => one.sent(sent(name(50))));
  expect([49, 50, 51].map((n) => newest.isNew(name(n)))).toEqual([false, false, true]);
});

test("names with another beginning, short ones and those that sort otherwise in the file are looked for", async () => {
  const newest = await asked(null);
  expect([name(1), "execution/0123460001", "execution/0", `${name(1)}é`].map((one) => newest.isNew(one))).toEqual([
    true,
    false,
    false,
    false,
  ]);
  newest.close();
  expect(newest.isNew(name(1))).toBe(false);
});

test("a file that does not answer is asked again", async () => {
  let asks = 0;
  const newest = new NewestEntities(async () => {
    if (++asks === 1) throw new Error("closed");
    return null;
  });
  for (let i = 0; i < 30; i++) {
    newest.isNew(name(i));
    await Promise.resolve();
  }
  expect([asks, newest.isNew(name(40))]).toEqual([2, true]);
});
