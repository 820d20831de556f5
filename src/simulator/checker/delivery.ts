import { dispatchOf, type Evidence, type Numbered, placeOfToken, type Rollback, type TokenFacts } from "./evidence.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";

/** What was dispatched reaches a worker, unless it was over before; until then it is in a queue. */
const noDispatchLost: Invariant = {
  id: "I31",
  name: "no dispatch lost",
  world({ tokens, world }, stories, found) {
    const { tasks: queued, inbox } = world.remains;
    // A lease that ran out unseen is told by a message, and a task that its process forgot comes back: not yet lost.
    if (!world.liveness && (inbox > 0 || world.volatileTasks !== false)) return;
    const left = new Set(queued);
    for (const [token, { tasks, delivered }] of tokens) {
      const commit = tasks.find(({ voidedAt }) => voidedAt === null);
      if (commit === undefined || delivered.length > 0 || (left.has(token) && !world.liveness)) continue;
      const place = placeOfToken(token);
      const story = stories.get(place.execution);
      if (story === undefined || story.isQuarantined || story.closed.has(token)) continue;
      found(`The task ${token} was dispatched, and no worker ever got it`, { ...place, commit });
    }
  },
};

/** Between a lease and what a worker that is well makes of it lies no more than a message. */
const ON_ITS_WAY_MS = 1_000;

/** How long after the end of all faults a queue may still be long. */
const RECOVERY_MS = 100_000;

/** When nothing is wrong, a task does not sit in its queue until its deadline, and a worker that is well loses none. */
function judgePeace(step: Step, found: Found): void {
  const { event, node, commit, evidence } = step;
  if (node === undefined || (event.kind !== "deliveryLost" && event.kind !== "taskFailed")) return;
  const { world } = evidence;
  const healed = healedOf(evidence);
  if (healed < 0 || commit.order < healed) return;
  const delivered = evidence.tokens.get(node.tokens[event.delivery - 1] ?? "")?.delivered ?? [];
  if (event.kind === "taskFailed") {
    const isLate = commit.entry.at > world.history[healed]!.at + RECOVERY_MS;
    const waited = event.deadline === "queue" && delivered.length === 0 && isLate;
    if (waited && !wasOneKilledBefore(evidence, commit.entry.at)) {
      found("It waited in its queue until its deadline, while workers had nothing to do", placeOf(step));
    }
    return;
  }
  // A lease that was given just before is heard of just after, and the clock that was set right has ended it.
  const wellAt = world.history[healed]!.at + ON_ITS_WAY_MS;
  const holder = delivered.findLast(({ entry }) => entry.at > wellAt)?.entry.worker;
  // An owner that puts its tasks back after a restart may do so for one that was just reported lost.
  if (event.handedBack || holder === undefined || world.volatileTasks !== false) return;
  if (!struckOf(evidence).has(holder)) found(`${holder} lost its task, and nothing had happened to it`, placeOf(step));
}

/** So long it takes at most until another worker is there for one that a handler has killed. */
const REPLACED_MS = 10_000;

/** There may have been nobody to take a task, or one who died with it and whose lease lasts longer than it may wait. */
function wasOneKilledBefore({ world }: Evidence, at: number): boolean {
  return world.history.some((entry) => {
    const isKill = entry.log === "nemesis" && entry.kind === "fault" && entry.fault === "handler kills";
    return isKill && entry.at > at - REPLACED_MS && entry.at <= at;
  });
}

const HEALED = new WeakMap<Evidence, number>();

/** The entry at which the faults ended; -1 if they never did. */
export function healedOf(evidence: Evidence): number {
  let healed = HEALED.get(evidence);
  if (healed === undefined) {
    healed = evidence.world.history.findIndex((entry) => entry.log === "nemesis" && entry.kind === "healed");
    HEALED.set(evidence, healed);
  }
  return healed;
}

const STRUCK = new WeakMap<Evidence, Set<string>>();

/** Everybody to whom something was done. */
function struckOf(evidence: Evidence): ReadonlySet<string> {
  let struck = STRUCK.get(evidence);
  if (struck === undefined) {
    STRUCK.set(evidence, (struck = new Set()));
    for (const entry of evidence.world.history) {
      if (entry.log === "nemesis" && entry.kind === "fault") struck.add(entry.target);
    }
  }
  return struck;
}

/** What a commit has called back is not given to anybody any more. */
function judgeRevoked(evidence: Evidence, found: Found): void {
  const { tokens, world } = evidence;
  if (world.lossy || world.volatileTasks !== false) return;
  const struck = struckOf(evidence);
  for (const [token, { delivered, revoked }] of tokens) {
    const order = revoked[0];
    if (order === undefined) continue;
    const after = world.history[order]!.at + ON_ITS_WAY_MS;
    const late = delivered.find(({ entry }) => entry.at > after && !struck.has(entry.worker));
    if (late === undefined) continue;
    found(`The task ${token} was called back, and ${late.entry.worker} got it afterwards`, placeOfToken(token));
  }
}

/**
 * A task can be given away once for every commit that put it into its queue, and once more for every rollback to a moment
 * at which it was there and may still have been in its queue. Who got it is heard later than it was given, so that what
 * was given before that moment may be unheard of; what was heard of was certainly given.
 */
function isGivenTooOften({ tasks, delivered }: TokenFacts, rollbacks: readonly Rollback[]): boolean {
  if (delivered.length < 2) return false;
  const restored: number[] = [];
  const spare = (order: number): number =>
    countBefore(tasks, order) + restored.filter((at) => at < order).length - countBefore(delivered, order);
  for (const { order, entry } of rollbacks) {
    const { toOrder } = entry;
    const wasThere = tasks.some((task) => task.order < toOrder && (task.voidedAt === null || task.voidedAt >= toOrder));
    if (wasThere && spare(toOrder) > 0) restored.push(order);
  }
  return delivered.some(({ order }) => spare(order) < 1);
}

function countBefore(list: readonly Numbered<unknown>[], order: number): number {
  return list.filter((item) => item.order < order).length;
}

/** A dispatch is delivered once, and its handler runs once for it. */
const noSpuriousRuns: Invariant = {
  id: "I32",
  name: "no spurious runs",
  before: judgePeace,
  world(evidence, _stories, found) {
    const { tokens, world, rollbacks } = evidence;
    judgeRevoked(evidence, found);
    for (const [token, facts] of tokens) {
      const { delivered, starts } = facts;
      const { execution, node } = placeOfToken(token);
      if (world.volatileTasks === false && isGivenTooOften(facts, rollbacks)) {
        const workers = delivered.map(({ entry }) => entry.worker).join(", ");
        found(`The task ${token} was delivered ${delivered.length} times, to ${workers}`, { execution, node });
      }
      if (starts.length > delivered.length) {
        const counts = `${starts.length} times for ${delivered.length} deliveries`;
        found(`The handler of the task ${token} was called ${counts}`, { execution, node });
      }
    }
  },
};

/** In a world at peace no task is left over and no message unread. */
const queueConservation: Invariant = {
  id: "I34",
  name: "queue conservation",
  world({ world, poisoned }, stories, found) {
    if (!world.liveness) return;
    if (world.remains.inbox > 0) found(`${world.remains.inbox} messages were left in the inboxes`);
    for (const token of world.remains.tasks) {
      const { execution, instance: node } = dispatchOf(token);
      if (poisoned.has(execution) && stories.get(execution)?.isQuarantined) continue;
      found(`The task ${token} was left in the queues`, { execution, node });
    }
  },
};

export const DELIVERY: readonly Invariant[] = [noDispatchLost, noSpuriousRuns, queueConservation];
