import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import { ServerUnreachable } from "./api-error.ts";
import { HttpClient } from "./http-client.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

async function serve(answer: (request: IncomingMessage, response: ServerResponse) => unknown): Promise<number> {
  const server = createHttpServer((request, response) => {
    request.resume();
    request.once("end", () => void answer(request, response));
  });
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return portOf(server);
}

/** A line to a server. From `die` on, what is open carries nothing any more and nobody is told; what is new works. */
async function line(target: number) {
  const open = new Set<Socket>();
  const dead = new Set<Socket>();
  /** Dead connections over which something was sent. */
  const swallowed = new Set<Socket>();
  const proxy = createServer((near) => {
    const far = connect(target, "127.0.0.1");
    open.add(near);
    near.on("data", (bytes) => (dead.has(near) ? swallowed.add(near) : far.write(bytes)));
    far.on("data", (bytes) => void (dead.has(near) || near.write(bytes)));
    for (const side of [near, far]) side.on("error", () => undefined);
    near.on("close", () => far.destroy());
    far.on("close", () => void (dead.has(near) || near.destroy()));
  });
  const port = await portOf(proxy);
  closing.push(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });
  const die = (): void => {
    for (const socket of open) dead.add(socket);
  };
  return { url: `http://127.0.0.1:${port}`, open, swallowed, die };
}

function clientOf(url: string, answerMs: number): HttpClient {
  return new HttpClient({ url, token: undefined, host: nodeHost, patienceMs: 0, answerMs });
}

test("what a dead connection swallows goes over a new one, though others that have died with it are idle", async () => {
  const keys: unknown[] = [];
  const held: ServerResponse[] = [];
  const port = await serve((request, response) => {
    if (request.url === "/together") {
      held.push(response);
      if (held.length === 3) for (const one of held) one.end("1");
    } else {
      keys.push(request.headers["idempotency-key"]);
      response.end("2");
    }
  });
  const through = await line(port);
  const client = clientOf(through.url, 2_000);
  await Promise.all([1, 2, 3].map(() => client.json({ method: "GET", path: "/together" })));
  // Until they are idle.
  await nodeHost.sleep(20);
  through.die();
  const post = (key: string): Promise<unknown> => client.json({ method: "POST", path: "/", body: {}, key });
  expect(await post("k")).toBe(2);
  expect(keys).toEqual(["k"]);
  expect(await Promise.all(["l", "m"].map(post))).toEqual([2, 2]);
  expect(through.swallowed.size).toBe(1);
});

test("a request that may not be repeated ends with a dead connection, and the next one goes over another", async () => {
  const port = await serve((_, response) => response.end("1"));
  const through = await line(port);
  const client = clientOf(through.url, 2_000);
  await client.json({ method: "GET", path: "/" });
  await nodeHost.sleep(20);
  through.die();
  const failure = await client
    .json({ method: "POST", path: "/", body: {}, answerMs: 100 })
    .catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(ServerUnreachable);
  expect((failure as Error).message).toMatch(/: it does not answer$/);
  expect(await client.json({ method: "POST", path: "/", body: {} })).toBe(1);
  expect(through.swallowed.size).toBe(1);
});

test("an answer that stops in the middle is asked for again", async () => {
  let count = 0;
  const port = await serve((_, response) => {
    response.write("[1,");
    if (++count > 1) response.end("2]");
  });
  expect(await clientOf(`http://127.0.0.1:${port}`, 2_000).json({ method: "GET", path: "/" })).toEqual([1, 2]);
  expect(count).toBe(2);
});

test("a server that goes on saying nothing is given up", async () => {
  let count = 0;
  const port = await serve(() => count++);
  const answer = clientOf(`http://127.0.0.1:${port}`, 1_000).json({ method: "GET", path: "/" });
  await expect(answer).rejects.toThrow("it does not answer");
  expect(count).toBe(2);
});

test("an answer may take longer than a silence, as long as it goes on", async () => {
  let count = 0;
  const port = await serve(async (_, response) => {
    count++;
    response.write("[0");
    for (let i = 1; i <= 35; i++) {
      await nodeHost.sleep(100);
      response.write(`,${i}`);
    }
    response.end("]");
  });
  expect(await clientOf(`http://127.0.0.1:${port}`, 3_000).json({ method: "GET", path: "/" })).toHaveLength(36);
  expect(count).toBe(1);
});
