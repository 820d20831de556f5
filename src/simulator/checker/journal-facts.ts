import type { Accepted } from "../../core/execution/events.ts";
import { type Commit, type Evidence, executionOf, isExecution } from "./evidence.ts";

/** How an execution stood after a commit. */
export interface Moment {
  readonly commit: Commit;
  readonly version: number;
  /** The status it had ended with, in capitals; null while it is open. */
  readonly ended: string | null;
}

export interface Acceptance {
  readonly event: Accepted;
  readonly commit: Commit;
}

export interface Command {
  readonly execution: string;
  readonly applied: boolean;
  readonly commit: Commit;
  readonly version: number;
}

/** What clients may have seen: of every commit that ever was, those that were lost later included. */
export interface JournalFacts {
  readonly acceptances: ReadonlyMap<string, readonly Acceptance[]>;
  readonly commands: ReadonlyMap<string, readonly Command[]>;
  readonly moments: ReadonlyMap<string, readonly Moment[]>;
}

const FACTS = new WeakMap<Evidence, JournalFacts>();

export function journalFacts(evidence: Evidence): JournalFacts {
  let facts = FACTS.get(evidence);
  if (facts === undefined) FACTS.set(evidence, (facts = collect(evidence)));
  return facts;
}

function collect(evidence: Evidence): JournalFacts {
  const acceptances = new Map<string, Acceptance[]>();
  const commands = new Map<string, Command[]>();
  const moments = new Map<string, Moment[]>();
  for (const commit of evidence.commits) {
    for (const { entity, version: first, events } of commit.entry.records) {
      if (!isExecution(entity)) continue;
      const execution = executionOf(entity);
      let ended = lastMoment(moments.get(execution), commit)?.ended ?? null;
      for (const [i, event] of events.entries()) {
        const version = first + i;
        if (event.kind === "accepted") push(acceptances, execution, { event, commit });
        if (event.kind === "executionEnded") ended = event.status.toUpperCase();
        if (event.kind === "generationOpened") ended = null;
        if (event.kind !== "commandApplied" && event.kind !== "commandRefused") continue;
        const applied = event.kind === "commandApplied";
        push(commands, event.request, { execution, applied, commit, version });
      }
      push(moments, execution, { commit, version: first + events.length - 1, ended });
    }
  }
  return { acceptances, commands, moments };
}

/** The newest moment that the store still held when this commit came. */
function lastMoment(moments: readonly Moment[] | undefined, { order }: Commit): Moment | undefined {
  return moments?.findLast(({ commit }) => commit.voidedAt === null || commit.voidedAt > order);
}

function push<Item>(lists: Map<string, Item[]>, key: string, item: Item): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [item]);
  else list.push(item);
}
