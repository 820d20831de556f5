import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDefinition } from "../../src/definition/read.ts";
import { catalogue } from "../../src/definition/test-catalogue.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { TestApi } from "../support/api.ts";
import { type MemoryEngine, memoryEngine } from "../support/memory-engine.ts";
import { convert, digestOf, present, traces } from "../support/traces.ts";

describe.skipIf(!present)(
  "real workflow traces run to their end, and every node is given what its parents gave",
  () => {
    let engine: MemoryEngine;
    beforeAll(async () => {
      const simulate: Handler = ({ nodeId, config }) => digestOf(nodeId, config);
      engine = await memoryEngine({ simulate }, { engine: { checkWhole: true } });
    });
    afterAll(() => engine.stop());

    test.each(traces.flatMap((name) => [false, true].map((keepIds) => [name, keepIds] as const)))(
      "%s, own ids: %s",
      async (name, keepIds) => {
        const { dag, digests } = await convert(name, keepIds);
        const text = JSON.stringify(dag);
        const { workflow, errors } = readDefinition(text, { format: "json", handlers: catalogue({ simulate: {} }) });
        expect(errors).toEqual([]);
        const view = await engine.run(workflow!);
        expect(view.status).toBe("COMPLETED");
        const given = Object.entries(view.nodes).map(([id, { output }]) => [
          id,
          (output as { json: { digest: string } }).json.digest,
        ]);
        expect(Object.fromEntries(given)).toEqual(digests);
      },
    );

    test("all seven were there", () => expect(traces).toHaveLength(7));
  },
);

describe.skipIf(!present)("the same over HTTP, by a worker elsewhere", () => {
  let api: TestApi;
  const stopping = new AbortController();
  let working: Promise<void>;
  beforeAll(async () => {
    api = await TestApi.start();
    working = work();
  });
  afterAll(async () => {
    stopping.abort();
    await working;
    await api.close();
  });

  /** What a worker in any language does: take some, do them, hand in all at once. */
  async function work(): Promise<void> {
    while (!stopping.signal.aborted) {
      const leased = await api.post("/v1/tasks/lease", {
        worker_id: "elsewhere",
        handlers: ["simulate"],
        max: 200,
        wait_ms: 200,
      });
      const tasks = leased.body.tasks as { token: string; node_id: string; config: never }[];
      if (tasks.length === 0) continue;
      const results = tasks.map(({ token, node_id: id, config }) => ({ token, output: digestOf(id, config) }));
      const { status, body } = await api.post("/v1/tasks/complete", { results });
      expect(status).toBe(200);
      expect((body.results as { accepted: boolean }[]).every(({ accepted }) => accepted)).toBe(true);
    }
  }

  test.each(traces.map((name) => [name]))("%s", async (name) => {
    const { dag, digests } = await convert(name, true);
    const started = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", dag);
    expect(started.status).toBe(201);
    const path = `/v1/executions/${started.body.execution_id}`;
    await expect.poll(async () => (await api.get(path)).body.status, { timeout: 60_000 }).toBe("COMPLETED");
    const { body } = await api.get(path);
    const given = Object.entries(body.nodes as Record<string, { output: { digest: string } }>);
    expect(Object.fromEntries(given.map(([id, { output }]) => [id, output.digest]))).toEqual(digests);
  });
});
