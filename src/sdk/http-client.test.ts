import { execFile } from "node:child_process";
import type { ServerResponse } from "node:http";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { answering, line } from "../../test/support/lines.ts";
import { nodeHost } from "../host/node-host.ts";
import { ServerUnreachable } from "./api-error.ts";
import { HttpClient } from "./http-client.ts";

function clientOf(url: string, answerMs: number): HttpClient {
  return new HttpClient({ url, token: undefined, host: nodeHost, patienceMs: 0, answerMs });
}

test("what a dead connection swallows goes over a new one, though others that have died with it are idle", async () => {
  const keys: unknown[] = [];
  const held: ServerResponse[] = [];
  const port = await answering((request, response) => {
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
  const port = await answering((_, response) => response.end("1"));
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
  const port = await answering((_, response) => {
    response.write("[1,");
    if (++count > 1) response.end("2]");
  });
  expect(await clientOf(`http://127.0.0.1:${port}`, 2_000).json({ method: "GET", path: "/" })).toEqual([1, 2]);
  expect(count).toBe(2);
});

test("a server that goes on saying nothing is given up", async () => {
  let count = 0;
  const port = await answering(() => count++);
  const answer = clientOf(`http://127.0.0.1:${port}`, 1_000).json({ method: "GET", path: "/" });
  await expect(answer).rejects.toThrow("it does not answer");
  expect(count).toBe(2);
});

test("an answer may take longer than a silence, as long as it goes on", async () => {
  let count = 0;
  const port = await answering(async (_, response) => {
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

test("a process ends though its client is not closed", async () => {
  const port = await answering((_, response) => {
    response.setHeader("keep-alive", "timeout=600");
    response.end("1");
  });
  const module = (name: string): string => JSON.stringify(new URL(name, import.meta.url).href);
  const script = `
    import { nodeHost } from ${module("../host/node-host.ts")};
    import { HttpClient } from ${module("http-client.ts")};
    const client = new HttpClient({ url: "http://127.0.0.1:${port}", token: undefined, host: nodeHost, patienceMs: 0 });
    console.log(await client.json({ method: "GET", path: "/" }));`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], {
    timeout: 20_000,
  });
  expect(stdout).toBe("1\n");
});
