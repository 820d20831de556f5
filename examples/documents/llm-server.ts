import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { LlmRequest } from "../../src/handlers/llm-client.ts";
import { LlmFixtures } from "../../src/handlers/llm-fixtures.ts";

/** What the server does instead of answering. */
export type Trouble =
  | { readonly kind: "status"; readonly status: number; readonly retryAfter?: string }
  /** It never answers. */
  | { readonly kind: "silence" };

export interface LlmServerOptions {
  readonly latencyMs?: number;
  /** Called with the number of each request, from 1. */
  readonly trouble?: (request: number) => Trouble | undefined;
}

export interface LlmServer {
  readonly url: string;
  /** When each request came, by the clock of this process. */
  readonly requestedAtMs: readonly number[];
  close(): void;
}

/** What `GET /v1/calls` answers. */
export interface LlmCalls {
  readonly calls: number;
  readonly most_in_a_second: number;
}

/** A server that speaks OpenAI's format and answers from the fixtures of this example. For trials and tests. */
export async function startLlmServer({ latencyMs = 0, trouble }: LlmServerOptions = {}): Promise<LlmServer> {
  const fixtures = new LlmFixtures(JSON.parse(readFileSync(join(import.meta.dirname, "fixtures.json"), "utf8")));
  const requestedAtMs: number[] = [];
  const answer = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (incoming.method === "GET") {
      send(response, 200, { calls: requestedAtMs.length, most_in_a_second: mostInASecond(requestedAtMs) });
      return;
    }
    requestedAtMs.push(performance.now());
    const wrong = trouble?.(requestedAtMs.length);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    if (wrong?.kind === "silence") return;
    if (wrong?.kind === "status") {
      const headers = wrong.retryAfter === undefined ? {} : { "retry-after": wrong.retryAfter };
      send(response, wrong.status, { error: { message: `trouble ${wrong.status}` } }, headers);
      return;
    }
    if (latencyMs > 0) await new Promise((resolve) => setTimeout(resolve, latencyMs));
    const request = JSON.parse(Buffer.concat(chunks).toString()) as LlmRequest;
    const { text, usage } = await fixtures.complete(request, { addUsage: () => {} });
    const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
    send(response, 200, { object: "chat.completion", model: "fixtures", choices, usage });
  };
  const server = createServer((incoming, response) => {
    answer(incoming, response).catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requestedAtMs,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function mostInASecond(sortedMs: readonly number[]): number {
  let from = 0;
  let most = 0;
  for (const [to, atMs] of sortedMs.entries()) {
    while (atMs - sortedMs[from]! >= 1_000) from++;
    most = Math.max(most, to - from + 1);
  }
  return most;
}

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({ options: { latency: { type: "string", default: "0" } } });
  const { url } = await startLlmServer({ latencyMs: Number(values.latency) });
  process.stdout.write(`${url}\n`);
  // Whoever started it has gone.
  process.stdin.on("end", () => process.exit()).resume();
}
