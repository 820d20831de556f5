import type { Verdict } from "./sweep.ts";

/** What a sweep has come to, in a few lines. Times are told, not judged: they are the machine's. */
export function summary(verdicts: readonly Verdict[]): string {
  const kills = verdicts.flatMap((verdict) => verdict.kills);
  const executions = verdicts.reduce((sum, verdict) => sum + verdict.executions, 0);
  const failed = verdicts.filter(({ violations }) => violations.length > 0).length;
  const unjudged = verdicts.filter(({ isJudged }) => !isJudged).length;
  return [
    `${verdicts.length} worlds, ${kills.length} kills at ${new Set(kills).size} places, ${executions} executions, ${failed} worlds failed`,
    ...(unjudged > 0 ? [`${unjudged} worlds not judged: too many died over the same thing, which was left alone`] : []),
    `from start to listening: ${quantiles(verdicts.flatMap(({ listeningMs }) => listeningMs))}`,
    `from start to the first commit: ${quantiles(verdicts.flatMap(({ progressMs }) => progressMs))}`,
  ].join("\n");
}

function quantiles(times: readonly number[]): string {
  const sorted = [...times].sort((one, other) => one - other);
  const at = (part: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0);
  return `median ${at(0.5)} ms, longest ${at(1)} ms`;
}
