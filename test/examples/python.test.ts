import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestApi } from "../support/api.ts";

const FILE = fileURLToPath(new URL("../../examples/python/worker.py", import.meta.url));
const python = spawnSync("python3", ["--version"]);
const MISSING = python.status === 0 ? false : "python3 is not installed";
if (MISSING) console.log(`skipped: ${MISSING}`);

describe.skipIf(MISSING)("the worker in Python", () => {
  let api: TestApi;
  let worker: ChildProcess;
  beforeAll(async () => {
    api = await TestApi.start();
    worker = spawn("python3", [FILE, api.url], { stdio: "inherit" });
  });
  afterAll(async () => {
    worker.kill("SIGKILL");
    await api.close();
  });

  async function run(nodes: object[]): Promise<{ status: string; output: unknown; nodes: Record<string, unknown> }> {
    const { status, body } = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", {
      name: "py",
      nodes,
    });
    expect(status).toBe(201);
    const path = `/v1/executions/${body.execution_id}`;
    await expect.poll(async () => (await api.get(path)).body.status).not.toBe("RUNNING");
    return (await api.get(path)).body;
  }

  test("runs a node, and the next one with what it gave", async () => {
    const ended = await run([
      { id: "a", handler: "py.total", config: { numbers: [1, 2, 3] } },
      { id: "b", handler: "py.shout", dependencies: ["a"], config: { text: "sum {{ a.sum }}" } },
    ]);
    expect(ended).toMatchObject({ status: "COMPLETED", output: { b: { text: "SUM 6", attempt: 1 } } });
  });

  test("reports what its handler raises", async () => {
    const ended = await run([{ id: "a", handler: "py.total", config: { numbers: ["x"] } }]);
    expect(ended).toMatchObject({ status: "FAILED" });
    expect(ended.nodes["a"]).toMatchObject({ error: { code: "TypeError", retryable: false } });
  });

  test("takes many at a time", async () => {
    const ended = await run([
      {
        id: "m",
        handler: "map",
        config: { items: [1, 2, 3, 4, 5, 6, 7, 8], handler: "py.total", config: { numbers: ["{{ item }}", 1] } },
      },
    ]);
    expect(ended.output).toEqual({ m: [2, 3, 4, 5, 6, 7, 8, 9].map((sum) => ({ sum })) });
  });
});
