import { isDeepStrictEqual } from "node:util";
import { counted } from "../../errors/counted.ts";
import type { Json } from "../../json/json.ts";
import type { ShownExecution, ShownNode } from "../shapes.ts";
import { redact } from "./redact.ts";

/** What came out otherwise than it was recorded, one sentence each. */
export function differences(recorded: ShownExecution, replayed: ShownExecution): readonly string[] {
  const found: string[] = [];
  if (recorded.status !== replayed.status)
    found.push(`the execution: recorded ${recorded.status}, now ${replayed.status}`);
  const names = new Set([...Object.keys(recorded.nodes ?? {}), ...Object.keys(replayed.nodes ?? {})]);
  for (const name of names) found.push(...nodeDifferences(name, recorded.nodes?.[name], replayed.nodes?.[name]));
  if (found.length === 0 && !isSame(recorded.output, replayed.output)) {
    found.push(`the output: recorded ${brief(recorded.output)}, now ${brief(replayed.output)}`);
  }
  return found;
}

function nodeDifferences(
  name: string,
  recorded: ShownNode | undefined,
  replayed: ShownNode | undefined,
): readonly string[] {
  if (recorded === undefined) return [`${name}: not recorded, now ${replayed!.status}`];
  if (replayed === undefined) return [`${name}: recorded ${recorded.status}, not there any more`];
  if (recorded.status !== replayed.status) {
    const error = replayed.error === null ? "" : ` (${replayed.error.code}: ${replayed.error.message})`;
    return [`${name}: recorded ${recorded.status}, now ${replayed.status}${error}`];
  }
  if (recorded.attempt !== replayed.attempt && !isEngineOnly(recorded)) {
    return [`${name}: recorded ${counted(recorded.attempt, "attempt")}, now ${replayed.attempt}`];
  }
  if (recorded.error?.code !== replayed.error?.code)
    return [`${name}: recorded ${recorded.error?.code}, now ${replayed.error?.code}`];
  if (!isSame(withoutMoments(recorded.output), withoutMoments(replayed.output))) {
    return [`${name}: recorded the output ${brief(recorded.output)}, now ${brief(replayed.output)}`];
  }
  return [];
}

/** A child execution has no attempts; the handler that stands for it has. */
function isEngineOnly({ attempt }: ShownNode): boolean {
  return attempt === 0;
}

/** Who decided a review, and when, is not what is tested; nor is it of the first of two. */
function withoutMoments(output: Json): Json {
  if (typeof output !== "object" || output === null || Array.isArray(output) || !("decision" in output)) return output;
  const { by: _, at: __, first, ...rest } = output as Record<string, Json>;
  return first === undefined ? rest : { ...rest, first: withoutMoments(first) };
}

function isSame(recorded: Json, replayed: Json): boolean {
  return isDeepStrictEqual(redact(recorded), redact(replayed));
}

function brief(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
