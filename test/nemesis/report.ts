import type { LossFigures } from "./loss-checks.ts";
import type { Verdict } from "./sweep.ts";

/** What came of some worlds, in a few lines. Times are told, not judged: they are the machine's. */
export function report(verdicts: readonly Verdict[]): string {
  return [...Map.groupBy(verdicts, ({ store }) => store)].map(([store, own]) => ofStore(store, own)).join("\n\n");
}

function ofStore(store: string, verdicts: readonly Verdict[]): string {
  const blows = verdicts.flatMap((verdict) => verdict.blows);
  const counts = [...Map.groupBy(blows, (kind) => kind)].map(([kind, all]) => `${kind} ${all.length}`).sort();
  const convicted = verdicts.filter((verdict) => verdict.convicted.length > 0).length;
  const times = verdicts.map((verdict) => verdict.times);
  return [
    `${store}: ${verdicts.length} worlds in ${Math.round(sum(verdicts, ({ seconds }) => seconds))} s`,
    `  kills: ${sum(verdicts, ({ kills }) => kills)} of ${blows.length} blows: ${counts.join(", ")}`,
    `  executions: ${sum(verdicts, ({ executions }) => executions)}, events: ${sum(verdicts, ({ events }) => events)}`,
    `  violations: ${sum(verdicts, ({ violations }) => violations.length)}`,
    ...lossesOf(verdicts.flatMap(({ lost }) => lost ?? [])),
    ...(convicted > 0 ? [`  not judged: ${convicted}, as three owners died over the same thing`] : []),
    `  kill -9 of an engine to the next owner of its partitions: ${quantiles(times.flatMap((one) => one.takeOverMs))}`,
    `  kill -9 of an engine to the next commit in its partitions: ${quantiles(times.flatMap((one) => one.nextCommitMs))}`,
    `  kill -9 of a worker to the next delivery of its tasks: ${quantiles(times.flatMap((one) => one.redeliveryMs))}`,
  ].join("\n");
}

function lossesOf(losses: readonly LossFigures[]): readonly string[] {
  if (losses.length === 0) return [];
  const total = (of: (loss: LossFigures) => number): number => losses.reduce((all, loss) => all + of(loss), 0);
  const kinds = [...Map.groupBy(losses, ({ how }) => how)].map(([how, all]) => `${how} ${all.length}`).sort();
  return [
    `  losses: ${losses.length}: ${kinds.join(", ")}`,
    `  back: ${total(({ report: { executions } }) => executions)} executions, ${total(({ report: { tasks } }) => tasks)} tasks, ${total(({ report: { calls } }) => calls)} calls`,
    `  not shipped: ${total(({ events }) => events)} events of ${total(({ executions }) => executions)} executions, ${total(({ unknown }) => unknown)} of them unknown; the oldest of each: ${quantiles(losses.map(({ oldestMs }) => oldestMs))}`,
  ];
}

function sum(verdicts: readonly Verdict[], of: (verdict: Verdict) => number): number {
  return verdicts.reduce((total, verdict) => total + of(verdict), 0);
}

function quantiles(times: readonly number[]): string {
  if (times.length === 0) return "none measured";
  const sorted = times.toSorted((one, other) => one - other);
  const at = (part: number): string => `${(sorted[Math.ceil(sorted.length * part) - 1]! / 1_000).toFixed(1)} s`;
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, longest ${at(1)}, of ${times.length}`;
}
