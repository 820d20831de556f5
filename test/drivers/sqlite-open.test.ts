import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MIGRATIONS } from "../../src/drivers/sqlite/file/migrations.ts";
import { PAGE_BYTES } from "../../src/drivers/sqlite/file/open-file.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { ENTITY, header, inboxTexts, message, record } from "../../src/store/conformance/things.ts";
import type { Store } from "../../src/store/contract.ts";
import { StoreError } from "../../src/store/store-error.ts";
import { Child } from "./sqlite/child.ts";

/** The store looks after its file once a second. */
const NOTICED_MS = 1500;

let folder: string;
const opened: Store[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-open-"));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await rm(folder, { recursive: true });
});

async function open(file: string): Promise<Store> {
  const store = await openSqlite({ file, host: nodeHost });
  opened.push(store);
  return store;
}

async function refusal(file: string): Promise<StoreError> {
  const error: unknown = await open(file).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(StoreError);
  return error as StoreError;
}

function pragma(file: string, name: string): unknown {
  const db = new DatabaseSync(file, { readOnly: true });
  const [value] = Object.values(db.prepare(`pragma ${name}`).get()!);
  db.close();
  return value;
}

describe("opening", () => {
  test("makes the folders and a file that is safe and can shrink", async () => {
    const file = join(folder, "a", "b", "store.db");
    await (await open(file)).close();
    expect(pragma(file, "journal_mode")).toBe("wal");
    expect(pragma(file, "auto_vacuum")).toBe(2);
    expect(pragma(file, "user_version")).toBe(MIGRATIONS.length);
  });

  test("without a name takes .millrace/millrace.db of the working folder", async () => {
    const child = new Child("opener.ts", "--in", folder);
    expect([await child.exit(), child.errors]).toEqual([0, ""]);
    expect(existsSync(join(folder, ".millrace", "millrace.db"))).toBe(true);
  });

  test("finds what a clean close has left, all of it in the file", async () => {
    const file = join(folder, "store.db");
    const store = await open(file);
    const owner = await acquire(store);
    await owner.commit({ records: [record(ENTITY, 1)], mail: [message('"mail"')] });
    await store.close();
    expect(existsSync(`${file}-wal`)).toBe(false);
    expect(existsSync(`${file}.owner`)).toBe(false);
    const again = await open(file);
    expect((await again.journal.load([{ partition: 0, entity: ENTITY }]))[0]?.records).toEqual([record(ENTITY, 1)]);
    expect(await inboxTexts(again)).toEqual(['"mail"']);
  });

  test("a second time is refused with the name of the process that has it, also by another path", async () => {
    const file = join(folder, "store.db");
    await open(file);
    symlinkSync(file, join(folder, "link.db"));
    symlinkSync(folder, join(folder, "folder"));
    for (const path of [file, join(folder, "link.db"), join(folder, "folder", "store.db")]) {
      const { code, message } = await refusal(path);
      expect(code).toBe("STORE_LOCKED");
      expect(message).toContain(`process ${process.pid} since 20`);
    }
    // Whoever was refused has not taken anything from the one who has it.
    expect((await refusal(file)).code).toBe("STORE_LOCKED");
  });

  test("in a second process is refused with pid and time of the first, and works once that was killed", async () => {
    const file = join(folder, "store.db");
    const child = new Child("committer.ts", file);
    await child.until((line) => line.startsWith("open"));
    const { code, message } = await refusal(file);
    expect(code).toBe("STORE_LOCKED");
    const since = /since (\S+)\./.exec(message)?.[1];
    expect(message).toContain(`process ${child.process.pid} `);
    expect(Math.abs(Date.now() - Date.parse(since!))).toBeLessThan(60_000);
    await child.kill();
    const store = await open(file);
    // No lease of the dead one is waited for.
    expect((await store.partitions.acquire(0, "next", 1000)).kind).toBe("acquired");
  });

  test("works for other programs that read meanwhile", async () => {
    const file = join(folder, "store.db");
    const owner = await acquire(await open(file));
    await owner.commit({ headers: [header(ENTITY)] });
    const db = new DatabaseSync(file, { readOnly: true });
    expect(db.prepare("select count(*) as count from entities").get()).toEqual({ count: 1 });
    await owner.commit({ headers: [header("execution/other")] });
    expect(db.prepare("select count(*) as count from entities").get()).toEqual({ count: 2 });
    db.close();
  });
});

describe("a file that cannot be opened", () => {
  const place = (bytes: string | Buffer, name = "store.db"): string => {
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };

  test("because it is a folder", async () => {
    const { code, message } = await refusal(folder);
    expect([code, message]).toEqual(["STORE_INVALID", expect.stringContaining(`${folder} is a folder`)]);
  });

  test("because a file stands where its folder should be", async () => {
    const path = join(place("text", "file"), "store.db");
    expect(await refusal(path)).toMatchObject({ code: "STORE_INVALID", message: expect.stringContaining("folder") });
  });

  test("because it is no database", async () => {
    const file = place("this is no database, but long enough to have been one ".repeat(100));
    const { code, message } = await refusal(file);
    expect([code, message]).toEqual(["STORE_INVALID", expect.stringContaining(`${file} is no SQLite database`)]);
    // It is free for whoever mends it.
    expect((await refusal(file)).code).toBe("STORE_INVALID");
  });

  test("because it is a database of somebody else, which stays as it was", async () => {
    const file = join(folder, "store.db");
    const db = new DatabaseSync(file);
    db.exec("create table mine (text text); insert into mine values ('mine')");
    db.close();
    const before = readFileSync(file);
    expect(await refusal(file)).toMatchObject({ code: "STORE_INVALID", message: expect.stringContaining("another") });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("because a later release has written it, which stays as it was", async () => {
    const file = join(folder, "store.db");
    await (await open(file)).close();
    const db = new DatabaseSync(file);
    db.exec(`pragma user_version = ${MIGRATIONS.length + 1}`);
    db.close();
    const before = readFileSync(file);
    const { code, message } = await refusal(file);
    expect(code).toBe("STORE_TOO_NEW");
    expect(message).toContain(`format ${MIGRATIONS.length + 1}`);
    expect(message).toContain(`up to ${MIGRATIONS.length}`);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("because it is damaged", async () => {
    const file = join(folder, "store.db");
    await (await open(file)).close();
    const bytes = readFileSync(file);
    // The first page is left: it is a database, and what it says about its tables leads nowhere.
    bytes.fill(0xa5, PAGE_BYTES);
    writeFileSync(file, bytes);
    expect(await refusal(file)).toMatchObject({ code: "STORE_CORRUPT", message: expect.stringContaining(file) });
    expect((await refusal(file)).code).toBe("STORE_CORRUPT");
  });

  test("because we may not: nobody but root may here", async ({ skip }) => {
    if (process.getuid?.() !== 0) skip("only root can become somebody else");
    const file = join(folder, "store.db");
    await (await open(file)).close();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, "closed"), { mode: 0o700 });
    for (const path of [file, join(folder, "closed", "store.db"), join(folder, "closed", "new", "store.db")]) {
      const child = new Child("opener.ts", "--as", "65534", path);
      await child.exit();
      expect(child.errors).toContain("STORE_FORBIDDEN");
      expect(child.errors).toContain(folder);
    }
    expect(statSync(file).uid).toBe(0);
  });
});

describe("a file that is open", () => {
  test("and was moved away takes no commits until it is back", async () => {
    const file = join(folder, "store.db");
    const owner = await acquire(await open(file));
    await owner.commit();
    renameSync(file, `${file}.away`);
    await sleep(NOTICED_MS);
    const batch = owner.batch({ records: [record(ENTITY, 1)] });
    const outcome = await owner.send(batch);
    expect(outcome).toEqual({ kind: "refused", reason: expect.stringContaining("moved or removed") as string });
    renameSync(`${file}.away`, file);
    await sleep(NOTICED_MS);
    expect(await owner.send(batch)).toEqual({ kind: "committed" });
  });
});

describe("the process", () => {
  test("ends by itself after close, and also if nobody closed", async () => {
    for (const how of ["--close", "--leave"]) {
      const child = new Child("opener.ts", how, join(folder, "store.db"));
      expect([how, await child.exit(), child.errors]).toEqual([how, 0, ""]);
      expect(child.lines).toEqual(["committed"]);
    }
    // Nothing that was acknowledged is lost with a process that just ended.
    const { tenure } = await acquire(await open(join(folder, "store.db")));
    expect(tenure.seq).toBe(2);
  });

  test("can close while something is under way, which comes to its end", async () => {
    const store = await open(join(folder, "store.db"));
    const owner = await acquire(store);
    const committing = owner.send(owner.batch({ records: [record(ENTITY, 1)] }));
    const loading = store.journal.load([{ partition: 0, entity: ENTITY }]);
    await store.close();
    expect(await committing).toEqual({ kind: "committed" });
    expect((await loading)[0]?.entity).toBe(ENTITY);
    await expect(store.journal.load([{ partition: 0, entity: ENTITY }])).rejects.toThrow("closed");
  });
});
