import { expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { entityKind } from "../core/entity.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

/** How many executions each of the commits has that those who came during the first one are in. */
async function gathered(volatileInbox: boolean): Promise<readonly number[]> {
  const sizes: number[] = [];
  const begun = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const world = new TestWorld({
    wrap: (memory) => {
      const store = withJournal(memory, {
        commit: async (batches) => {
          const records = batches.flatMap((batch) => batch.records);
          const size = records.filter(({ entity }) => entityKind(entity) === "execution").length;
          if (size > 0) sizes.push(size);
          if (size > 0 && sizes.length === 1) {
            begun.resolve();
            await held.promise;
          }
          return memory.journal.commit(batches);
        },
      });
      return { ...store, capabilities: { ...store.capabilities, volatileInbox } };
    },
  });
  try {
    world.engine();
    const waiting = workflow([node("a")]);
    const starts = [world.start(waiting)];
    await begun.promise;
    for (let i = 0; i < 3; i++) {
      starts.push(world.start(waiting));
      await world.host.sleep(20);
    }
    held.resolve();
    await Promise.all(starts);
    return sizes;
  } finally {
    await world.close();
  }
}

test("all who come while a commit is under way are in the next one", async () => {
  expect(await gathered(true)).toEqual([1, 3]);
}, 10_000);

test("where a read is a round trip, the first of them is decided meanwhile", async () => {
  expect(await gathered(false)).toEqual([1, 1, 2]);
}, 10_000);
