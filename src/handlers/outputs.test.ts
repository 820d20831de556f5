import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { JsonObject } from "../json/json.ts";
import { DatabaseSync } from "node:sqlite";
import { AuditLog, verifyAuditLog } from "./audit-log.ts";
import { signature } from "./notify.ts";
import { loadPackage } from "./optional-package.ts";
import { handlersWith, type Run, testFolder } from "./test-folder.ts";
import { sendJson, serve } from "./test-server.ts";

let folder: string;
let run: Run;

beforeEach(() => {
  folder = testFolder();
  mkdirSync(join(folder, "in"));
  run = handlersWith({ MILLRACE_OUTPUT_FOLDER: join(folder, "out"), MILLRACE_FILES_FOLDER: join(folder, "in") });
});

function names(): string[] {
  return readdirSync(join(folder, "out"), { recursive: true, encoding: "utf8" }).toSorted();
}

function inode(path: string): number {
  return statSync(join(folder, "out", path)).ino;
}

describe("output.json", () => {
  test("writes a value under the name that a node gives", async () => {
    const output = await run("output.json", { path: "by/hand.json", value: { a: [1] } });
    expect(output).toMatchObject({ path: "by/hand.json", bytes: 23, written: true });
    expect(readFileSync(join(folder, "out/by/hand.json"), "utf8")).toBe('{\n  "a": [\n    1\n  ]\n}\n');
    expect(names()).toEqual(["by", "by/hand.json"]);
  });

  test("names the file after the work, and a second attempt finds it done", async () => {
    const config = { folder: "results", value: 1 };
    const first = await run("output.json", config);
    const before = inode(first["path"] as string);
    expect(await run("output.json", config)).toEqual({ ...first, written: false });
    expect(inode(first["path"] as string)).toBe(before);
    const other = await run("output.json", config, { idempotencyKey: "e2/a/1" });
    expect(other["path"]).not.toBe(first["path"]);
    expect(names()).toHaveLength(3);
    expect(first["path"]).toMatch(/^results\/a-[0-9a-f]{16}\.json$/);
  });

  test("leaves a file alone that says the same, replaces another, and refuses to on demand", async () => {
    const config = { path: "a.json", value: 1 };
    await run("output.json", config);
    const before = inode("a.json");
    expect(await run("output.json", { ...config, if_exists: "fail" })).toMatchObject({ written: false });
    expect(inode("a.json")).toBe(before);
    const changed = { ...config, value: 2 };
    await expect(run("output.json", { ...changed, if_exists: "fail" })).rejects.toMatchObject({
      code: "FILE_EXISTS",
      retryable: false,
    });
    expect(readFileSync(join(folder, "out/a.json"), "utf8")).toBe("1\n");
    expect(await run("output.json", changed)).toMatchObject({ written: true });
    expect(readFileSync(join(folder, "out/a.json"), "utf8")).toBe("2\n");
    expect(names()).toEqual(["a.json"]);
  });

  test("leaves nothing behind when it is stopped", async () => {
    const stop = new AbortController();
    stop.abort();
    await expect(run("output.json", { path: "a.json", value: 1 }, { signal: stop.signal })).rejects.toThrow("abort");
    expect(names()).toEqual([]);
  });

  test("makes a name of a node that is called as no file can be", async () => {
    const { path } = await run("output.json", { value: 1 }, { nodeId: "../a/b" });
    expect(path).toMatch(/^___a_b-[0-9a-f]{16}\.json$/);
  });
});

interface Hyparquet {
  asyncBufferFromFile(file: string): Promise<unknown>;
  parquetReadObjects(options: { readonly file: unknown }): Promise<readonly JsonObject[]>;
}

async function rowsOf(path: unknown): Promise<readonly JsonObject[]> {
  const hyparquet = (await loadPackage("a test", "hyparquet")) as Hyparquet;
  return hyparquet.parquetReadObjects({ file: await hyparquet.asyncBufferFromFile(join(folder, "out", String(path))) });
}

describe("output.parquet", () => {
  test("writes rows with the types that they have", async () => {
    const rows = [
      { id: "a", total: 1.5, paid: true, lines: [{ n: 1 }], mixed: 1 },
      { id: "b", total: null, paid: false, extra: "x", mixed: "two" },
    ];
    const output = await run("output.parquet", { path: "t.parquet", rows });
    expect(output).toMatchObject({ path: "t.parquet", written: true, rows: 2 });
    expect(await rowsOf("t.parquet")).toEqual([
      { id: "a", total: 1.5, paid: true, lines: [{ n: 1 }], mixed: 1, extra: null },
      { id: "b", total: null, paid: false, lines: null, mixed: "two", extra: "x" },
    ]);
  });

  test("is written once by as many attempts as there are", async () => {
    const first = await run("output.parquet", { rows: [{ a: 1 }] });
    const before = inode(first["path"] as string);
    expect(await run("output.parquet", { rows: [{ a: 1 }] })).toEqual({ ...first, written: false });
    expect(inode(first["path"] as string)).toBe(before);
    const named = await run("output.parquet", { path: "n.parquet", rows: [{ a: 1 }] });
    expect(await run("output.parquet", { path: "n.parquet", rows: [{ a: 1 }] })).toEqual({ ...named, written: false });
  });

  test("streams a file of lines, with the columns that are wanted", async () => {
    const lines = Array.from({ length: 25_000 }, (_, n) => JSON.stringify({ n, at: "2026-11-15T12:00:00.000Z", b: 1 }));
    writeFileSync(join(folder, "in/rows.jsonl"), `${lines.join("\n")}\n\n`);
    const columns = { n: "INT64", at: "TIMESTAMP" };
    expect(await run("output.parquet", { jsonl: "rows.jsonl", columns })).toMatchObject({ rows: 25_000 });
    const rows = await rowsOf(names()[0]);
    expect(rows).toHaveLength(25_000);
    expect(rows[24_999]).toEqual({ n: 24_999n, at: new Date("2026-11-15T12:00:00.000Z") });
  });

  test("refuses a row that does not fit its column, and leaves nothing", async () => {
    const config = { rows: [{ n: 1 }, { n: 1.5 }], columns: { n: "INT32" } };
    await expect(run("output.parquet", config)).rejects.toMatchObject({
      code: "DOCUMENT_INVALID",
      message: 'This is not a table that can be read: row 2 has 1.5 in "n", which is no INT32.',
    });
    writeFileSync(join(folder, "in/rows.jsonl"), '{"n":1}\nnonsense\n');
    await expect(run("output.parquet", { jsonl: "rows.jsonl", columns: { n: "DOUBLE" } })).rejects.toMatchObject({
      code: "DOCUMENT_INVALID",
    });
    expect(names()).toEqual([]);
  });

  test("of no rows is a file all the same", async () => {
    const { path } = await run("output.parquet", { rows: [] });
    expect(await rowsOf(path)).toEqual([]);
  });
});

describe("notify", () => {
  test("sends what happened, signed, with the same id on every try", async () => {
    const server = await serve((_, response) => sendJson(response, { ok: true }));
    const config = { url: `${server.url}/hook?x=1`, event: "document.failed", data: { a: 1 }, secret: "s3cret" };
    const output = await run("notify", { ...config, headers: { "X-Team": "docs" } });
    expect(await run("notify", config)).toEqual(output);
    const [first, second] = server.requests;
    expect(first!.headers).toMatchObject({ "x-team": "docs", "content-type": "application/json" });
    expect(first!.headers["webhook-id"]).toBe(output["id"]);
    expect(second!.headers["webhook-id"]).toBe(output["id"]);
    const seconds = Number(first!.headers["webhook-timestamp"]);
    const expected = signature("s3cret", output["id"] as string, seconds, first!.body);
    expect(first!.headers["webhook-signature"]).toBe(`v1,${expected}`);
    expect(JSON.parse(first!.body)).toEqual({
      type: "document.failed",
      timestamp: new Date(seconds * 1_000).toISOString(),
      execution_id: "e1",
      node_id: "a",
      data: { a: 1 },
    });
  });

  test("signs as the standard's own example does", () => {
    const body = '{"test": 2432232314}';
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const signed = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
    expect(signed).toBe("g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
  });

  test("without a secret is not signed", async () => {
    const server = await serve((_, response) => sendJson(response, null, 202));
    expect(await run("notify", { url: server.url })).toMatchObject({ status: 202 });
    expect(server.requests[0]!.headers["webhook-signature"]).toBeUndefined();
  });

  test("calls only whom a workflow may call", async () => {
    const url = "http://169.254.169.254/latest";
    await expect(run("notify", { url })).rejects.toMatchObject({ code: "EGRESS_BLOCKED", retryable: false });
  });

  test.each([
    [503, true],
    [404, false],
  ])("%s is a failure that may be tried again: %s", async (status, retryable) => {
    const server = await serve((_, response) => sendJson(response, null, status, { "retry-after": "2" }));
    await expect(run("notify", { url: server.url })).rejects.toMatchObject({
      code: `HTTP_${status}`,
      retryable,
      retryAfterMs: 2_000,
    });
  });
});

describe("audit", () => {
  function lines(): readonly JsonObject[] {
    const text = readFileSync(join(folder, "out/audit.jsonl"), "utf8");
    return text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as JsonObject);
  }
  const file = (): string => join(folder, "out/audit.jsonl");
  const append = (n: number): Promise<Readonly<Record<string, unknown>>> =>
    run("audit", { event: "approved", data: { n } }, { idempotencyKey: `e${n}` });

  test("writes one line for each work, chained to the one before", async () => {
    const first = await append(1);
    const second = await append(2);
    expect(await append(1)).toEqual({ ...first, written: false });
    expect(first).toMatchObject({ file: "audit.jsonl", seq: 1, written: true });
    expect(lines()).toMatchObject([
      { seq: 1, key: "e1", execution_id: "e1", node_id: "a", event: "approved", data: { n: 1 } },
      { seq: 2, key: "e2", previous: first["hash"], hash: second["hash"] },
    ]);
    expect(await verifyAuditLog(file())).toEqual({ lines: 2, hash: second["hash"], isCut: false });
  });

  test("is verified with a hash that it had, and half a line at its end is no lie", async () => {
    const [first, second] = [await append(1), await append(2)];
    const known = String(first["hash"]);
    expect(await verifyAuditLog(file(), known)).toMatchObject({ lines: 2 });
    const [whole] = readFileSync(file(), "utf8").split(/(?<=\n)/);
    appendFileSync(file(), '{"seq":3,"ke');
    expect(await verifyAuditLog(file(), known)).toEqual({ lines: 2, hash: second["hash"], isCut: true });
    writeFileSync(file(), whole!);
    expect(await verifyAuditLog(file())).toMatchObject({ lines: 1, isCut: false });
    const taken = {
      code: "AUDIT_BROKEN",
      message: expect.stringContaining("at line 2: no line has the hash") as string,
    };
    await expect(verifyAuditLog(file(), String(second["hash"]))).rejects.toMatchObject(taken);
  });

  test("keeps the order of many at once, of several processes' logs", async () => {
    const logs = Array.from({ length: 3 }, () => new AuditLog(file(), nodeHost));
    mkdirSync(join(folder, "out"), { recursive: true });
    const { signal } = new AbortController();
    const all = await Promise.all(
      // Each key is tried by two of them.
      Array.from({ length: 60 }, (_, n) => logs[n % 3]!.append(`k${n % 30}`, { n: n % 30 }, signal)),
    );
    for (const log of logs) log.close();
    expect(all.filter(({ written }) => written)).toHaveLength(30);
    expect(await verifyAuditLog(file())).toMatchObject({ lines: 30 });
    expect(new Set(lines().map(({ key }) => key)).size).toBe(30);
  });

  test("writes what comes at the same time together, and each work once", async () => {
    mkdirSync(join(folder, "out"), { recursive: true });
    const log = new AuditLog(file(), nodeHost);
    const { signal } = new AbortController();
    const all = await Promise.all(
      Array.from({ length: 600 }, (_, n) => log.append(`k${n % 300}`, { n: n % 300 }, signal)),
    );
    log.close();
    expect(all.slice(0, 300).map(({ seq, written }) => [seq, written])).toEqual(
      Array.from({ length: 300 }, (_, n) => [n + 1, true]),
    );
    expect(all.slice(300)).toEqual(all.slice(0, 300).map((appended) => ({ ...appended, written: false })));
    expect(await verifyAuditLog(file())).toMatchObject({ lines: 300 });
  });

  test("lets go who no longer wants to wait for another process, and then goes on", async () => {
    await append(1);
    const other = new DatabaseSync(`${file()}.index`);
    other.exec("begin immediate");
    const log = new AuditLog(file(), nodeHost);
    const leaving = new AbortController();
    const given = log.append("given up", {}, leaving.signal);
    const kept = log.append("kept", {}, new AbortController().signal);
    leaving.abort(new Error("no time"));
    await expect(given).rejects.toThrow("no time");
    other.exec("commit");
    other.close();
    expect(await kept).toMatchObject({ seq: 2, written: true });
    log.close();
    expect(lines().map(({ key }) => key)).toEqual(["e1", "kept"]);
  });

  test("is not taken for written when it was not", async () => {
    mkdirSync(file(), { recursive: true });
    const log = new AuditLog(file(), nodeHost);
    const { signal } = new AbortController();
    await expect(log.append("a", {}, signal)).rejects.toMatchObject({ code: "EISDIR" });
    rmSync(file(), { recursive: true });
    expect(await log.append("a", {}, signal)).toMatchObject({ seq: 1, written: true });
    log.close();
  });

  test("goes on where a process died: before the index knew, and in the middle of a line", async () => {
    await append(1);
    await append(2);
    rmSync(`${file()}.index`);
    appendFileSync(file(), '{"seq":3,"key":"e3"');
    const next = handlersWith({ MILLRACE_OUTPUT_FOLDER: join(folder, "out") });
    const config = { event: "approved", data: { n: 2 } };
    expect(await next("audit", config, { idempotencyKey: "e2" })).toMatchObject({ seq: 2, written: false });
    expect(await next("audit", config, { idempotencyKey: "e3" })).toMatchObject({ seq: 3, written: true });
    expect(await verifyAuditLog(file())).toMatchObject({ lines: 3 });
  });

  test.each<[string, (text: string) => string, RegExp]>([
    ["changed", (text) => text.replace('"n":2', '"n":3'), /line 2: it was changed/],
    ["taken out", (text) => text.replace(/\n.*\n/, "\n"), /line 2: a line is missing/],
    ["put in", (text) => text.replace("\n", "\n{}\n"), /line 2: a line is missing or was put in/],
    ["spoilt", (text) => text.replace("\n", "\nnonsense\n"), /line 2: it is not JSON/],
  ])("notices a line that was %s", async (_, change, message) => {
    for (const n of [1, 2, 3]) await append(n);
    writeFileSync(file(), change(readFileSync(file(), "utf8")));
    await expect(verifyAuditLog(file())).rejects.toThrow(message);
  });

  test("does not go on after a log that became shorter", async () => {
    await append(1);
    await append(2);
    writeFileSync(file(), readFileSync(file(), "utf8").split("\n")[0]! + "\n");
    await expect(append(3)).rejects.toMatchObject({ code: "AUDIT_BROKEN" });
  });
});

describe("a mock of a handler of documents", () => {
  test.each<[string, JsonObject, JsonObject]>([
    ["file.read", { path: "x/a.pdf", as: "none" }, { path: "x/a.pdf", name: "a.pdf" }],
    ["pdf.text", { path: "a.pdf" }, { text: "mock text of a.pdf", page_count: 1 }],
    ["ocr", { path: "a.png" }, { text: "mock text of a.png", confidence: 1 }],
    ["output.json", { path: "a.json", value: 1 }, { path: "a.json", written: false }],
    ["output.parquet", { rows: [{}, {}] }, { rows: 2, written: false }],
    ["notify", { url: "http://nobody.invalid" }, { status: 200 }],
    ["audit", { event: "e" }, { seq: 0, written: false }],
    ["validate", { value: 1, schema: { type: "string" } }, { valid: false }],
    ["merge", { sources: [{ values: { a: 1 } }] }, { values: { a: 1 } }],
  ])("%s touches nothing", async (handler, config, output) => {
    const bare = handlersWith({});
    expect(await bare(handler, { ...config, mock: true })).toMatchObject(output);
    expect(await bare(handler, { ...config, mock: { given: 1 } })).toEqual({ given: 1 });
  });
});
