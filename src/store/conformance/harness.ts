import assert from "node:assert/strict";
import type { Outgoing, Store } from "../contract.ts";

/** One empty store of the driver under test, and what the suite needs to do to it from outside. */
export interface Harness {
  readonly store: Store;
  /** How many messages a partition's inbox takes before starts are refused. Open the store with a small number. */
  readonly inboxLimit: number;
  /** Moves the store's clock, or really waits. Timers that become due meanwhile have fired when it resolves. */
  readonly advance: (ms: number) => Promise<void>;
  /**
   * Begins an append that takes its place now and can be seen once the function it answers is called, as with a sender
   * whose transaction is slow. Only for drivers where this can happen.
   */
  readonly appendLate?: (message: Outgoing) => Promise<() => Promise<void>>;
  /** Sets the store's wall clock back, where a test can. */
  readonly setClockBack?: (ms: number) => Promise<void>;
  /** Ends the process that holds the store, without a goodbye, and opens the same data again. Only if it is durable. */
  readonly reopen?: () => Promise<Store>;
  /** Makes the store so full that it refuses what it may, or makes room again; where a test can. */
  readonly setFull?: (isFull: boolean) => Promise<void>;
  /** Makes the store refuse commits, as on a full disk, or take them again; where a test can. */
  readonly refuseCommits?: (isRefusing: boolean) => Promise<void>;
  /** Frees what the case has used, whether or not it has closed the store itself. */
  readonly close: () => Promise<void>;
}

export type Role = "store" | "partitions" | "inbox" | "journal" | "tasks" | "records" | "queries" | "texts";

/** One fact that holds for every driver. Plain data, so that broken drivers can be tried case by case. */
export interface Case {
  readonly role: Role;
  readonly name: string;
  readonly requires?: Requirement;
  readonly run: (harness: Harness) => Promise<void>;
}

/** Why a case may be skipped: by what the driver declares, and by nothing else. */
export interface Requirement {
  /** Said when it is not met. */
  readonly reason: string;
  readonly isMet: (harness: Harness) => boolean;
}

export const severalPartitions: Requirement = {
  reason: "the store has one partition",
  isMet: ({ store }) => store.capabilities.partitionCount > 1,
};

export const canReopen: Requirement = {
  reason: "the store does not outlive its process",
  isMet: ({ reopen }) => reopen !== undefined,
};

export const sharedByProcesses: Requirement = {
  reason: "one process at a time has the store",
  isMet: ({ store, reopen }) => reopen !== undefined && store.capabilities.exclusive !== true,
};

export const exclusive: Requirement = {
  reason: "several processes share the store",
  isMet: ({ store, reopen }) => reopen !== undefined && store.capabilities.exclusive === true,
};

export const durableTasks: Requirement = {
  reason: "the store does not keep tasks over a restart",
  isMet: ({ store, reopen }) => reopen !== undefined && !store.capabilities.volatileTasks,
};

export const durableInbox: Requirement = {
  reason: "the store does not keep messages from outside over a restart",
  isMet: ({ store, reopen }) => reopen !== undefined && !store.capabilities.volatileInbox,
};

export const volatileTasks: Requirement = {
  reason: "the store keeps tasks over a restart",
  isMet: ({ store, reopen }) => reopen !== undefined && store.capabilities.volatileTasks,
};

export const lateAppends: Requirement = {
  reason: "messages become visible in order of their ids",
  isMet: ({ appendLate }) => appendLate !== undefined,
};

export const clockGoesBack: Requirement = {
  reason: "nobody here can set the store's clock back",
  isMet: ({ setClockBack }) => setClockBack !== undefined,
};

export const canBeFull: Requirement = {
  reason: "nobody here can fill the store",
  isMet: ({ setFull }) => setFull !== undefined,
};

export const refusesCommits: Requirement = {
  reason: "nobody here can make the store refuse a commit",
  isMet: ({ refuseCommits }) => refuseCommits !== undefined,
};

export const queuesCommits: Requirement = {
  reason: "one batch of a partition is under way at a time",
  isMet: ({ store }) => store.capabilities.queuesCommits === true,
};

/** A lease that is meant to run out, and how long to wait until it has. Real stores really wait: keep both small. */
export const SHORT_MS = 300;
export const PAST_SHORT_MS = 600;
/** A lease that is not meant to run out. */
export const LONG_MS = 60_000;
/** Waiting that is meant to be ended by something else. */
export const WAIT_MS = 30_000;

/** What a waiting call answers once something has woken it. A store whose wake-ups are hints looks once a second. */
export async function soon<Value>(harness: Harness, waiting: Promise<Value>): Promise<Value> {
  const arrived = waiting.then((value) => ({ value }));
  for (let i = 0; i < 30; i++) {
    const first = await Promise.race([arrived, harness.advance(100).then(() => null)]);
    if (first !== null) return first.value;
  }
  return assert.fail("nobody woke the one who waits");
}

/** What a call answers that waited `SHORT_MS` for nothing. */
export async function inVain<Value>(harness: Harness, waiting: Promise<Value>): Promise<Value> {
  const [answer] = await Promise.all([waiting, harness.advance(2 * SHORT_MS)]);
  return answer;
}

/** Fails if a call that should go on waiting has answered. */
export async function assertStillWaiting(harness: Harness, waiting: Promise<unknown>): Promise<void> {
  const answered = await Promise.race([waiting.then(() => true), harness.advance(SHORT_MS).then(() => false)]);
  assert.equal(answered, false, "it should have gone on waiting");
}
