import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { Json } from "../json/json.ts";
import type { HandlerCall } from "../worker/handler.ts";
import type { Usage } from "../worker/usage.ts";

export interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly requests: readonly SeenRequest[];
  /** How many connections were ever made. */
  readonly connections: () => number;
}

export type Respond = (request: SeenRequest, response: ServerResponse, incoming: IncomingMessage) => unknown;

/** A real HTTP server on this machine, gone with its test. */
export async function serve(respond: Respond, address = "127.0.0.1"): Promise<TestServer> {
  const requests: SeenRequest[] = [];
  let connections = 0;
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = "", url = "", headers } = incoming;
    const request = { method, url, headers, body: Buffer.concat(chunks).toString() };
    requests.push(request);
    await respond(request, response, incoming);
  };
  const server = createServer((incoming, response) => void answer(incoming, response));
  server.on("connection", () => connections++);
  server.listen(0, address);
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://${address}:${port}`, port, requests, connections: () => connections };
}

export function sendJson(response: ServerResponse, value: Json, status = 200, headers: object = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

export interface TestCall extends HandlerCall {
  readonly usage: Usage[];
  readonly concealed: string[];
  /** For how long the limit was closed, each time that it was. */
  readonly closed: number[];
}

/** A call of a handler as a worker makes it. */
export function testCall(config: Json, more: Partial<HandlerCall> = {}): TestCall {
  const usage: Usage[] = [];
  const concealed: string[] = [];
  const closed: number[] = [];
  return {
    executionId: "e1",
    nodeId: "a",
    attempt: 1,
    generation: 1,
    config,
    inputs: undefined,
    idempotencyKey: "e1/a/1",
    token: "t",
    timeoutMs: 30_000,
    signal: new AbortController().signal,
    addUsage: (used) => usage.push(used),
    closeLimit: (forMs) => closed.push(forMs),
    conceal: (text) => concealed.push(text),
    log: () => {},
    ...more,
    usage,
    concealed,
    closed,
  };
}
