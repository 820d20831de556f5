import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cacheEntity } from "../../src/core/cache/state.ts";
import { partitionOf } from "../../src/core/entity.ts";
import type { Store } from "../../src/store/contract.ts";
import { HandlerError } from "../../src/worker/handler.ts";
import { TestApi } from "./api.ts";
import { openStream } from "./event-stream.ts";

/**
 * What only a real store can get wrong in the API: names that break out of a query, texts it changes, pages, versions,
 * two processes. `open` gives the same store again where several processes can share one.
 */
export function apiStory(name: string, open: () => Promise<Store>, isShared: boolean): void {
  describe(`the API over ${name}`, () => {
    const stores: Store[] = [];
    let api: TestApi;
    /** Another process, where there can be one. */
    let other: TestApi;
    const mended = new Set<string>();

    beforeAll(async () => {
      const handlers = {
        step: ({ config }: { config: unknown }) => config as never,
        fragile: ({ nodeId }: { nodeId: string }) => {
          if (!mended.has(nodeId)) throw new HandlerError("BROKEN", "no", { retryable: false });
          return 1;
        },
        later: ({ attempt }: { attempt: number }) => {
          if (attempt === 1) throw new HandlerError("LATER", "soon", { retryable: true, retryAfterMs: 3.21 });
          return attempt;
        },
      };
      stores.push(await open());
      api = await TestApi.start({ store: stores[0]!, handlers });
      if (isShared) {
        stores.push(await open());
        other = await TestApi.start({ store: stores[1]!, engine: false, known: ["step", "fragile", "later"] });
      } else other = api;
    });
    afterAll(async () => {
      expect(api.incidents).toEqual([]);
      expect(other.incidents).toEqual([]);
      await other.close();
      await api.close();
      for (const store of stores) await store.close();
    });

    const diamond = {
      name: 'Dia"mond é 💎',
      nodes: [
        { id: "a", handler: "step", config: { x: 1 } },
        { id: "b", handler: "step", dependencies: ["a"], config: { x: "{{ a.x }}", text: "{{ input.text }}" } },
      ],
    };

    test("submit, trigger and read, here and there; whatever text passes unchanged", async () => {
      const text = `'"\\ \u0000 \ud800 \u2028 💥 ${"é".repeat(50_000)}`;
      const submitted = await api.post("/v1/workflow", { definition: diamond, input_params: { text, __proto: 1 } });
      expect(submitted).toMatchObject({ status: 201, body: { version: 1, status: "PENDING" } });
      const id = submitted.body.execution_id as string;
      expect((await other.get(`/v1/executions/${id}`)).body.status).toBe("PENDING");
      expect((await other.post(`/v1/workflow/trigger/${id}`)).status).toBe(202);
      expect((await api.get(`/v1/executions/${id}/input`)).body).toEqual({ text, __proto: 1 });
      const body = await other.ended(id);
      // A handler may not give back what no store is sure to keep.
      expect(body).toMatchObject({ status: "FAILED", error: { code: "OUTPUT_INVALID" } });
      const good = await other.run({ ...diamond, name: "good" }, { text: "é".repeat(50_000) });
      expect(await api.ended(good)).toMatchObject({ status: "COMPLETED", nodes: { b: { output: { $large: {} } } } });
      expect((await api.get(`/v1/executions/${good}/nodes/b`)).body.output).toEqual({ x: 1, text: "é".repeat(50_000) });
    });

    test("the same key is one execution, whichever process it reaches", async () => {
      const headers = { "idempotency-key": "same" };
      const body = { ...diamond, name: "keyed" };
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, i) => (i % 2 === 0 ? api : other).post("/v1/workflow", body, headers)),
      );
      expect(new Set(answers.map((answer) => `${answer.status} ${answer.body.execution_id}`)).size).toBe(1);
      const reused = await other.post("/v1/workflow", { ...body, description: "x" }, headers);
      expect(reused.body.code).toBe("IDEMPOTENCY_KEY_REUSED");
    });

    test("of several definitions with one key the refused make no version", async () => {
      const headers = { "idempotency-key": "raced" };
      const bodies = Array.from({ length: 6 }, (_, i) => ({ ...diamond, name: "raced", description: `${i}` }));
      const posted = bodies.map((body, i) => (i % 2 === 0 ? api : other).post("/v1/workflow", body, headers));
      const statuses = (await Promise.all(posted)).map(({ status }) => status);
      expect(statuses.toSorted((a, b) => a - b)).toEqual([201, ...Array.from({ length: 5 }, () => 422)]);
      const taken = bodies[statuses.indexOf(201)]!;
      expect((await api.get("/v1/workflows/raced")).body).toMatchObject({
        version: 1,
        definition: { description: taken.description },
      });
    });

    test("versions are counted once, and gone with their name", async () => {
      const named = { ...diamond, name: "versions" };
      await Promise.all([api, other, api, other].map((one) => one.post("/v1/workflows", named)));
      await other.post("/v1/workflows", { ...named, description: "second" });
      const versions = (await api.get("/v1/workflows/versions/versions")).body.items as { version: number }[];
      expect(versions.map(({ version }) => version)).toEqual([2, 1]);
      expect((await other.get("/v1/workflows/versions/versions/1")).body.definition.description).toBeUndefined();
      expect((await other.delete("/v1/workflows/versions")).status).toBe(204);
      expect((await api.get("/v1/workflows/versions")).status).toBe(404);
    });

    test("lists are paged, filtered, and take cursors of the other process", async () => {
      const started = await other.post("/v1/workflows/good/executions", {
        inputs: Array.from({ length: 25 }, () => ({ text: "x" })),
      });
      const ids = started.body.items.map((item: { execution_id: string }) => item.execution_id) as string[];
      for (const id of ids) await api.ended(id);
      const found: string[] = [];
      let cursor: string | null = null;
      let turn = 0;
      do {
        const more: string = cursor === null ? "" : `&cursor=${encodeURIComponent(cursor)}`;
        const path = `/v1/executions?workflow=good&status=COMPLETED&limit=7${more}`;
        const { body } = await (turn++ % 2 === 0 ? api : other).get(path);
        found.push(...body.items.map((item: { execution_id: string }) => item.execution_id));
        cursor = body.next_cursor as string | null;
      } while (cursor !== null);
      expect(new Set(found).size).toBe(found.length);
      expect(found).toEqual(expect.arrayContaining(ids));
      expect((await api.get(`/v1/executions?workflow=${encodeURIComponent(diamond.name)}`)).body.items.length).toBe(1);
      const names = (await api.get("/v1/workflows?limit=500")).body.items as { name: string }[];
      expect(names).toContainEqual(expect.objectContaining({ name: diamond.name }));
    });

    test("a large result is kept for others, and nothing is left of it when its time is up", async () => {
      const cached = (ttl: number): object => ({
        name: `cached-${ttl}`,
        nodes: [{ id: "a", handler: "step", config: { text: "{{ input.text }}" }, cache: { key: "k", ttl } }],
        concurrency: { limit: 1 },
      });
      const text = "é".repeat(50_000);
      const ids = [await api.run(cached(600), { text }), await other.run(cached(600), { text: "another" })];
      const shown = await Promise.all(ids.map((id) => api.ended(id)));
      const spared = shown.findIndex((body) => body.nodes.a.reason === "cached");
      expect(shown[spared].nodes.a.cached_from).toBe(ids[1 - spared]);
      const outputs = ids.map(async (id) => (await other.get(`/v1/executions/${id}/nodes/a`)).body.output);
      expect((await outputs[0])!.text).toBe((await outputs[1])!.text);
      await api.ended(await api.run(cached(0.1), { text }));
      const store = stores[0]!;
      const entity = cacheEntity("default", "key", "cached-0.1/a", "k");
      const partition = partitionOf(entity, store.capabilities.partitionCount);
      const isGone = async (): Promise<boolean> => {
        const [loaded] = await store.journal.load([{ partition, entity }]);
        return loaded!.records.length === 0 && loaded!.snapshot === null;
      };
      await expect.poll(isGone, { timeout: 20_000 }).toBe(true);
      expect((await api.ended(await api.run(cached(0.1), { text: "new" }))).nodes.a.output).toEqual({ text: "new" });
    });

    test("labels find executions, whichever process asks", async () => {
      const label = { "a.b/c-d": 'é 💎 "=\\%_*' };
      const started = await api.post("/v1/workflows/good/executions", {
        inputs: Array.from({ length: 5 }, () => ({ text: "x" })),
        labels: { ...label, second: "x" },
      });
      const ids = started.body.items.map((item: { execution_id: string }) => item.execution_id) as string[];
      for (const id of ids) await api.ended(id);
      const query = encodeURIComponent(`a.b/c-d=${label["a.b/c-d"]},second=x`);
      const first = (await other.get(`/v1/executions?label=${query}&limit=3`)).body;
      const cursor = encodeURIComponent(first.next_cursor);
      const rest = (await api.get(`/v1/executions?label=${query}&limit=3&cursor=${cursor}&status=COMPLETED`)).body;
      expect(rest.code).toBe("INVALID_CURSOR");
      const second = (await api.get(`/v1/executions?label=${query}&limit=3&cursor=${cursor}`)).body;
      const found = [...first.items, ...second.items].map((item: { execution_id: string }) => item.execution_id);
      expect(new Set(found)).toEqual(new Set(ids));
      expect((await other.get(`/v1/executions?label=second=y`)).body.items).toEqual([]);
    });

    test("dead letters, retries, signals and reviews", async () => {
      const id = await api.run({
        name: "people",
        on_error: "fail_branch",
        nodes: [
          { id: "f", handler: "fragile" },
          { id: "ask", handler: "review", config: { title: "ok?" } },
          { id: "go", handler: "wait", dependencies: ["ask"], config: { signal: "go" } },
        ],
      });
      let review: string | undefined;
      await api.eventually(async () => {
        const { body } = await other.get("/v1/reviews");
        review = body.items.find((item: { execution_id: string }) => item.execution_id === id)?.id;
        return review !== undefined;
      });
      expect((await other.post(`/v1/reviews/${review}`, { decision: "approve" })).status).toBe(200);
      expect((await api.post(`/v1/reviews/${review}`, { decision: "reject" })).body.code).toBe("REVIEW_CLOSED");
      expect((await other.get("/v1/reviews")).body.items).toEqual([]);
      expect((await other.post(`/v1/executions/${id}/signal`, { name: "go", data: 7 })).status).toBe(202);
      expect(await other.ended(id)).toMatchObject({
        status: "PARTIAL",
        retryable_from: ["f"],
        nodes: { go: { output: 7 } },
      });
      const [letter] = (await other.get(`/v1/dlq?execution_id=${id}&class=poison&queue=fragile`)).body.items;
      mended.add("f");
      expect((await other.post(`/v1/dlq/${letter.id}/retry`)).status).toBe(202);
      expect(await api.ended(id)).toMatchObject({ status: "COMPLETED", generation: 2 });
      expect((await api.get(`/v1/dlq/${letter.id}`)).body.status).toBe("replayed");
      expect((await api.delete(`/v1/dlq/${letter.id}`)).status).toBe(204);
      expect((await other.get(`/v1/dlq/${letter.id}`)).status).toBe(404);
    });

    test("a stream tells what another process commits", async () => {
      const { body } = await api.post("/v1/workflow", { ...diamond, name: "streamed" });
      const id = body.execution_id as string;
      const stream = await openStream(`${other.url}/v1/executions/${id}/events`);
      await api.post(`/v1/workflow/trigger/${id}`, { input_params: { text: "x" } });
      const frames = await stream.all();
      const { seq } = await api.ended(id);
      expect(frames.slice(0, -1).map((frame) => Number(frame.id))).toEqual(
        Array.from({ length: seq }, (_, i) => i + 1),
      );
      expect(frames.at(-1)!.event).toBe("end");
    });

    test("tasks are leased here and settled there", async () => {
      const definition = { name: "remote", nodes: [{ id: "a", handler: "elsewhere" }] };
      const { body } = await api.post("/v1/workflow?start=true&allow_missing_handlers=true", definition);
      const lease = { worker_id: "w", handlers: ["elsewhere"], wait_ms: 10_000 };
      const [task] = (await api.post("/v1/tasks/lease", lease)).body.tasks;
      expect(
        (await other.post("/v1/tasks/heartbeat", { worker_id: "w", tokens: [task.token] })).body.cancelled,
      ).toEqual([]);
      expect((await other.post("/v1/tasks/complete", { token: task.token, output: 1 })).body).toEqual({
        accepted: true,
      });
      expect((await api.post("/v1/tasks/complete", { token: task.token, output: 1 })).body).toEqual({ accepted: true });
      expect(await api.ended(body.execution_id)).toMatchObject({ output: { a: 1 } });
      expect((await other.get("/v1/workers")).body.items).toContainEqual(
        expect.objectContaining({ worker_id: "gateway-w" }),
      );
    });

    test("times that are no whole milliseconds are as good as any", async () => {
      const wait = { id: "w", handler: "wait", config: { seconds: "{{ input.seconds }}" } };
      const waiting = await api.run({ name: "waits", nodes: [wait] }, { seconds: 0.012_34 });
      expect(await api.ended(waiting)).toMatchObject({ status: "COMPLETED" });
      const retry = { max_attempts: 2, base_delay_seconds: 0 };
      const times = { timeout_seconds: 5.000_33, queue_timeout_seconds: 30.000_71 };
      const retried = await api.run({
        name: "asks for more time",
        timeout_seconds: 60.000_17,
        nodes: [{ id: "a", handler: "later", retry, ...times }],
      });
      expect(await api.ended(retried)).toMatchObject({ status: "COMPLETED", nodes: { a: { attempt: 2, output: 2 } } });
    });

    test("a workflow is not found by a name or number that nothing can have, and nobody is held up", async () => {
      const caller = {
        name: "caller",
        nodes: [{ id: "c", handler: "workflow", config: { name: "{{ input.name }}", version: "{{ input.version }}" } }],
      };
      for (const input of [
        { name: "\u0000", version: 1 },
        { name: "good", version: "\u0000" },
        { name: "good", version: 1.5 },
        { name: "good", version: 3_000_000_000 },
        { name: "good", version: -1e300 },
      ]) {
        const body = await api.ended(await api.run(caller, input));
        expect([input, body.error?.code]).toEqual([input, "CHILD_FAILED"]);
      }
      expect((await api.get("/v1/workflows/good/versions/99999999999")).status).toBe(404);
    });

    test("names made to break out of a query or a key are only names", async () => {
      for (const bad of [
        "' or 1=1 --",
        '"; drop table x',
        "a:b",
        "*",
        "{x}",
        "\\",
        "%",
        "_",
        "\u0000",
        "\u202e",
        "x".repeat(500),
      ]) {
        const path = encodeURIComponent(bad);
        for (const address of [
          "/v1/workflows/",
          "/v1/executions/",
          "/v1/dlq/",
          "/v1/reviews/",
          "/v1/workflows/good/versions/",
        ]) {
          expect((await api.get(address + path)).status).toBe(404);
        }
        expect((await api.post(`/v1/limits/${path}/reset`)).status).toBe(404);
        for (const query of [`executions?workflow=${path}`, `dlq?queue=${path}`, `dlq?execution_id=${path}`]) {
          const { status, body } = await api.get(`/v1/${query}`);
          expect(status === 400 || (status === 200 && body.items.length === 0)).toBe(true);
        }
      }
      expect((await api.get("/readyz")).status).toBe(200);
      expect((await api.get("/v1/queues")).status).toBe(200);
      expect((await api.get("/metrics")).body).toContain("millrace_queue_tasks");
    });
  });
}
