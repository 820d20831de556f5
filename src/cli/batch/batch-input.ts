import { createHash } from "node:crypto";
import { createReadStream, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Call, option, type Terminal } from "../call.ts";
import { noFile } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";

/** What tells one input from another: not its time, which a copy or a checkout changes too. */
export interface InputMark {
  readonly bytes: number;
  readonly sha256: string;
}

/** The items of a batch, as a file that can be read from any place on. */
export interface BatchInput {
  readonly file: string;
  /** What people call it. */
  readonly shown: string;
  readonly mark: InputMark;
  /** Where its batch notes how far it is, unless results do. */
  readonly log: string;
  /** Whether the same command can go on with it when it was interrupted. */
  readonly canResume: boolean;
  /** Called when the command is over. */
  forget(): void;
}

/**
 * A file is read where it is. What comes on stdin is first copied into one, since its items are read again when their turn
 * comes: beside the results, or if these go to stdout into one that is gone afterwards.
 */
export async function openInput(call: Call, output: string | undefined): Promise<BatchInput> {
  const { terminal } = call;
  const given = option(call, "input");
  if (given === undefined) {
    throw new Failure(EXIT.usage, "--input is missing: a file with one JSON value on each line, or - for stdin.");
  }
  if (given === "-") return copiedInput(terminal, output);
  const file = resolve(terminal.directory, given.replace(/^@/, ""));
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isFile() !== true) throw noFile(terminal, given);
  const mark = await markOf(createReadStream(file), async () => undefined);
  return { file, shown: given, mark, log: `${file}.batch`, canResume: true, forget: () => undefined };
}

async function copiedInput(terminal: Terminal, output: string | undefined): Promise<BatchInput> {
  const folder = output === undefined ? mkdtempSync(join(tmpdir(), "millrace-batch-")) : undefined;
  const file = folder === undefined ? `${output}.input` : join(folder, "items.jsonl");
  const mark = await copy(terminal.inputBytes(), `${file}.new`);
  renameSync(`${file}.new`, file);
  return {
    file,
    shown: "stdin",
    mark,
    log: `${file}.batch`,
    canResume: folder === undefined,
    forget: () => folder !== undefined && rmSync(folder, { recursive: true, force: true }),
  };
}

async function copy(from: AsyncIterable<Uint8Array>, file: string): Promise<InputMark> {
  const to = await open(file, "w");
  try {
    return await markOf(from, (chunk) => to.writeFile(chunk));
  } finally {
    await to.close();
  }
}

async function markOf(from: AsyncIterable<Uint8Array>, each: (chunk: Uint8Array) => Promise<void>): Promise<InputMark> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of from) {
    hash.update(chunk);
    bytes += chunk.length;
    await each(chunk);
  }
  return { bytes, sha256: hash.digest("hex") };
}
