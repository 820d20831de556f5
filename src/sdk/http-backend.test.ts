import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { answering, line } from "../../test/support/lines.ts";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import { ApiError, ServerUnreachable } from "./api-error.ts";
import { connect } from "./connect.ts";
import { HttpBackend } from "./http-backend.ts";
import type { HttpClient } from "./http-client.ts";
import { worker } from "./worker.ts";

const OPENED = "retry: 1000\n\n";
const COMMENT = ": here\n\n";
const END = "event: end\ndata: {}\n\n";
const event = (seq: number): string => `data: ${JSON.stringify({ seq, type: "t", at: "", data: {} })}\n\n`;

/** Pieces of a stream: text, or how long nothing comes. It breaks after the last. */
type Pieces = readonly (string | number)[];

/** A backend whose server has these streams, one after the other, and its clock. */
function backendOf(streams: readonly Pieces[]) {
  let nowMs = 0;
  const sleep = async (ms: number): Promise<void> => void (nowMs += ms);
  const host: Host = { ...nodeHost, monotonicMs: () => nowMs, sleep };
  const asked: (string | undefined)[] = [];
  const stream = async (_path: string, headers: Readonly<Record<string, string>>): Promise<Response> => {
    const pieces = [...(streams[asked.length] ?? streams.at(-1)!)];
    asked.push(headers["last-event-id"]);
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      // A stream that breaks loses what was not read of it.
      await setImmediate();
      while (typeof pieces[0] === "number") nowMs += pieces.shift() as number;
      const piece = pieces.shift();
      if (piece === undefined) controller.error(new TypeError("terminated"));
      else controller.enqueue(new TextEncoder().encode(String(piece)));
    };
    return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }));
  };
  const backend = new HttpBackend({ url: "http://x", stream } as unknown as HttpClient, host);
  return { backend, asked, clock: { now: () => nowMs, pass: (ms: number) => void (nowMs += ms) } };
}

async function seen(backend: HttpBackend): Promise<readonly number[]> {
  const found: number[] = [];
  for await (const { seq } of backend.events("e", 0, new AbortController().signal)) found.push(seq);
  return found;
}

test("a stream that was quiet but for its comments is taken up again when it breaks", async () => {
  const { backend, asked } = backendOf([
    [OPENED, event(1), 15_000, COMMENT, 3_600_000, COMMENT, 15_000],
    [OPENED, 70_000, COMMENT],
    [OPENED, event(2), END],
  ]);
  expect(await seen(backend)).toEqual([1, 2]);
  expect(asked).toEqual([undefined, "1", "1"]);
});

test("a stream whose reader takes long over an event is taken up again when it breaks", async () => {
  const { backend, clock } = backendOf([
    [OPENED, event(1)],
    [OPENED, event(2), END],
  ]);
  const found: number[] = [];
  for await (const { seq } of backend.events("e", 0, new AbortController().signal)) {
    found.push(seq);
    clock.pass(120_000);
  }
  expect(found).toEqual([1, 2]);
});

test("a stream over which nothing comes any more is given up after a minute", async () => {
  const { backend, clock } = backendOf([[OPENED, event(1)], [45_000]]);
  await expect(seen(backend)).rejects.toBeInstanceOf(ServerUnreachable);
  expect(clock.now()).toBeGreaterThan(60_000);
  expect(clock.now()).toBeLessThan(200_000);
});

test("a client that is closed closes its connections, as a worker does that is stopped", async () => {
  const port = await answering((_, response) => {
    response.setHeader("keep-alive", "timeout=600");
    response.end('{"status":"RUNNING","tasks":[],"cancelled":[]}');
  });
  const through = await line(port);
  const areOpen = (): boolean => [...through.open].some((socket) => !socket.destroyed);
  const client = connect({ url: through.url });
  expect(await client.get("e").status()).toBe("RUNNING");
  expect(areOpen()).toBe(true);
  await client.close();
  await expect.poll(areOpen).toBe(false);
  const working = worker({ url: through.url, handlers: { nothing: () => null } });
  await working.start();
  expect(areOpen()).toBe(true);
  await working.stop();
  await expect.poll(areOpen).toBe(false);
});

/** A server that takes definitions whose handlers are served, and others only if it lets itself be asked. */
function publishing(isServed: boolean, isStrict: boolean): { readonly backend: HttpBackend; readonly asked: string[] } {
  const asked: string[] = [];
  const unserved = { code: "INVALID_DEFINITION", errors: [{ code: "UNKNOWN_HANDLER", path: "/nodes/0", message: "" }] };
  const json = async ({ path }: { readonly path: string }): Promise<unknown> => {
    asked.push(path);
    const isAsking = path.includes("allow_missing_handlers");
    if (isAsking && isStrict) throw new ApiError(403, { code: "FORBIDDEN" });
    if (!isServed && !isAsking) throw new ApiError(422, unserved);
    return { workflow_definition_id: "hash" };
  };
  return { backend: new HttpBackend({ url: "http://x", json } as unknown as HttpClient, nodeHost), asked };
}

test.each([
  ["whose handlers are served, in production", true, true, "hash"],
  ["whose handlers nobody serves yet", false, false, "hash"],
  ["whose handlers nobody serves, in production", false, true, "INVALID_DEFINITION"],
])("a workflow %s", async (_, isServed, isStrict, expected) => {
  const { backend, asked } = publishing(isServed, isStrict);
  const published = backend.publish({}, "h").catch((error: unknown) => (error as ApiError).code);
  expect(await published).toBe(expected);
  expect(asked).toHaveLength(isServed ? 1 : 2);
});
