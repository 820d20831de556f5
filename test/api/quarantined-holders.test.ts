import { afterAll, beforeAll, expect, test } from "vitest";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { MACHINES } from "../../src/core/machines.ts";
import { cleanUp, start } from "../cli/program.ts";
import { TestApi } from "../support/api.ts";

/** Of a result with this text the engine below can decide nothing, until it is mended. */
const INDIGESTIBLE = "indigestible";
let broken = true;
const buggy: typeof executionMachine = {
  ...executionMachine,
  decide: (state, message, context) => {
    if (broken && message.body.kind === "taskCompleted" && JSON.stringify(message.body).includes(INDIGESTIBLE))
      throw new TypeError("our own bug");
    return executionMachine.decide(state, message, context);
  },
};

const reported: Promise<unknown>[] = [];
let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({ machines: [buggy, ...MACHINES.filter(({ kind }) => kind !== "execution")] });
});
afterAll(async () => {
  await Promise.all(reported);
  await api.close();
  cleanUp();
});

async function run(definition: object): Promise<string> {
  const answer = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", definition);
  expect(answer.status).toBe(201);
  return answer.body.execution_id as string;
}

async function complete(handler: string, output: string): Promise<string> {
  const asked = { worker_id: "w1", handlers: [handler], max: 1, wait_ms: 5_000 };
  const { body } = await api.post("/v1/tasks/lease", asked);
  const [task] = body.tasks;
  // Nobody waits for the answer: to what cannot be decided there is none.
  reported.push(api.post("/v1/tasks/complete", { token: task.token, output }));
  return task.execution_id;
}

const one = (name: string, more: object, ofWorkflow: object = {}): object => {
  return { name, ...ofWorkflow, nodes: [{ id: "a", handler: name, ...more }] };
};

test.each([
  ["a place at a limit", one("limited", { limit: "few" }, { limits: { few: { concurrency: 1 } } })],
  ["a place among those of its workflow", one("entered", {}, { concurrency: { limit: 1 } })],
  ["its key in the cache", one("cached", { cache: true })],
])(
  "whoever waits for an execution in quarantine that has %s is told which, and how to let it go",
  async (_, definition) => {
    broken = true;
    const handler = (definition as { name: string }).name;
    const ids = [await run(definition), await run(definition)];
    const holder = await complete(handler, INDIGESTIBLE);
    const waiting = ids.find((id) => id !== holder)!;
    const why = async (): Promise<{ sentence: string; details: { quarantined?: string[] } }> =>
      (await api.get(`/v1/executions/${waiting}/explain?node=a`)).body.items[0];
    await expect.poll(async () => (await why()).details.quarantined).toEqual([holder]);
    expect((await why()).sentence).toMatch(
      new RegExp(
        `; execution ${holder} is in quarantine .*: millrace release ${holder} .*: millrace cancel ${holder}$`,
      ),
    );

    broken = false;
    const released = await start(["release", holder, "--url", api.url]).ended;
    expect(released).toMatchObject({ code: 0, stdout: `${holder} released\n` });
    await api.until(holder, "COMPLETED");
    if (handler !== "cached") await complete(handler, "well");
    await api.until(waiting, "COMPLETED");
    const again = await start(["release", holder, "--url", api.url]).ended;
    expect([again.code, again.stderr]).toEqual([expect.any(Number), expect.stringContaining("quarantine")]);
    expect(again.code).not.toBe(0);
  },
);

test("letters of what could not be decided or read can be thrown away, and are not replayed", async () => {
  broken = true;
  const holder = await run(one("letters", {}));
  await complete("letters", INDIGESTIBLE);
  await api.memory.inbox.append([{ partition: 0, start: false, text: "nobody can read this" }]);
  const letters = async (): Promise<readonly { id: string; execution_id: string | null }[]> =>
    (await api.get("/v1/dlq?queue=inbox")).body.items.concat(
      (await api.get(`/v1/dlq?execution_id=${holder}`)).body.items,
    );
  await expect.poll(async () => (await letters()).map(({ execution_id: id }) => id)).toEqual([null, holder]);
  const [unread, quarantine] = await letters();
  expect(await api.post(`/v1/dlq/${encodeURIComponent(quarantine!.id)}/retry`)).toMatchObject({
    status: 409,
    body: { code: "NOT_RETRYABLE", detail: expect.stringContaining("release it") as string },
  });
  expect((await api.post(`/v1/dlq/${unread!.id}/retry`)).status).toBe(404);
  for (const { id } of [unread!, quarantine!]) {
    expect((await api.delete(`/v1/dlq/${encodeURIComponent(id)}`)).status).toBe(204);
    expect((await api.get(`/v1/dlq/${encodeURIComponent(id)}`)).status).toBe(404);
  }
  expect(await letters()).toEqual([]);
  // It is in quarantine as before, and goes on when it is let go.
  broken = false;
  await api.post(`/v1/executions/${holder}/release`);
  await api.until(holder, "COMPLETED");
});
