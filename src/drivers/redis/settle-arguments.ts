import type { Settlement } from "../../store/contract.ts";
import { groupedBy } from "./grouped-by.ts";
import { lineNamed } from "./packed-task.ts";

/** Results as settle.lua reads them, which have to be in the order of `byPartition`. */
export function pushSettle(args: string[], results: readonly Settlement[]): void {
  const partitions = groupedBy(results, ({ partition }) => partition);
  let kinds = "";
  for (const { outcome } of results) kinds += outcome === "completed" ? "1" : "0";
  args.push(kinds, String(partitions.size));
  for (const [partition, ofOne] of partitions) args.push(String(partition), String(ofOne.length));
  for (const { text } of results) args.push(text);
  for (const { token } of results) args.push(token);
  const lines = tokensOf(results);
  const [only] = lines.keys();
  if (lines.size === 1 && lines.get(only!)!.size === results.length) return void args.push(only!);
  for (const [line, tokens] of lines) args.push(line, String(tokens.size), ...tokens);
}

/** The places of the results, partition by partition; those for one partition stay in their order. */
export function byPartition(results: readonly Settlement[]): readonly number[] {
  return [...groupedBy(results.keys(), (place) => results[place]!.partition).values()].flat();
}

/** Tokens by the lines their tasks were leased from, none twice. What has no name that we gave it is nowhere. */
export function tokensOf(results: readonly Settlement[]): ReadonlyMap<string, ReadonlySet<string>> {
  const lines = groupedBy(results, lineNamed);
  lines.delete(undefined);
  return new Map(Array.from(lines, ([line, ofOne]) => [line!, new Set(ofOne.map(({ token }) => token))]));
}
