import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export type Mood = "well" | "failing" | "silent" | "limiting";

/** One request, and how it was answered. */
export interface Asked {
  readonly atMs: number;
  readonly mood: Mood;
  /** How many others were being answered when it came. */
  readonly others: number;
}

/** A server that speaks OpenAI's format, and is well, failing, silent or wants to be left alone, as it is told. */
export class TroubledLlm {
  readonly asked: Asked[] = [];
  mood: Mood = "well";
  readonly #server = createServer((incoming, response) => {
    this.#answer(incoming, response).catch(() => response.destroy());
  });
  #open = 0;
  readonly #latencyMs: number;
  readonly #retryAfterSeconds: number;

  private constructor(latencyMs: number, retryAfterSeconds: number) {
    this.#latencyMs = latencyMs;
    this.#retryAfterSeconds = retryAfterSeconds;
  }

  static async start(latencyMs: number, retryAfterSeconds: number): Promise<TroubledLlm> {
    const llm = new TroubledLlm(latencyMs, retryAfterSeconds);
    llm.#server.listen(0, "127.0.0.1");
    await once(llm.#server, "listening");
    return llm;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { mood } = this;
    this.asked.push({ atMs: performance.now(), mood, others: this.#open });
    this.#open++;
    response.on("close", () => this.#open--);
    incoming.resume();
    // Whoever asked gives up, and closes the connection.
    if (mood === "silent") return;
    await sleep(this.#latencyMs);
    if (mood === "well") return send(response, 200, ANSWER);
    const isLimiting = mood === "limiting";
    const headers = isLimiting ? { "retry-after": String(this.#retryAfterSeconds) } : {};
    send(response, isLimiting ? 429 : 500, { error: { message: mood } }, headers);
  }
}

const ANSWER = {
  object: "chat.completion",
  model: "trial",
  choices: [{ index: 0, message: { role: "assistant", content: "yes" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 },
};

function send(response: ServerResponse, status: number, body: object, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
}
