import { counted } from "../errors/counted.ts";
import type { DefinitionReport } from "../definition/report.ts";
import type { Problem } from "../definition/problems.ts";

/** More than this on a screen is read by nobody; the count says how many there are. */
const MAX_SHOWN = 50;

/** All problems of a definition for people: a heading, then what, where and what to do. */
export function shownProblems(
  file: string,
  { errors, warnings, omitted }: Pick<DefinitionReport, "errors" | "warnings" | "omitted">,
): string[] {
  const count = errors.length + omitted;
  const lines = [`${file}: ${counted(count, "problem")}`];
  for (const problem of errors.slice(0, MAX_SHOWN)) lines.push("", ...shownProblem(problem));
  const more = count - Math.min(errors.length, MAX_SHOWN);
  if (more > 0) lines.push("", `… and ${more} more`);
  lines.push(...shownWarnings(warnings));
  return lines;
}

export function shownWarnings(warnings: readonly Problem[]): string[] {
  return warnings.slice(0, MAX_SHOWN).flatMap((warning) => ["", ...shownProblem(warning, "warning ")]);
}

/** A problem as an answer has it: of a file with its place. */
export interface Fault {
  readonly code: string;
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
  readonly line?: number;
  readonly column?: number;
}

function shownProblem({ code, path, line, column, message, hint }: Fault, kind = ""): string[] {
  const place = line === undefined ? "" : `   ${line}:${column}`;
  const lines = [`  ${`${kind}${code}`.padEnd(22)} ${dotted(path)}${place}`.trimEnd(), `    ${message}`];
  if (hint !== undefined) lines.push(`    hint: ${hint}`);
  return lines;
}

/** The single problems of a refusal, as lines under its sentence. */
export function faultLines(errors: readonly Fault[]): string[] {
  const lines = errors
    .slice(0, MAX_SHOWN)
    .flatMap((error) => ["", ...shownProblem(error).map((line) => line.slice(2))]);
  return errors.length > MAX_SHOWN ? [...lines, `… and ${errors.length - MAX_SHOWN} more`] : lines;
}

/** `/nodes/3/dependencies/1` as people write it: `nodes[3].dependencies[1]`. */
function dotted(pointer: string): string {
  const steps = pointer.split("/").slice(1);
  return steps
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((path, step) => (/^\d+$/.test(step) ? `${path}[${step}]` : path === "" ? step : `${path}.${step}`), "");
}
