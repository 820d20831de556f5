import { expect, test } from "vitest";
import { commitBatches } from "./commit.ts";
import { type Failure, FileError } from "./file/failure.ts";
import type { Sqlite } from "./sqlite.ts";

function committing(failure: Pick<Failure, "isTrouble" | "isRefusal">): Promise<unknown> {
  const error = new FileError({ message: "no", code: null, ...failure });
  const writer = { call: () => Promise.reject(error) };
  return commitBatches({ writer } as unknown as Sqlite, []);
}

test("a commit that the machine failed at says so, and one with a bad value does not", async () => {
  expect(await committing({ isTrouble: true, isRefusal: true })).toEqual([]);
  const unavailable = { name: "StoreError", code: "STORE_UNAVAILABLE" };
  await expect(committing({ isTrouble: true, isRefusal: false })).rejects.toMatchObject(unavailable);
  await expect(committing({ isTrouble: false, isRefusal: false })).rejects.toBeInstanceOf(FileError);
});
