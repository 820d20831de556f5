import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nodeHost } from "../../host/node-host.ts";
import { openSqlite } from "./sqlite-store.ts";

test("records that are too much for one message to the writer are all put", async () => {
  const folder = await mkdtemp(join(tmpdir(), "millrace-portions-"));
  const store = await openSqlite({ file: join(folder, "m.db"), host: nodeHost });
  try {
    const lengths = [1, 3_000_000, 1, 1_500_000, 500_000, 1_000_000, 1];
    const records = lengths.map((length, i) => ({ scope: "s", hash: `h${i}`, text: String(i).repeat(length) }));
    expect(await store.records.put(records)).toBe("stored");
    expect(await store.records.put([])).toBe("stored");
    expect((await store.records.get(records)).map((text, i) => text === records[i]!.text)).toEqual(
      lengths.map(() => true),
    );
  } finally {
    await store.close();
    await rm(folder, { recursive: true });
  }
});
