import { type Evidence, executionOf, isExecution, type Numbered, type Rollback, type TokenFacts } from "./evidence.ts";
import type { Found, Invariant, Place } from "./invariant.ts";
import { deadLetterClass } from "./reference-rules.ts";

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
      const [, execution = "", , node = ""] = token.split(":");
      const story = stories.get(execution);
      if (story === undefined || story.isQuarantined || story.closed.has(token)) continue;
      found(`The task ${token} was dispatched, and no worker ever got it`, { execution, node, commit });
    }
  },
};

/** How long after the end of all faults a queue may still be long. */
const RECOVERY_MS = 100_000;

/** When nothing is wrong, a task does not sit in its queue until its deadline, and a worker that is well loses none. */
function judgePeace({ tokens, world, surviving }: Evidence, found: Found): void {
  const healed = world.history.findIndex((entry) => entry.log === "nemesis" && entry.kind === "healed");
  if (healed < 0) return;
  const struck = new Set<string>();
  for (const entry of world.history) if (entry.log === "nemesis" && entry.kind === "fault") struck.add(entry.target);
  const byDispatch = new Map<string, readonly { readonly order: number; readonly entry: { worker: string } }[]>();
  for (const [token, { delivered }] of tokens) byDispatch.set(token.slice(token.indexOf(":") + 1), delivered);
  for (const commit of surviving) {
    if (commit.order < healed) continue;
    const isLate = commit.entry.at > world.history[healed]!.at + RECOVERY_MS;
    for (const { entity, events } of commit.entry.records) {
      const execution = executionOf(entity);
      for (const event of events) {
        if (event.kind !== "deliveryLost" && event.kind !== "taskFailed") continue;
        const name = `${execution}:1:${event.node}:${event.attempt}:${event.delivery}`;
        const delivered = byDispatch.get(name) ?? [];
        const place = { execution, node: event.node, commit };
        if (event.kind === "taskFailed") {
          const waited = event.deadline === "queue" && delivered.length === 0 && isLate;
          if (waited) found("It waited in its queue until its deadline, while workers had nothing to do", place);
          continue;
        }
        const holder = delivered.findLast(({ order }) => order > healed)?.entry.worker;
        // An owner that puts its tasks back after a restart may do so for one that was just reported lost.
        if (event.handedBack || holder === undefined || struck.has(holder) || world.volatileTasks !== false) continue;
        found(`${holder} lost its task, and nothing had happened to it`, place);
      }
    }
  }
}

/** Between a lease and what a worker that is well makes of it lies no more than a message. */
const ON_ITS_WAY_MS = 1_000;

/** What a commit has called back is not given to anybody any more. */
function judgeRevoked({ tokens, world }: Evidence, found: Found): void {
  if (world.lossy || world.volatileTasks !== false) return;
  const struck = new Set<string>();
  for (const entry of world.history) if (entry.log === "nemesis" && entry.kind === "fault") struck.add(entry.target);
  for (const [token, { delivered, revoked }] of tokens) {
    const order = revoked[0];
    if (order === undefined) continue;
    const after = world.history[order]!.at + ON_ITS_WAY_MS;
    const late = delivered.find(({ entry }) => entry.at > after && !struck.has(entry.worker));
    if (late === undefined) continue;
    const [, execution = "", , node = ""] = token.split(":");
    found(`The task ${token} was called back, and ${late.entry.worker} got it afterwards`, { execution, node });
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
  world(evidence, _stories, found) {
    const { tokens, world, rollbacks } = evidence;
    judgePeace(evidence, found);
    judgeRevoked(evidence, found);
    for (const [token, facts] of tokens) {
      const { delivered, starts } = facts;
      const [, execution = "", , node = ""] = token.split(":");
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
      const [, execution = "", , node = ""] = token.split(":");
      if (poisoned.has(execution) && stories.get(execution)?.isQuarantined) continue;
      found(`The task ${token} was left in the queues`, { execution, node });
    }
  },
};

/** Each failure by a node's own fault leaves one dead letter, if its policy wants one; none gets lost. */
const dlqExact: Invariant = {
  id: "I35",
  name: "DLQ exact",
  world({ surviving, world }, stories, found) {
    const written = new Map<string, { readonly class: string; readonly place: Place }>();
    for (const commit of surviving) {
      const { records, deadLetters } = commit.entry;
      const left = new Map(deadLetters.map((letter) => [letter.id, letter]));
      for (const letter of deadLetters) {
        const place = { execution: executionOf(letter.entity), commit };
        if (written.has(letter.id)) found(`The dead letter ${letter.id} was written twice`, place);
        written.set(letter.id, { class: letter.class, place });
      }
      for (const { entity, events } of records) {
        if (!isExecution(entity)) continue;
        const execution = executionOf(entity);
        for (const event of events) {
          const isFinal = event.kind === "nodeFailed" || (event.kind === "taskFailed" && event.retryAtMs === null);
          if (!isFinal) continue;
          const policy = stories.get(execution)?.node(event.node)?.shape.spec.dlq;
          if (policy === undefined) continue;
          const expected = deadLetterClass(policy, event.error.retryable);
          const place = { execution, node: event.node, commit };
          const letter = deadLetters.find(({ id }) => id.startsWith(`${execution}:`) && id.endsWith(`:${event.node}`));
          if (letter !== undefined) left.delete(letter.id);
          if (letter?.class === expected || (letter === undefined && expected === null)) continue;
          const wanted = expected === null ? "none" : `one of class ${expected}`;
          found(
            `It failed and left a dead letter of class ${letter?.class ?? "none"}; its policy wants ${wanted}`,
            place,
          );
        }
      }
      for (const { id, entity } of left.values()) {
        const execution = executionOf(entity);
        if (id.startsWith(`${execution}:`))
          found(`The dead letter ${id} was written, and nothing failed`, { execution, commit });
      }
    }
    const remaining = new Map(world.remains.deadLetters.map((letter) => [letter.id, letter]));
    for (const [id, { place }] of written) if (!remaining.delete(id)) found(`The dead letter ${id} is gone`, place);
    for (const id of remaining.keys()) found(`The store holds the dead letter ${id}, which no commit wrote`);
  },
};

export const DELIVERY: readonly Invariant[] = [noDispatchLost, noSpuriousRuns, queueConservation, dlqExact];
