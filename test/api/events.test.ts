import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { gate } from "../../src/engine/test-engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { TestApi } from "../support/api.ts";
import { type Frame, openStream } from "../support/event-stream.ts";

const held = gate();
let api: TestApi;
beforeAll(async () => {
  api = await TestApi.start({
    handlers: {
      step: ({ config }) => config,
      gate: held.handler,
      big: () => ({ text: "x".repeat(60_000) }),
      fail: () => {
        throw new Error("no");
      },
    },
  });
});
afterAll(async () => {
  expect(api.incidents).toEqual([]);
  await api.close();
});

const one = (handler: string, id = "a") => ({ name: "events", nodes: [{ id, handler, retry: { max_attempts: 1 } }] });
const stream = (id: string, headers: Readonly<Record<string, string>> = {}) =>
  openStream(`${api.url}/v1/executions/${id}/events`, headers);

const streams = async (): Promise<string> =>
  /millrace_event_streams (\d+)/.exec((await api.get("/metrics")).body as string)![1]!;

describe("the history", () => {
  test("has every event with its number, time, node and data, and nothing of the engine's own", async () => {
    const id = await api.run(one("step"), { who: 1 });
    const { seq } = await api.ended(id);
    const { body } = await api.get(`/v1/executions/${id}/events`);
    expect(body.items.map((event: { seq: number }) => event.seq)).toEqual(Array.from({ length: seq }, (_, i) => i + 1));
    expect(body.next_cursor).toBeNull();
    expect(body.items).toMatchObject([
      { type: "accepted", data: { workflow: "events", input: { who: 1 }, by: "local", tenant: "default" } },
      { type: "started", data: {} },
      { type: "task_dispatched", node_id: "a", attempt: 1, data: { delivery: 1 } },
      { type: "task_completed", node_id: "a", attempt: 1, data: { output: {} } },
      { type: "execution_ended", data: { status: "COMPLETED", reason: "done" } },
    ]);
    const text = JSON.stringify(body);
    for (const hidden of ["nonce", "atMs", "bodyHash", "AtMs"]) expect(text).not.toContain(hidden);
  });

  test("is read from a place on, and in pages", async () => {
    const id = await api.run(one("step"));
    const { seq } = await api.ended(id);
    const after = await api.get(`/v1/executions/${id}/events?after=${seq - 1}`);
    expect(after.body).toMatchObject({ items: [{ seq, type: "execution_ended" }], next_cursor: null });
    expect((await api.get(`/v1/executions/${id}/events?after=${seq}`)).body.items).toEqual([]);
    const found: number[] = [];
    for (let cursor: string | null = "0"; cursor !== null;) {
      const { body } = await api.get(`/v1/executions/${id}/events?limit=2&cursor=${cursor}`);
      found.push(...body.items.map((event: { seq: number }) => event.seq));
      cursor = body.next_cursor as string | null;
    }
    expect(found).toEqual(Array.from({ length: seq }, (_, i) => i + 1));
    for (const query of ["after=x", "after=-1", "after=1.5", "limit=0", "from=1"]) {
      expect((await api.get(`/v1/executions/${id}/events?${query}`)).body.code).toBe("INVALID_QUERY");
    }
    expect((await api.get(`/v1/executions/${id}/events?cursor=x`)).body.code).toBe("INVALID_CURSOR");
  });
});

describe("the stream", () => {
  test("tells what happens while it happens, then ends; a client that comes again is told that it is over", async () => {
    const id = await api.run(one("gate", "live"));
    const following = await stream(id);
    expect(following.status).toBe(200);
    expect(following.headers.get("content-type")).toContain("text/event-stream");
    const seen: Frame[] = [];
    for await (const frame of following.frames) {
      seen.push(frame);
      if (frame.event === "task_dispatched") held.open("live", { done: 1 });
    }
    const types = seen.map(({ event }) => event);
    expect(types.slice(0, 3)).toEqual(["accepted", "started", "task_dispatched"]);
    expect(types.slice(-2)).toEqual(["execution_ended", "end"]);
    const ids = seen.slice(0, -1).map((frame) => Number(frame.id));
    expect(ids).toEqual(ids.map((_, i) => i + 1));
    expect(JSON.parse(seen[0]!.data!)).toMatchObject({ seq: 1, type: "accepted", at: expect.any(String) });
    const last = String(ids.at(-1));
    expect((await stream(id, { "last-event-id": last })).status).toBe(204);
    expect((await stream(id, { "last-event-id": String(Number(last) + 5) })).status).toBe(204);
  });

  test.each([
    ["TEXT/Event-Stream; q=0.5", "text/event-stream"],
    ["application/json, text/event-stream", "text/event-stream"],
    ["application/json, text/event-stream;q=0", "application/json"],
    ["text/event-streams", "application/json"],
  ])("is for who accepts it: %s", async (accept, type) => {
    const id = await api.run(one("step"));
    await api.ended(id);
    const answer = await stream(id, { accept });
    expect(answer.headers.get("content-type")).toContain(type);
    if (type === "text/event-stream") await answer.all();
  });

  test("goes on from the last event that was seen", async () => {
    const id = await api.run(one("step"));
    const { seq } = await api.ended(id);
    const rest = await (await stream(id, { "last-event-id": "2" })).all();
    expect(rest.map(({ id: place }) => place)).toEqual([
      ...Array.from({ length: seq - 2 }, (_, i) => String(i + 3)),
      String(seq),
    ]);
    expect(rest.at(-1)!.event).toBe("end");
    expect((await stream(id, { "last-event-id": "x" })).status).toBe(400);
    expect((await (await stream(id, { "last-event-id": "" })).all()).length).toBe(seq + 1);
    const misplaced = await openStream(`${api.url}/v1/executions/${id}/events?cursor=x`);
    expect([misplaced.status, await misplaced.text()]).toEqual([400, expect.stringContaining("INVALID_CURSOR")]);
    expect((await stream("nobody")).status).toBe(404);
  });

  test("who has seen more than there is, as a store may have lost it, is told what comes next", async () => {
    const id = await api.run(one("gate", "behind"));
    const { seq } = (await api.get(`/v1/executions/${id}`)).body;
    const following = await stream(id, { "last-event-id": String(seq + 1_000) });
    held.open("behind", { done: 1 });
    const rest = await following.all();
    expect(rest.map(({ event }) => event)).toEqual(
      expect.arrayContaining(["task_completed", "execution_ended", "end"]),
    );
    expect(Number(rest.at(-1)!.id)).toBe((await api.get(`/v1/executions/${id}`)).body.seq);
  });

  test("a new generation opens it again", async () => {
    const id = await api.run(one("fail"));
    await api.ended(id);
    const first = await (await stream(id)).all();
    const end = first.at(-1)!.id!;
    expect((await stream(id, { "last-event-id": end })).status).toBe(204);
    await api.post(`/v1/executions/${id}/retry`);
    const second = await (await stream(id, { "last-event-id": end })).all();
    expect(second.map(({ event }) => event)).toContain("generation_opened");
    expect(second.at(-1)!.event).toBe("end");
  });

  test("many follow one execution, and each gets everything", async () => {
    const nodes = Array.from({ length: 30 }, (_, i) => ({
      id: `n${i}`,
      handler: "step",
      dependencies: i === 0 ? [] : [`n${i - 1}`],
    }));
    const { body } = await api.post("/v1/workflow", { name: "followed", nodes });
    const id = body.execution_id as string;
    const followers = await Promise.all(Array.from({ length: 20 }, () => stream(id)));
    await api.post(`/v1/workflow/trigger/${id}`);
    const all = await Promise.all(followers.map((follower) => follower.all()));
    const { seq } = await api.ended(id);
    for (const frames of all) {
      expect(frames.slice(0, -1).map((frame) => Number(frame.id))).toEqual(
        Array.from({ length: seq }, (_, i) => i + 1),
      );
    }
  });

  test("a client that goes is forgotten", async () => {
    const id = await api.run(one("gate", "left"));
    const following = await stream(id);
    await following.frames.next();
    expect(await streams()).toBe("1");
    following.close();
    await api.eventually(async () => (await streams()) === "0");
    await api.post(`/v1/executions/${id}/cancel`);
  });

  test("a client that does not read is cut off, and nobody else notices", async () => {
    const nodes = [
      { id: "wait", handler: "gate" },
      ...Array.from({ length: 300 }, (_, i) => ({
        id: `b${i}`,
        handler: "big",
        dependencies: [i === 0 ? "wait" : `b${i - 1}`],
      })),
    ];
    const id = await api.run({ name: "slow", nodes });
    const { hostname, port } = new URL(api.url);
    const socket = connect(Number(port), hostname);
    socket.on("error", () => {});
    socket.write(`GET /v1/executions/${id}/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`);
    await new Promise((resolve) => socket.once("data", resolve));
    socket.pause();
    expect(await streams()).toBe("1");
    held.open("wait");
    await api.ended(id);
    // 18 MB do not fit into what the system keeps for a socket, and nobody has taken them.
    await api.eventually(async () => (await streams()) === "0");
    socket.destroy();
    expect((await (await stream(id)).all()).at(-1)!.event).toBe("end");
  });
});

test("a stop ends streams at once, and what they missed is there for the next process", async () => {
  const other = await TestApi.start({ handlers: { gate: held.handler } });
  const id = await other.run(one("gate", "stopped"));
  const following = await openStream(`${other.url}/v1/executions/${id}/events`);
  const frames = following.all();
  await nodeHost.sleep(50);
  await other.close();
  expect((await frames).map(({ event }) => event)).not.toContain("end");
});
