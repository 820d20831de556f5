import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { answering, line } from "../../test/support/lines.ts";
import { nodeHost } from "../host/node-host.ts";
import { EXIT } from "./exit-code.ts";
import { Server } from "./server.ts";

test("what a dead connection swallows is sent again with its key, over a new one", async () => {
  const keys: unknown[] = [];
  const port = await answering((request, response) => {
    keys.push(request.headers["idempotency-key"]);
    response.end("{}");
  });
  const through = await line(port);
  const server = new Server(through.url, undefined, 5_000);
  await server.get("/");
  // Until it is idle.
  await nodeHost.sleep(500);
  through.die();
  await server.post("/", { key: "k" });
  expect(keys).toEqual([undefined, "k"]);
  expect(through.swallowed.size).toBe(1);
});

test("a server that says nothing is given up after a second try, and what removes after one", async () => {
  let count = 0;
  const port = await answering((request, response) => {
    count++;
    // Once in the middle of an answer.
    if (request.method === "GET") response.write("{");
  });
  const server = new Server(`http://127.0.0.1:${port}`, undefined, 1_000);
  const silent = { exit: EXIT.unreachable, message: `cannot reach ${server.url}: it does not answer.` };
  await expect(server.get("/")).rejects.toMatchObject(silent);
  expect(count).toBe(2);
  await expect(server.delete("/")).rejects.toMatchObject(silent);
  expect(count).toBe(3);
});

test("what takes long by its nature, and a quiet stream, are waited for", async () => {
  const port = await answering(async (request, response: ServerResponse) => {
    if (request.method === "GET") response.write("retry: 1000\n\n");
    await nodeHost.sleep(2_500);
    response.end(request.method === "GET" ? "event: end\ndata: {}\n\n" : '{"count":1}');
  });
  const server = new Server(`http://127.0.0.1:${port}`, undefined, 1_000);
  const seen: unknown[] = [];
  const follow = async (): Promise<void> => {
    for await (const event of server.events("e", 0, new AbortController().signal)) seen.push(event);
  };
  expect(await Promise.all([server.post("/", { isLong: true }), follow()])).toEqual([{ count: 1 }, undefined]);
  expect(seen).toEqual([]);
});

test("a stream that breaks time and again without an event is taken up as long as something comes over it", async () => {
  let count = 0;
  const port = await answering(async (_, response) => {
    response.write(": here\n\n");
    await nodeHost.sleep(20);
    if (++count < 7) response.destroy();
    else response.end("event: end\ndata: {}\n\n");
  });
  const server = new Server(`http://127.0.0.1:${port}`, undefined);
  for await (const _ of server.events("e", 0, new AbortController().signal)) expect.unreachable();
  expect(count).toBe(7);
});
