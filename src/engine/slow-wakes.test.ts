import { expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

test("an engine goes on, though the store took longer to tell what wakes than it looks ahead", async () => {
  const world = new TestWorld({
    wrap: (memory) =>
      withJournal(memory, {
        due: async (...asked) => {
          await new Promise((resolve) => setTimeout(resolve, 100));
          return memory.journal.due(...asked);
        },
      }),
  });
  try {
    world.engine({ horizonMs: 50 });
    world.worker({ step: () => 1 });
    const id = await world.start(workflow([node("a")]));
    expect((await world.ended(id)).status).toBe("COMPLETED");
  } finally {
    await world.close();
  }
}, 20_000);
