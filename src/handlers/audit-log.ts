import { createHash } from "node:crypto";
import { constants, createReadStream, fstatSync, ftruncateSync, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createInterface } from "node:readline";
import type { DatabaseSync } from "node:sqlite";
import type { Host } from "../host/host.ts";
import { canonicalJson } from "../json/canonical.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { failed } from "./failed.ts";

export interface Appended extends JsonObject {
  readonly seq: number;
  readonly hash: string;
  /** False if an earlier attempt had written it. */
  readonly written: boolean;
}

/** The hash before the first line. */
const START = "0".repeat(64);
const BUSY_PAUSE_MS = 5;
const MAX_TOGETHER = 256;

/** A line that somebody waits for. */
interface Waiting {
  readonly key: string;
  readonly entry: JsonObject;
  readonly signal: AbortSignal;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A log of JSON lines that only grows. Each line holds the hash of the one before, so that nobody can change, take out or
 * put in a line unnoticed. Beside it lies an index by key, which keeps a repeated attempt from writing twice and, being a
 * SQLite file, is the lock between processes: the system lets go of it when one of them dies. It can be made anew from the
 * log at any time. Not for a network file system, whose locks mean little.
 *
 * Lines that come while others are written go together: to have a line on the disk takes long, two of them no longer.
 */
export class AuditLog {
  readonly #file: string;
  readonly #host: Host;
  #db: DatabaseSync | undefined;
  #waiting: Waiting[] = [];
  #isWriting = false;

  constructor(file: string, host: Host) {
    this.#file = file;
    this.#host = host;
  }

  append(key: string, entry: JsonObject, signal: AbortSignal): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ key, entry, signal, resolve, reject });
      if (!this.#isWriting) void this.#write();
    });
  }

  close(): void {
    this.#db?.close();
    this.#db = undefined;
  }

  async #write(): Promise<void> {
    this.#isWriting = true;
    while (this.#waiting.length > 0) {
      let batch = this.#waiting;
      try {
        const db = await this.#lock();
        if (db === undefined) continue;
        batch = this.#waiting.splice(0, MAX_TOGETHER);
        const appended = await appendAll(db, this.#file, batch);
        for (const [i, { resolve }] of batch.entries()) resolve(appended[i]!);
      } catch (error) {
        this.#waiting = this.#waiting.filter((one) => !batch.includes(one));
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isWriting = false;
  }

  /** The index, in a transaction that nobody else can be in; undefined if nobody waits for it any more. */
  async #lock(): Promise<DatabaseSync | undefined> {
    for (;;) {
      const db = (this.#db ??= await openIndex(`${this.#file}.index`));
      const given = this.#waiting.filter(({ signal }) => signal.aborted);
      this.#waiting = this.#waiting.filter(({ signal }) => !signal.aborted);
      for (const { signal, reject } of given) reject(signal.reason);
      if (this.#waiting.length === 0) return undefined;
      if (begin(db)) return db;
      await this.#host.sleep(BUSY_PAUSE_MS);
    }
  }
}

async function openIndex(file: string): Promise<DatabaseSync> {
  const { DatabaseSync: Database } = await import("node:sqlite");
  return new Database(file, { timeout: 0 });
}

/** Of any kind: the rest of the number says which. */
function isBusy(error: unknown): boolean {
  return (Number((error as { readonly errcode?: unknown }).errcode) & 0xff) === 5;
}

function begin(db: DatabaseSync): boolean {
  try {
    // No commit waits for the disk then. What the index may lose is in the log, which is there before it.
    db.exec("pragma journal_mode = wal; pragma synchronous = normal; begin immediate");
    db.exec("create table if not exists lines (key text primary key, seq integer, hash text, bytes integer) strict");
    db.exec("create index if not exists lines_by_seq on lines (seq)");
    return true;
  } catch (error) {
    if (db.isTransaction) db.exec("rollback");
    if (isBusy(error)) return false;
    throw error;
  }
}

/** Within the transaction that was begun, and ends it. */
async function appendAll(db: DatabaseSync, name: string, batch: readonly Waiting[]): Promise<readonly Appended[]> {
  let file: FileHandle | undefined;
  let isWritten = false;
  try {
    file = await open(name, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o644);
    const { appended, lines } = next(db, catchUp(db, file.fd, name), batch);
    if (lines !== "") {
      await file.appendFile(lines);
      await file.sync();
    }
    isWritten = true;
    return appended;
  } finally {
    await file?.close();
    // What is not surely in the log must not be in the index; what of it is there all the same, the next one finds.
    db.exec(isWritten ? "commit" : "rollback");
  }
}

/** The lines that come after the end, already in the index: the same key may come twice. */
function next(
  db: DatabaseSync,
  from: End,
  batch: readonly Waiting[],
): { readonly appended: readonly Appended[]; readonly lines: string } {
  const find = db.prepare("select seq, hash from lines where key = ?");
  let end = from;
  let lines = "";
  const appended = batch.map(({ key, entry }) => {
    const known = find.get(key);
    if (known !== undefined) return { seq: Number(known["seq"]), hash: String(known["hash"]), written: false };
    const { line, seq, hash } = lineOf(end.seq + 1, key, entry, end.hash);
    end = { seq, hash, bytes: end.bytes + Buffer.byteLength(line) };
    addToIndex(db, { key, ...end });
    lines += line;
    return { seq, hash, written: true };
  });
  return { appended, lines };
}

interface End {
  readonly seq: number;
  readonly hash: string;
  readonly bytes: number;
}

function addToIndex(db: DatabaseSync, { key, seq, hash, bytes }: End & { readonly key: string }): void {
  db.prepare("insert or ignore into lines (key, seq, hash, bytes) values (?, ?, ?, ?)").run(key, seq, hash, bytes);
}

/**
 * Brings into the index what the log has and it has not: the process that wrote it died before it could, or somebody took
 * the index away. Half a line at the end was never answered for, and is cut off.
 */
function catchUp(db: DatabaseSync, file: number, name: string): End {
  const last = db.prepare("select seq, hash, bytes from lines order by seq desc limit 1").get();
  let end: End =
    last === undefined
      ? { seq: 0, hash: START, bytes: 0 }
      : { seq: Number(last["seq"]), hash: String(last["hash"]), bytes: Number(last["bytes"]) };
  if (fstatSync(file).size < end.bytes) {
    throw failed("AUDIT_BROKEN", { file: name, line: end.seq, reason: "it was taken away" });
  }
  const rest = readFrom(file, end.bytes);
  const whole = rest.subarray(0, rest.lastIndexOf(10) + 1);
  if (whole.length < rest.length) ftruncateSync(file, end.bytes + whole.length);
  for (const line of whole.toString().split("\n").slice(0, -1)) {
    const read = readLine(line, end, name);
    end = { seq: read.seq, hash: read.hash, bytes: end.bytes + Buffer.byteLength(line) + 1 };
    addToIndex(db, { key: read.key, ...end });
  }
  return end;
}

function readFrom(file: number, position: number): Buffer {
  const chunks: Buffer[] = [];
  for (let at = position; ;) {
    const chunk = Buffer.alloc(64 * 1024);
    const count = readSync(file, chunk, 0, chunk.length, at);
    if (count === 0) return Buffer.concat(chunks);
    chunks.push(chunk.subarray(0, count));
    at += count;
  }
}

/** The hash is that of the line without it, in canonical form. */
function lineOf(
  seq: number,
  key: string,
  entry: JsonObject,
  previous: string,
): { line: string; seq: number; hash: string } {
  const content = { seq, key, ...entry, previous };
  const hash = hashOf(content);
  return { line: `${JSON.stringify({ ...content, hash })}\n`, seq, hash };
}

function hashOf(content: JsonObject): string {
  return createHash("sha256").update(canonicalJson(content)).digest("hex");
}

function readLine(
  line: string,
  end: Pick<End, "seq" | "hash">,
  file: string,
): { seq: number; hash: string; key: string } {
  const broken = (reason: string): Error => failed("AUDIT_BROKEN", { file, line: end.seq + 1, reason });
  let read: Readonly<Record<string, Json>>;
  try {
    read = JSON.parse(line) as JsonObject;
  } catch {
    throw broken("it is not JSON");
  }
  const { hash, ...content } = read;
  if (content["seq"] !== end.seq + 1 || content["previous"] !== end.hash)
    throw broken("a line is missing or was put in");
  if (hash !== hashOf(content)) throw broken("it was changed");
  return { seq: end.seq + 1, hash, key: content["key"] as string };
}

export interface VerifiedLog {
  readonly lines: number;
  /** Of the last line. */
  readonly hash: string;
  /** Half a line at the end was never answered for: its writer has died, and the next one cuts it off. */
  readonly isCut: boolean;
}

/**
 * Reads a log from its first line on. Fails at the first that does not follow the one before. That lines were taken away at the end
 * can only be seen by who knows a hash that was there.
 */
export async function verifyAuditLog(file: string, known?: string): Promise<VerifiedLog> {
  let end = { seq: 0, hash: START };
  let isKnown = known === undefined || known === START;
  let last: string | undefined;
  let endsInBreak = true;
  const input = createReadStream(file, "utf8");
  input.on("data", (text) => {
    endsInBreak = text.at(-1) === "\n";
  });
  // One behind: of the last line it is known only then whether it is whole.
  for await (const line of createInterface({ input, crlfDelay: Infinity })) {
    if (last !== undefined) end = readLine(last, end, file);
    isKnown ||= end.hash === known;
    last = line;
  }
  const isCut = last !== undefined && !endsInBreak;
  if (last !== undefined && !isCut) end = readLine(last, end, file);
  isKnown ||= end.hash === known;
  if (!isKnown) throw failed("AUDIT_BROKEN", { file, line: end.seq + 1, reason: `no line has the hash ${known!}` });
  return { lines: end.seq, hash: end.hash, isCut };
}
