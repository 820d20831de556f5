import type { HistoryEntry, World } from "../../src/simulator/history.ts";
import type { Told } from "../world/notes.ts";
import type { Blow } from "./nemesis.ts";
import type { Remainder } from "./world.ts";

export interface Times {
  /** From the kill of an engine to the next tenure of each partition it held, while others were well. */
  readonly takeOverMs: readonly number[];
  /** The same to the next commit; a partition without work has none for long. */
  readonly nextCommitMs: readonly number[];
  /** From the kill of a worker to the next delivery of each task it had. */
  readonly redeliveryMs: readonly number[];
}

type Acquired = Extract<HistoryEntry, { readonly kind: "acquired" }>;

/** How long it took others to go on where somebody was killed. */
export function timesOf({ history }: World, { blows }: Remainder, log: readonly Told[]): Times {
  const takeOverMs: number[] = [];
  const nextCommitMs: number[] = [];
  const redeliveryMs: number[] = [];
  for (const blow of blows) {
    if (blow.kind === "kill -9 engine") {
      const engine = log.find((told) => told.kind === "engine" && told.pid === blow.pid) as
        | { name: string }
        | undefined;
      for (const partition of heldBy(engine?.name, blow.at, history)) {
        const next = history.find((one) => one.kind === "acquired" && one.partition === partition && one.at > blow.at);
        const commit = history.find((one) => one.kind === "commit" && one.partition === partition && one.at > blow.at);
        if (next === undefined || !isOnlyOne(blow, next.at, blows)) continue;
        takeOverMs.push(next.at - blow.at);
        if (commit !== undefined && isOnlyOne(blow, commit.at, blows)) nextCommitMs.push(commit.at - blow.at);
      }
    }
    if (/^kill -9 (?:worker|gateway)$/.test(blow.kind)) redeliveryMs.push(...redeliveries(blow, blows, log));
  }
  return { takeOverMs, nextCommitMs, redeliveryMs };
}

/** Partitions whose newest tenure at a moment was this engine's. */
function heldBy(engine: string | undefined, at: number, history: readonly HistoryEntry[]): readonly number[] {
  const newest = new Map<number, Acquired>();
  for (const entry of history) {
    if (entry.at > at) break;
    if (entry.kind === "acquired") newest.set(entry.partition, entry);
  }
  return [...newest.values()].flatMap(({ owner, partition }) => (owner === engine ? partition : []));
}

function* redeliveries(blow: Blow, blows: readonly Blow[], log: readonly Told[]): Iterable<number> {
  const own = log.filter(({ pid }) => pid === blow.pid);
  const settled = new Set(own.flatMap((told) => (told.kind === "settled" ? told.token : [])));
  for (const told of own) {
    if (told.kind !== "delivered" || settled.has(told.token)) continue;
    const next = log.find(
      (other) =>
        other.kind === "delivered" &&
        other.execution === told.execution &&
        other.node === told.node &&
        other.attempt === told.attempt &&
        other.delivery === told.delivery + 1,
    );
    if (next !== undefined && next.at > blow.at && isOnlyOne(blow, next.at, blows)) yield next.at - blow.at;
  }
}

/** Whether nobody who could have gone on was struck as well: then it says how long it takes, and not how bad it was. */
function isOnlyOne(blow: Blow, until: number, blows: readonly Blow[]): boolean {
  const role = blow.target.split("-")[0]!;
  const matters = ({ target }: Blow): boolean => {
    const other = target.split("-")[0]!;
    return other === role || other === "engine" || other === "redis" || other === "postgres";
  };
  return !blows.some((other) => other !== blow && matters(other) && other.at < until && other.until > blow.at);
}
