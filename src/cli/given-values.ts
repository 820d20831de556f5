import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Json } from "../json/json.ts";
import { type Call, option, type Terminal } from "./call.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";

/** A value as an option gives it: JSON, `@file` or `-` for stdin. Undefined if the option is not there. */
export async function jsonOption(call: Call, name: string): Promise<Json | undefined> {
  const given = option(call, name);
  if (given === undefined) return undefined;
  const text = await textOf(call.terminal, given, name);
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    throw new Failure(EXIT.invalid, `--${name} is not JSON: ${(error as Error).message}.`, {
      hint: `quote it for your shell: --${name} '{"n": 1}'   or name a file: --${name} @file.json`,
    });
  }
}

async function textOf(terminal: Terminal, given: string, name: string): Promise<string> {
  if (given === "-") return terminal.readInput();
  if (!given.startsWith("@")) return given;
  try {
    return readFileSync(resolve(terminal.directory, given.slice(1)), "utf8");
  } catch (error) {
    const isFolder = (error as NodeJS.ErrnoException).code === "EISDIR";
    throw new Failure(
      isFolder ? EXIT.usage : EXIT.notFound,
      `--${name} names the ${isFolder ? "folder" : "file"} ${JSON.stringify(given.slice(1))}, which cannot be read.`,
    );
  }
}

const UNITS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** `500ms`, `30s`, `5m`, `2h`, `1d`; a bare number is seconds. */
export function durationOption(call: Call, name: string): number | undefined {
  const given = option(call, name);
  if (given === undefined) return undefined;
  const ms = durationMs(given);
  if (ms !== undefined) return ms;
  throw new Failure(EXIT.usage, `--${name} must be a time such as 30s, 5m or 2h, not ${JSON.stringify(given)}.`);
}

function durationMs(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|min|m|h|d)?$/.exec(text.trim());
  return match === null ? undefined : Number(match[1]) * UNITS[match[2] ?? "s"]!;
}

const YEAR_0_MS = Date.parse("0000-01-01T00:00:00Z");

/** A moment: so long ago, or a date. As ISO text, for the API. */
export function momentOption(call: Call, name: string): string | undefined {
  const given = option(call, name);
  if (given === undefined) return undefined;
  const ago = durationMs(given);
  // Before the year 0 is before everything, and the API takes no such year.
  const at = ago === undefined ? Date.parse(given) : Math.max(YEAR_0_MS, Date.now() - ago);
  if (Number.isFinite(at)) return new Date(at).toISOString();
  throw new Failure(EXIT.usage, `--${name} must be a time ago such as 1h, or a date, not ${JSON.stringify(given)}.`);
}

/** `name=value`, as often as it is given. What names and values may be is the server's to say. */
export function labelsOption(call: Call): Readonly<Record<string, string>> | undefined {
  const given = call.options["label"];
  if (!Array.isArray(given)) return undefined;
  const pairs = given.map((text: string) => {
    const at = text.indexOf("=");
    if (at < 1) throw new Failure(EXIT.usage, `--label must be name=value, not ${JSON.stringify(text)}.`);
    return [text.slice(0, at), text.slice(at + 1)] as const;
  });
  return Object.fromEntries(pairs);
}

export function countOption(call: Call, name: string, standing: number, max: number): number {
  const given = option(call, name);
  if (given === undefined) return standing;
  const count = /^\d{1,9}$/.test(given) ? Number(given) : 0;
  if (count >= 1 && count <= max) return count;
  throw new Failure(EXIT.usage, `--${name} must be a number from 1 to ${max}, not ${JSON.stringify(given)}.`);
}

/** A number above 0. How large it may be is the server's to say. */
export function amountOption(call: Call, name: string): number | undefined {
  const given = option(call, name);
  if (given === undefined) return undefined;
  const amount = /^\d+(\.\d+)?(e\d+)?$/i.test(given) ? Number(given) : 0;
  if (amount > 0) return amount;
  throw new Failure(EXIT.usage, `--${name} must be a number above 0, not ${JSON.stringify(given)}.`);
}

const STATUSES = ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];

/** The state of an execution, in whatever case. */
export function statusOption(call: Call): string | undefined {
  const given = option(call, "status")?.toUpperCase();
  if (given === undefined || STATUSES.includes(given)) return given;
  const names = STATUSES.map((name) => name.toLowerCase()).join(", ");
  throw new Failure(EXIT.usage, `--status must be one of ${names}, not ${JSON.stringify(option(call, "status"))}.`);
}

/**
 * What narrows down `--all` says nothing of what is named by its id. Left unheard, more would be done than was meant: a replay
 * that was only to be tried.
 */
export function refuseWithoutAll(call: Call, names: readonly string[]): void {
  const given = names.find((name) => call.options[name] !== undefined);
  if (given !== undefined) throw new Failure(EXIT.usage, `--${given} goes with --all, not with ids.`);
}

export interface Change {
  readonly path: readonly string[];
  readonly value: Json;
}

/** What `--set path=json` asks for. */
export function changesOf(call: Call): readonly Change[] {
  const given = call.options["set"];
  if (!Array.isArray(given)) return [];
  return (given as readonly string[]).map((text) => {
    const equals = text.indexOf("=");
    const path = text.slice(0, Math.max(0, equals));
    if (path === "") throw new Failure(EXIT.usage, `--set must be path=json, not ${JSON.stringify(text)}.`);
    try {
      return { path: path.split("."), value: JSON.parse(text.slice(equals + 1)) as Json };
    } catch {
      throw new Failure(EXIT.usage, `--set ${path} must be JSON, not ${JSON.stringify(text.slice(equals + 1))}.`, {
        hint: `a text needs quotes: --set '${path}="${text.slice(equals + 1)}"'`,
      });
    }
  });
}
