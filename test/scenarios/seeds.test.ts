import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readDefinition } from "../../src/definition/read.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import type { Json } from "../../src/json/json.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { type MemoryEngine, memoryEngine } from "../support/memory-engine.ts";

/** What the handlers were given, in the order of the calls. */
let calls: { readonly node: string; readonly config: Json; readonly inputs: Json | undefined }[] = [];

/** The source documents run on mock services; these stand in for ours, at once and without a network. */
const handlers: Readonly<Record<string, Handler>> = {
  http: ({ nodeId, config, inputs }) => {
    calls.push({ node: nodeId, config, inputs });
    const url = (config as { url?: string }).url ?? "mock";
    return { status: 200, headers: {}, body: { name: `body of ${url}` }, result: `result of ${nodeId}` };
  },
  llm: ({ nodeId, config, inputs }) => {
    calls.push({ node: nodeId, config, inputs });
    const { prompt = "nothing" } = config as { prompt?: string };
    return { text: `answer to: ${prompt}`, model: "mock", finish_reason: "stop", usage: {} };
  },
  transform: ({ nodeId, config, inputs }) => {
    calls.push({ node: nodeId, config, inputs });
    return (config as { value: Json }).value;
  },
};

/** Looks often, so that nothing waits for a poll. */
const quick = { engine: { idleMs: 20, renewMs: 20, checkWhole: true }, worker: { pollMs: 20 } };

let engine: MemoryEngine;
beforeEach(async () => {
  calls = [];
  engine = await memoryEngine(handlers, quick);
});
afterEach(() => engine.stop());

/** As a user does it: the text of the document, read and run. */
function read(definition: Json): Workflow {
  const { workflow, errors } = readDefinition(JSON.stringify(definition), { format: "json" });
  expect(errors).toEqual([]);
  return workflow!;
}

const given = (node: string): Json | undefined => calls.find((call) => call.node === node)?.config;

describe("the payloads of the source documents run as they are", () => {
  const fetcher = {
    name: "Parallel API Fetcher",
    dag: {
      nodes: [
        { id: "input", handler: "input", dependencies: [] },
        {
          id: "get_user",
          handler: "call_external_service",
          dependencies: ["input"],
          config: { url: "http://localhost:8911/users/1" },
        },
        {
          id: "get_posts",
          handler: "call_external_service",
          dependencies: ["input"],
          config: { url: "http://localhost:8911/posts" },
        },
        {
          id: "get_comments",
          handler: "external_service",
          dependencies: ["input"],
          config: { url: "http://localhost:8911/comments" },
        },
        { id: "output", handler: "output", dependencies: ["get_user", "get_posts", "get_comments"] },
      ],
    },
  };

  test("a dag in a wrapper, a name with spaces, an input node, an output node that collects its parents", async () => {
    const view = await engine.run(read(fetcher), { user: 1 });
    expect(view).toMatchObject({ workflow: "Parallel API Fetcher", status: "COMPLETED", error: null });
    expect(view.nodes["input"]!.output).toEqual({ json: { user: 1 } });
    expect(view.output).toEqual({
      get_user: expect.objectContaining({ body: { name: "body of http://localhost:8911/users/1" } }) as object,
      get_posts: expect.objectContaining({ body: { name: "body of http://localhost:8911/posts" } }) as object,
      get_comments: expect.objectContaining({ body: { name: "body of http://localhost:8911/comments" } }) as object,
    });
  });

  test("the same without any input", async () => {
    const view = await engine.run(read(fetcher));
    expect(view.status).toBe("COMPLETED");
    expect(view.nodes["input"]!.output).toEqual({ json: {} });
  });

  test("nodes as a bare list, node_id, a mock service without an address, a data processor", async () => {
    const definition = {
      name: "chain",
      nodes: [
        { node_id: "A", handler: "external_service", config: { service: "user_api" }, dependencies: [] },
        {
          node_id: "B",
          handler: "data_processor",
          config: { data: "{{ A.result }}", operation: "upper" },
          dependencies: ["A"],
        },
        { node_id: "C", handler: "llm_service", config: { prompt: "{{ B.data }}" }, dependencies: ["B"] },
      ],
    };
    const view = await engine.run(read(definition));
    expect(view).toMatchObject({ status: "COMPLETED", output: { C: { text: "answer to: result of A" } } });
    expect(given("B")).toEqual({ value: { data: "result of A", operation: "upper" } });
  });

  test("a summary of what two services gave, with time limits", async () => {
    const definition = {
      name: "summary",
      nodes: [
        {
          id: "nodeA",
          handler: "call_external_service",
          config: { url: "http://a" },
          dependencies: [],
          timeout_seconds: 30,
        },
        {
          id: "nodeB",
          handler: "llm_service",
          config: { prompt: "Summarize this: {{ nodeA.body.name }}" },
          dependencies: ["nodeA"],
          timeout_seconds: 60,
        },
      ],
    };
    const view = await engine.run(read(definition));
    expect(view.output).toMatchObject({ nodeB: { text: "answer to: Summarize this: body of http://a" } });
  });

  test("what a service with an address has answered is read as its result", async () => {
    const definition = {
      name: "as written",
      nodes: [
        { id: "nodeA", handler: "call_external_service", config: { url: "http://a" } },
        {
          id: "nodeB",
          handler: "llm_service",
          config: { prompt: "Summarize this: {{ nodeA.result }}" },
          dependencies: ["nodeA"],
        },
        { id: "C", handler: "data_processor", config: { data: "{{ nodeB.result }}" }, dependencies: ["nodeB"] },
      ],
    };
    const { nodes } = read(definition);
    expect(nodes.map(({ config }) => config["result"])).toEqual([true, true, undefined]);
    expect((await engine.run(read(definition))).nodes["nodeB"]!.status).toBe("COMPLETED");
    expect(given("nodeB")).toEqual({ prompt: "Summarize this: result of nodeA", result: true });
  });

  test("steps by id, the fields of document 002", async () => {
    const definition = {
      workflow_id: "doc-1",
      name: "Document workflow",
      steps: {
        ingest: { step_type: "EXTRACT", name: "Ingest", handler: "external_service", config: {}, dependencies: [] },
        extract: {
          step_type: "EXTRACT",
          handler: "data_processor",
          config: { text: "{{ ingest.result }}", score: 0.9 },
          retry_config: { max_attempts: 5, base_delay_seconds: 0.5 },
          dependencies: ["ingest"],
        },
        check: {
          handler: "llm_service",
          config: { prompt: "check {{ extract.text }}" },
          dependencies: ["extract"],
          condition: "{{ extract.score < 0.75 }}",
        },
        done: { handler: "output", dependencies: ["extract", "check"] },
      },
    };
    const view = await engine.run(read(definition));
    expect(view).toMatchObject({ status: "COMPLETED", nodes: { check: { status: "SKIPPED", reason: "condition" } } });
    expect(view.output).toEqual({ extract: { text: "result of ingest", score: 0.9 } });
  });
});

describe("scenario A: a chain", () => {
  test("each node is given what the one before it gave, and they run in order", async () => {
    const chain = {
      name: "A",
      nodes: ["A", "B", "C", "D"].map((id, i, all) => ({
        id,
        handler: "data_processor",
        config: { path: i === 0 ? id : `{{ ${all[i - 1]}.path }} → ${id}` },
        dependencies: i === 0 ? [] : [all[i - 1]!],
      })),
    };
    const view = await engine.run(read(chain));
    expect(view.output).toEqual({ D: { path: "A → B → C → D" } });
    expect(calls.map(({ node }) => node)).toEqual(["A", "B", "C", "D"]);
  });
});

const fanIn = {
  name: "B",
  nodes: [
    { id: "A", handler: "external_service", config: { url: "http://a" }, dependencies: [] },
    { id: "B", handler: "external_service", config: { url: "http://b/{{ A.status }}" }, dependencies: ["A"] },
    { id: "C", handler: "external_service", config: { url: "http://c/{{ A.status }}" }, dependencies: ["A"] },
    {
      id: "D",
      handler: "llm_service",
      config: { prompt: "{{ B.body.name }} and {{ C.body.name }}" },
      dependencies: ["B", "C"],
    },
  ],
};

describe("scenario B: fan-out and fan-in", () => {
  test("the branches run at the same time, and the join gets both", async () => {
    await engine.stop();
    // Each branch waits for the other: one after the other they would never end.
    const meeting = new Map<string, () => void>();
    const met = new Map(["B", "C"].map((id) => [id, new Promise<void>((resolve) => meeting.set(id, resolve))]));
    const http: Handler = async (call) => {
      meeting.get(call.nodeId)?.();
      if (call.nodeId !== "A") await met.get(call.nodeId === "B" ? "C" : "B");
      return handlers["http"]!(call);
    };
    engine = await memoryEngine({ ...handlers, http }, quick);
    const view = await engine.run(read(fanIn));
    expect(view).toMatchObject({ status: "COMPLETED" });
    expect(given("D")).toEqual({ prompt: "body of http://b/200 and body of http://c/200" });
    expect(calls.filter(({ node }) => node === "D")).toHaveLength(1);
  });
});

describe("scenario C: the parents of a join complete at the same moment", () => {
  test("the join is dispatched once, 200 times out of 200", async () => {
    const workflow = read(fanIn);
    const ids = await Promise.all(Array.from({ length: 200 }, () => engine.start(workflow)));
    for (const id of ids) {
      let version = 0;
      for (;;) {
        version = await engine.store.journal.watch(0, `execution/${id}`, version, 1000);
        if ((await engine.read(id)).isEnded) break;
      }
      const [loaded] = await engine.store.journal.load([{ partition: 0, entity: `execution/${id}`, aboveVersion: 0 }]);
      const events = loaded!.records.flatMap((record) => JSON.parse(record.text) as { kind: string; node?: string }[]);
      const dispatches = events.filter((event) => event.kind === "taskDispatched").map((event) => event.node);
      expect(dispatches.filter((id) => id !== undefined).toSorted()).toEqual(["A", "B", "C", "D"]);
      expect((await engine.read(id)).status).toBe("completed");
    }
    expect(calls.filter(({ node }) => node === "D")).toHaveLength(200);
  });
});
