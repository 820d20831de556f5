import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
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

/**
 * A log of JSON lines that only grows. Each line holds the hash of the one before, so that nobody can change, take out or
 * put in a line unnoticed. Beside it lies an index by key, which keeps a repeated attempt from writing twice and, being a
 * SQLite file, is the lock between processes: the system lets go of it when one of them dies. It can be made anew from the
 * log at any time. Not for a network file system, whose locks mean little.
 */
export class AuditLog {
  readonly #file: string;
  readonly #host: Host;
  #db: DatabaseSync | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(file: string, host: Host) {
    this.#file = file;
    this.#host = host;
  }

  append(key: string, entry: JsonObject, signal: AbortSignal): Promise<Appended> {
    const mine = this.#turn.then(() => this.#append(key, entry, signal));
    this.#turn = mine.catch(() => {});
    return mine;
  }

  close(): void {
    this.#db?.close();
    this.#db = undefined;
  }

  async #append(key: string, entry: JsonObject, signal: AbortSignal): Promise<Appended> {
    const db = (this.#db ??= await openIndex(`${this.#file}.index`));
    while (!begin(db)) {
      await this.#host.sleep(BUSY_PAUSE_MS, signal);
      signal.throwIfAborted();
    }
    const file = openSync(this.#file, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o644);
    try {
      const end = catchUp(db, file, this.#file);
      const known = db.prepare("select seq, hash from lines where key = ?").get(key);
      if (known !== undefined) return { seq: Number(known["seq"]), hash: String(known["hash"]), written: false };
      const { line, seq, hash } = lineOf(end.seq + 1, key, entry, end.hash);
      writeSync(file, line);
      fsyncSync(file);
      addToIndex(db, { key, seq, hash, bytes: end.bytes + Buffer.byteLength(line) });
      return { seq, hash, written: true };
    } finally {
      closeSync(file);
      db.exec("commit");
    }
  }
}

async function openIndex(file: string): Promise<DatabaseSync> {
  const { DatabaseSync: Database } = await import("node:sqlite");
  return new Database(file, { timeout: 0 });
}

function isBusy(error: unknown): boolean {
  return (error as { readonly errcode?: unknown }).errcode === 5;
}

function begin(db: DatabaseSync): boolean {
  try {
    db.exec("begin immediate");
    db.exec("create table if not exists lines (key text primary key, seq integer, hash text, bytes integer) strict");
    return true;
  } catch (error) {
    if (isBusy(error)) return false;
    throw error;
  }
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

/** Reads a log from its first line on, and gives how many there are. Fails at the first that does not follow. */
export async function verifyAuditLog(file: string): Promise<{ readonly lines: number; readonly hash: string }> {
  let end = { seq: 0, hash: START };
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    end = readLine(line, end, file);
  }
  return { lines: end.seq, hash: end.hash };
}
