import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import { pathToFileURL } from "node:url";
import { projectFile, projectModules } from "./project-modules.ts";

/** A check takes a process. */
const MAX_CHECKED = 20;

/** Why a module cannot be loaded: where in the project, as `file:line:column`, if Node says so, and what. */
export function loadFault(error: unknown, directory: string): string {
  if (!(error instanceof Error)) return String(error);
  const found = placeOf(error.stack ?? "", directory);
  const place = found === undefined && error.name === "SyntaxError" ? checkedPlace(directory) : found;
  return place === undefined ? error.message : `${place}: ${error.message}`;
}

/** Of a syntax error in JavaScript Node tells the place only on stderr. */
function checkedPlace(directory: string): string | undefined {
  const scripts = projectModules.files.filter((file) => /\.[mc]?js$/.test(file)).slice(-MAX_CHECKED);
  for (const file of scripts) {
    const { status, stderr } = spawnSync(process.execPath, ["--check", file], { encoding: "utf8", timeout: 5_000 });
    if (status === 1) return placeOf(stderr, directory);
  }
  return undefined;
}

/** Of a syntax error the place stands above the message, of what a module threw itself below. */
function placeOf(stack: string, directory: string): string | undefined {
  const lines = stack.split("\n");
  const above = /^(?<file>\S.*?):(?<line>\d+)$/.exec(lines[0]!)?.groups;
  if (above !== undefined) {
    const column = lines.find((line) => /^\s*\^+\s*$/.test(line))?.indexOf("^");
    const place = shown(above["file"]!, above["line"]!, directory);
    return place === undefined || column === undefined ? place : `${place}:${column + 1}`;
  }
  for (const line of lines) {
    const frame = /^ {4}at (?:.*\()?(?<file>\S+?):(?<line>\d+):(?<column>\d+)\)?$/.exec(line)?.groups;
    const place = frame === undefined ? undefined : shown(frame["file"]!, frame["line"]!, directory);
    if (place !== undefined) return `${place}:${frame!["column"]!}`;
  }
  return undefined;
}

function shown(file: string, line: string, directory: string): string | undefined {
  const path = projectFile(file.startsWith("/") || /^[A-Za-z]:\\/.test(file) ? pathToFileURL(file).href : file);
  if (path === undefined) return undefined;
  const near = relative(directory, path);
  return `${near.startsWith("..") ? path : near}:${line}`;
}
