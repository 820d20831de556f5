import { expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKind } from "../core/entity.ts";
import { openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import type { CommitBatch, CommitOutcome } from "../store/contract.ts";
import type { EngineSettings } from "./settings.ts";
import { STORE_TROUBLE_MS } from "./committer.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

/** What somebody makes of the commits that are about executions, in the order in which they are sent. */
type Fate = (batch: CommitBatch) => Promise<CommitOutcome | undefined>;

interface Queued {
  readonly world: TestWorld;
  /** All that were sent so far. */
  readonly sent: readonly CommitBatch[];
  /** All that were sent and not answered, at the most. */
  most: number;
}

/** A store that carries out one commit after the other, however many are sent. */
function queued(fate: Fate, settings: Partial<EngineSettings> = { followEntries: 1 }): Queued {
  const sent: CommitBatch[] = [];
  let under = 0;
  let last: Promise<unknown> = Promise.resolve();
  const world = new TestWorld({
    memory: openMemory({ host: nodeHost, queuesCommits: true }),
    wrap: (memory) =>
      withJournal(memory, {
        commit: async (batches) => {
          const [batch] = batches;
          const isOne = batch!.records.some(({ entity }) => entityKind(entity) === "execution");
          if (isOne) sent.push(batch!);
          found.most = Math.max(found.most, ++under);
          const before = last;
          const done = (async () => {
            await before;
            const outcome = isOne ? await fate(batch!) : undefined;
            return outcome === undefined ? memory.journal.commit(batches) : [outcome];
          })();
          last = done.catch(() => {});
          return done.finally(() => under--);
        },
      }),
  });
  const found: Queued = { world, sent, most: 0 };
  world.engine(settings);
  return found;
}

/** Who has looked and found nothing looks again when a commit has ended: of use to no commit that ends when there is another. */
const PATIENT: Partial<EngineSettings> = { followEntries: 1, idleMs: 3_000 };

const waiting = workflow([node("a")]);

test("a second commit is sent while one is written, and a third when that has been answered", async () => {
  const held = Promise.withResolvers<undefined>();
  let fates = 0;
  const { world, sent } = queued(() => (fates++ === 0 ? held.promise : Promise.resolve(undefined)));
  try {
    const starts: Promise<string>[] = [];
    let answered = 0;
    for (let i = 1; i <= 3; i++) {
      starts.push(world.start(waiting));
      void starts.at(-1)!.then(() => answered++);
      await expect.poll(() => sent.length).toBe(Math.min(i, 2));
    }
    await world.host.sleep(50);
    const [first, second] = sent;
    expect([sent.length, answered]).toEqual([2, 0]);
    expect([second!.fence.seq, second!.behind]).toEqual([first!.fence.seq + 1, first!.id]);
    expect([first!.behind, second!.fence.nonce]).toEqual([undefined, first!.fence.nonce]);
    held.resolve(undefined);
    await Promise.all(starts);
    expect(sent.slice(2).flatMap(({ records }) => records)).toHaveLength(1);
  } finally {
    held.resolve(undefined);
    await world.close();
  }
});

test("what is small waits for the one before it, with all who come until then", async () => {
  const held = Promise.withResolvers<undefined>();
  let fates = 0;
  const { world, sent } = queued(() => (fates++ === 0 ? held.promise : Promise.resolve(undefined)), {
    followEntries: 100,
  });
  try {
    const starts = [world.start(waiting)];
    await expect.poll(() => sent.length).toBe(1);
    starts.push(world.start(waiting), world.start(waiting));
    await world.host.sleep(50);
    expect(sent).toHaveLength(1);
    held.resolve(undefined);
    await Promise.all(starts);
    expect(sent.every(({ behind }) => behind === undefined)).toBe(true);
  } finally {
    held.resolve(undefined);
    await world.close();
  }
});

test("a commit that is sent again after the one before it was refused is fenced before anything is decided instead", async () => {
  const tries = new Map<string, number>();
  const { world, sent } = queued(async ({ id }) => {
    tries.set(id, (tries.get(id) ?? 0) + 1);
    if (id === sent[0]!.id) {
      await expect.poll(() => sent.length).toBe(2);
      return { kind: "refused", reason: "disk full" };
    }
    if (id !== sent[1]!.id || tries.get(id)! > 1) return undefined;
    // So late that the first is over, with all that is waited for after a refusal, when this comes again.
    await nodeHost.sleep(STORE_TROUBLE_MS / 2);
    throw new Error("nobody knows");
  }, PATIENT);
  try {
    const ids = [world.host.id(), world.host.id()];
    for (const [i, id] of ids.entries()) {
      void world.start(waiting, null, id).catch(() => {});
      await expect.poll(() => sent.length).toBe(i + 1);
    }
    await expect
      .poll(async () => (await Promise.all(ids.map((id) => world.kinds(id)))).flat().length)
      .toBeGreaterThan(3);
    const [first, second, again, instead] = sent;
    expect([again!.id, instead!.fence]).toEqual([second!.id, first!.fence]);
    for (const id of ids) expect((await world.kinds(id)).filter((kind) => kind === "accepted")).toHaveLength(1);
  } finally {
    await world.close();
  }
});

test("nothing is sent behind a commit whose first try has failed, so nothing of it is in vain", async () => {
  const tries = new Map<string, number>();
  const { world, sent } = queued(async ({ id }) => {
    tries.set(id, (tries.get(id) ?? 0) + 1);
    if (id === sent[0]!.id && tries.get(id) === 1) throw new Error("nobody knows");
    return undefined;
  });
  try {
    const starts = [world.start(waiting)];
    await expect.poll(() => sent.length).toBe(1);
    starts.push(world.start(waiting));
    await Promise.all(starts);
    expect(sent[1]!.id).toBe(sent[0]!.id);
    expect(new Set(sent.map(({ fence }) => fence.nonce)).size).toBe(1);
  } finally {
    await world.close();
  }
});

test("what begins is not sent behind another while there are more tasks than may be out", async () => {
  const held: (() => void)[] = [];
  let isHolding = false;
  const { world, sent } = queued(
    async () => {
      if (isHolding) await new Promise<void>((resolve) => held.push(() => resolve()));
      return undefined;
    },
    { ...PATIENT, window: 3 },
  );
  const soon = 50;
  try {
    await world.start(waiting);
    isHolding = true;
    for (const isCrowded of [false, true]) {
      const before = sent.length;
      // Three may be out, and one is.
      const starts = [world.start(waiting)];
      await expect.poll(() => sent.length).toBe(before + 1);
      starts.push(world.start(waiting));
      if (isCrowded) await world.host.sleep(soon);
      else await expect.poll(() => sent.length).toBe(before + 2);
      expect(sent).toHaveLength(before + (isCrowded ? 1 : 2));
      const all = Promise.all(starts);
      let isDone = false;
      void all.then(() => (isDone = true));
      while (!isDone) {
        held.shift()?.();
        await world.host.sleep(1);
      }
    }
  } finally {
    isHolding = false;
    for (const release of held) release();
    await world.close();
  }
});

test.each<readonly [what: string, fate: () => CommitOutcome | undefined]>([
  ["refused", () => ({ kind: "refused", reason: "disk full" })],
  [
    "lost",
    () => {
      throw new Error("nobody knows");
    },
  ],
])(
  "what was sent behind a commit that is %s is decided anew, and nothing is lost or done twice",
  async (_, fate) => {
    let fates = 0;
    // One in three: now the one, now the other of two that are under way, and now and then a resend.
    const found = queued(async () => {
      await nodeHost.sleep(5);
      return ++fates % 3 === 0 ? fate() : undefined;
    });
    const { world } = found;
    try {
      world.worker({ step: () => "done" });
      const chain = workflow([node("a"), node("b", ["a"])]);
      const ids: string[] = [];
      for (let i = 0; i < 12; i++) {
        const id = world.host.id();
        ids.push(id);
        void world.start(chain, null, id).catch(() => {});
        await nodeHost.sleep(3);
      }
      for (const id of ids) {
        expect((await world.ended(id)).status).toBe("COMPLETED");
        expect((await world.kinds(id)).filter((kind) => kind === "taskCompleted")).toHaveLength(2);
      }
      expect(found.most).toBe(2);
    } finally {
      await world.close();
    }
  },
  60_000,
);
