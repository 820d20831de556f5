import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Line } from "./connection.ts";
import { ErrorReply } from "./wire/reply-reader.ts";

export interface Script {
  readonly text: string;
  readonly sha: string;
}

const LIBRARY = read("library");
const ALLOW_OOM = " flags=allow-oom";

export const scripts = {
  create: loadAlone("create"),
  noteRun: loadAlone("note-run"),
  upgrade: loadAlone("upgrade"),
  acquire: load("acquire"),
  renew: load("renew"),
  release: load("release"),
  append: load("append"),
  /** The same, but refused when Redis is full. */
  appendStarts: load("append", ALLOW_OOM),
  commit: load("commit"),
  standing: load("standing"),
  load: load("load"),
  version: load("version"),
  replies: load("replies"),
  places: load("places"),
  counts: load("counts"),
  lease: load("lease"),
  free: load("free"),
  heartbeat: load("heartbeat"),
  settle: load("settle"),
  lapsed: load("lapsed"),
  lapse: load("lapse"),
  put: load("put"),
  /** The same, but refused when Redis is full. */
  putRefusable: load("put", ALLOW_OOM),
  publish: load("publish"),
  unpublish: load("unpublish"),
  workflows: load("workflows"),
  register: load("register"),
};

/** A call of a script, as it is sent: with its hash, and values behind. */
export function callOf(script: Script, ...values: readonly string[]): string[] {
  return ["EVALSHA", script.sha, "0", ...values];
}

/** Sends the text only to a server that does not know the script, as after a restart. */
export async function runScript<Answer>(line: Line, script: Script, call: readonly string[]): Promise<Answer> {
  try {
    return await line.send<Answer>(call);
  } catch (error) {
    if (!(error instanceof ErrorReply && error.message.startsWith("NOSCRIPT"))) throw error;
    return line.send<Answer>(["EVAL", script.text, ...call.slice(2)]);
  }
}

/** The first line says what Redis may do with a script, so the library comes after it. */
function load(name: string, without = ""): Script {
  const [first, ...rest] = read(name).split("\n");
  return scriptOf([first!.replace(without, ""), LIBRARY, ...rest].join("\n"));
}

/** One that runs before it is known which store is there. */
function loadAlone(name: string): Script {
  return scriptOf(read(name));
}

function scriptOf(text: string): Script {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

function read(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");
}
