import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { cleanUp, folder, millrace, serve } from "./program.ts";

afterAll(cleanUp);

/** Its handler's error comes from where nobody can catch it, and takes the whole process along. */
const HANDLERS = `export const handlers = {
  deadly: async () => {
    setTimeout(() => { throw new Error("stray"); }, 5);
    await new Promise((resolve) => setTimeout(resolve, 60_000));
  },
};
`;

const DEADLY = `name: deadly
nodes:
  - { id: a, handler: deadly }
`;

/** The first death leaves nothing; each later one loses a delivery, and the third of them is the last. */
const DEATHS = 4;

test("a task that kills its process each time it starts is poison in the end, and the process lives", async () => {
  const here = folder({ "deadly.yaml": DEADLY, "handlers.mjs": HANDLERS });
  const store = `sqlite:${join(here, "data/millrace.db")}`;
  const begin = (): ReturnType<typeof serve> => serve(store, ["--handlers", "handlers.mjs"], { cwd: here });
  const first = await begin();
  const started = await millrace(["run", "deadly.yaml", "--server", "--no-watch", "--json", "--url", first.url], {
    cwd: here,
  });
  const { execution_id: id } = JSON.parse(started.stdout) as { execution_id: string };
  expect((await first.program.ended).code).toBe(1);
  for (let death = 2; death <= DEATHS; death++) {
    const server = await begin().catch(() => undefined);
    await server?.program.ended;
  }
  const server = await begin();
  const shown = await millrace(["show", id, "--json", "--url", server.url], { cwd: here });
  expect(JSON.parse(shown.stdout)).toMatchObject({
    status: "FAILED",
    nodes: { a: { status: "FAILED", deliveries: 3, error: { code: "POISON_TASK" } } },
  });
  await server.stop();
}, 120_000);
