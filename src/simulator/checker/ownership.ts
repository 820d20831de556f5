import type { Commit, Evidence, Tenure } from "./evidence.ts";
import type { Found, Invariant } from "./invariant.ts";

/**
 * Per partition, the epochs that were given out rise, each to one owner; a nonce is never drawn twice. Nobody keeps a
 * partition that another has: a store that forgets gives an epoch out again, and only the nonce tells the two apart.
 */
const epochMonotonic: Invariant = {
  id: "I1",
  name: "epoch monotonic",
  world({ tenures, kept }, _stories, found) {
    keptByOne(tenures, kept, found);
    const newest = new Map<number, Tenure>();
    const nonces = new Set<string>();
    for (const tenure of tenures) {
      const { partition, epoch, nonce, owner } = tenure.entry;
      const name = `${partition} ${nonce}`;
      if (nonces.has(name)) found(`The nonce ${nonce} of partition ${partition} was drawn twice, now for ${owner}`);
      nonces.add(name);
      if (tenure.voidedAt !== null) continue;
      const before = newest.get(partition)?.entry;
      if (before !== undefined && epoch <= before.epoch) {
        found(
          `Partition ${partition} was given to ${owner} with epoch ${epoch} after ${before.epoch} of ${before.owner}`,
        );
      }
      newest.set(partition, tenure);
    }
  },
};

function keptByOne(tenures: readonly Tenure[], kept: Evidence["kept"], found: Found): void {
  for (const { entry, order } of kept) {
    const { partition, nonce, owner } = entry;
    const holder = tenures.findLast(
      (tenure) =>
        tenure.entry.partition === partition &&
        tenure.order < order &&
        (tenure.voidedAt === null || tenure.voidedAt > order),
    )?.entry;
    if (holder?.nonce === nonce) continue;
    const held = holder === undefined ? "nobody held it" : `${holder.owner} held it with ${holder.nonce}`;
    found(`${owner} was told that it keeps partition ${partition} with nonce ${nonce}, while ${held}`);
  }
}

/**
 * After a commit of an epoch there is none of an earlier one, nor after a later tenure has begun; and who was told that it
 * is an owner no more goes by it.
 */
const fenceHolds: Invariant = {
  id: "I2",
  name: "fence holds",
  world({ surviving, tenures, fenced }, _stories, found) {
    fencedOnce(fenced, found);
    const highest = new Map<number, number>();
    const tenuresLeft = tenures.filter((tenure) => tenure.voidedAt === null);
    let next = 0;
    for (const commit of surviving) {
      for (; next < tenuresLeft.length && tenuresLeft[next]!.order < commit.order; next++) {
        const { partition, epoch } = tenuresLeft[next]!.entry;
        highest.set(partition, Math.max(epoch, highest.get(partition) ?? epoch));
      }
      const { partition, epoch, owner } = commit.entry;
      const known = highest.get(partition) ?? epoch;
      if (epoch < known)
        found(`A commit of ${owner} with epoch ${epoch} took effect after epoch ${known} had begun`, { commit });
      highest.set(partition, Math.max(epoch, known));
    }
  },
};

function fencedOnce(fenced: Evidence["fenced"], found: Found): void {
  const told = new Map<string, { readonly seq: number; readonly at: number }>();
  for (const { entry } of fenced) {
    const { partition, nonce, seq, owner, at, firstSentAt } = entry;
    const name = `${owner} ${partition} ${nonce}`;
    const before = told.get(name);
    if (before !== undefined && before.seq !== seq && firstSentAt > before.at) {
      found(`${owner} was told at its commit ${partition}/${before.seq} that it is fenced, and went on with ${seq}`);
    }
    if (before === undefined) told.set(name, { seq, at });
  }
}

/** Sequence numbers are 0, 1, 2 … without a gap, and what was acknowledged to an owner is there. */
const gapFree: Invariant = {
  id: "I3",
  name: "sequence gap-free, nothing acknowledged is lost",
  world(evidence, _stories, found) {
    const next = new Map<number, number>();
    for (const commit of evidence.surviving) {
      const { partition, seq } = commit.entry;
      const expected = next.get(partition) ?? 0;
      if (seq !== expected) found(`The commit has number ${seq}, and ${expected} was next`, { commit });
      next.set(partition, seq + 1);
    }
    acknowledgedIsThere(evidence, found);
  },
};

function acknowledgedIsThere({ commits, acknowledged, world }: Evidence, found: Found): void {
  if (acknowledged.length === 0) return;
  const known = new Map<string, Commit[]>();
  for (const commit of commits) {
    const { partition, nonce, seq } = commit.entry;
    const name = `${partition} ${nonce} ${seq}`;
    const same = known.get(name);
    if (same === undefined) known.set(name, [commit]);
    else same.push(commit);
  }
  for (const { entry, order } of acknowledged) {
    const { partition, nonce, seq, owner, batch } = entry;
    const what = `${owner} was told that its commit ${partition}/${seq} is stored`;
    const same = (known.get(`${partition} ${nonce} ${seq}`) ?? []).filter((commit) => commit.order < order);
    if (same.length === 0) {
      found(`${what}, and the store never held one of its nonce ${nonce}`);
    } else if (!world.lossy && same.every((commit) => commit.voidedAt !== null)) {
      found(`${what}, and it is not in the final log`, { commit: same[0]! });
    } else if (batch !== undefined && same.every((commit) => commit.entry.batch !== batch)) {
      // The owner's memory follows its own batch, the store another: wrong from here on, without an alarm.
      found(`${what} with batch ${batch}, and the store holds another batch under that number`, { commit: same[0]! });
    }
  }
}

/** Each commit follows on the one before it: of the tenure that holds, and each journal continued where it ended. */
const chained: Invariant = {
  id: "I4",
  name: "each commit follows on the one before",
  world({ surviving, tenures }, _stories, found) {
    const tenuresLeft = tenures.filter((tenure) => tenure.voidedAt === null);
    const holder = new Map<number, Tenure["entry"]>();
    const versions = new Map<string, number>();
    let next = 0;
    for (const commit of surviving) {
      for (; next < tenuresLeft.length && tenuresLeft[next]!.order < commit.order; next++) {
        holder.set(tenuresLeft[next]!.entry.partition, tenuresLeft[next]!.entry);
      }
      const { partition, epoch, nonce, owner, records } = commit.entry;
      const tenure = holder.get(partition);
      if (tenure === undefined) found(`${owner} committed, and nobody ever held partition ${partition}`, { commit });
      else if (tenure.nonce !== nonce || tenure.epoch !== epoch) {
        const held = `epoch ${tenure.epoch}, nonce ${tenure.nonce}`;
        found(`${owner} committed as epoch ${epoch}, nonce ${nonce}, while ${tenure.owner} held it with ${held}`, {
          commit,
        });
      }
      for (const entity of commit.entry.purge ?? []) versions.delete(entity);
      for (const { entity, version, events } of records) {
        const expected = (versions.get(entity) ?? 0) + 1;
        if (version !== expected)
          found(`The journal of ${entity} goes on with event ${version} instead of ${expected}`, { commit });
        versions.set(entity, version + events.length - 1);
      }
    }
  },
};

/** No worker gets a task before the commit that dispatches it. */
const commitBeforeEffect: Invariant = {
  id: "I6",
  name: "commit before effect",
  world({ tokens }, _stories, found) {
    for (const [token, { tasks, delivered }] of tokens) {
      for (const { entry, order } of delivered) {
        if (tasks.some((commit) => commit.order < order)) continue;
        const execution = entry.execution;
        found(`${entry.worker} got the task ${token}, which no commit before it had dispatched`, {
          execution,
          node: entry.node,
        });
      }
    }
  },
};

export const OWNERSHIP: readonly Invariant[] = [epochMonotonic, fenceHolds, gapFree, chained, commitBeforeEffect];
