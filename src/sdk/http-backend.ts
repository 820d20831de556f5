import type { Host } from "../host/host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { ApiError, ServerUnreachable } from "./api-error.ts";
import type { Backend, Command, Decided, EventView, ExecutionView, NodeView, StartSettings } from "./backend.ts";
import { type HttpClient, step } from "./http-client.ts";
import { serverSentEvents } from "./server-sent-events.ts";

/** A stream that has been silent for longer is dead: the server says something every 15 s. */
const SILENCE_MS = 45_000;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
/** How long a stream that cannot be had is tried for. */
const PATIENCE_MS = 60_000;

/** A server, over HTTP. */
export class HttpBackend implements Backend {
  readonly #http: HttpClient;
  readonly #host: Host;
  readonly #closing = new AbortController();

  constructor(http: HttpClient, host: Host) {
    this.#http = http;
    this.#host = host;
  }

  /** Its worker may come later. A server in production takes only what somebody serves, and says so even of the question. */
  async publish(definition: JsonObject, hash: string): Promise<string> {
    const post = async (query: string): Promise<string> => {
      const path = `/v1/workflows${query}`;
      const answer = await this.#post<{ readonly workflow_definition_id: string }>(
        path,
        { definition },
        `publish-${hash}`,
      );
      return answer.workflow_definition_id;
    };
    try {
      return await post("");
    } catch (refused) {
      const isUnserved = refused instanceof ApiError && refused.errors.some(({ code }) => code === "UNKNOWN_HANDLER");
      if (!isUnserved) throw refused;
      return post("?allow_missing_handlers=true").catch((error: unknown) => {
        throw error instanceof ApiError && error.status === 403 ? refused : error;
      });
    }
  }

  start(
    name: string,
    { input, ...settings }: { readonly input: Json } & StartSettings,
    key: string,
  ): Promise<{ readonly execution_id: string }> {
    return this.#post(`/v1/workflows/${step(name)}/executions`, { input_params: input, ...settings }, key);
  }

  execution(id: string): Promise<ExecutionView> {
    return this.#get(`/v1/executions/${step(id)}`);
  }

  output(id: string): Promise<Json> {
    return this.#get(`/v1/executions/${step(id)}/output`);
  }

  node(id: string, node: string): Promise<NodeView> {
    return this.#get(`/v1/executions/${step(id)}/nodes/${step(node)}`);
  }

  async command(id: string, command: Command, body: JsonObject, key: string): Promise<void> {
    await this.#post(`/v1/executions/${step(id)}/${command}`, body, key);
  }

  async decide(review: string, decided: Decided, key: string): Promise<void> {
    await this.#post(`/v1/reviews/${step(review)}`, { ...decided }, key);
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error("The client is closed"));
    await this.#http.close();
  }

  async untilOver(id: string, after: number, signal: AbortSignal): Promise<void> {
    for await (const _ of this.events(id, after, signal)) if (signal.aborted) return;
  }

  /** A stream that breaks is taken up after the last event that was seen. */
  async *events(id: string, after: number, signal: AbortSignal): AsyncGenerator<EventView, void> {
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    let seen = after;
    // A stream may be quiet for days and its reader slow, so neither is counted: only what fails, until something comes.
    let failingSinceMs: number | undefined;
    const heard = (): void => void (failingSinceMs = undefined);
    for (let pauseMs = FIRST_PAUSE_MS; !stop.aborted; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      try {
        for await (const event of this.#stream(id, seen, stop, heard)) {
          if (event === "end") return;
          pauseMs = FIRST_PAUSE_MS;
          if (event.seq <= seen) continue;
          seen = event.seq;
          yield event;
        }
      } catch (error) {
        if (stop.aborted) return;
        const isNo = error instanceof ApiError && error.status < 500 && error.status !== 429;
        const nowMs = this.#host.monotonicMs();
        failingSinceMs ??= nowMs;
        if (isNo || nowMs - failingSinceMs > PATIENCE_MS) throw asUnreachable(error, this.#http.url);
      }
      await this.#host.sleep(pauseMs, stop);
    }
  }

  /** @param heard called with everything that comes, also what only keeps the stream alive */
  async *#stream(
    id: string,
    after: number,
    signal: AbortSignal,
    heard: () => void,
  ): AsyncGenerator<EventView | "end", void> {
    const silence = new AbortController();
    let timer = setTimeout(() => silence.abort(), SILENCE_MS);
    const note = (): void => {
      heard();
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    try {
      const headers = { accept: "text/event-stream", ...(after > 0 && { "last-event-id": String(after) }) };
      const path = `/v1/executions/${step(id)}/events`;
      const response = await this.#http.stream(path, headers, AbortSignal.any([signal, silence.signal]));
      if (response.status === 204) return void (yield "end");
      if (!response.ok) throw await this.#http.refusal(response);
      for await (const { event, data } of serverSentEvents(noting(response.body!, note))) {
        yield event === "end" ? "end" : (JSON.parse(data) as EventView);
      }
    } finally {
      clearTimeout(timer);
      silence.abort();
    }
  }

  #get<Answer>(path: string): Promise<Answer> {
    return this.#http.json({ method: "GET", path, signal: this.#closing.signal });
  }

  #post<Answer>(path: string, body: Json, key: string): Promise<Answer> {
    return this.#http.json({ method: "POST", path, body, key, signal: this.#closing.signal });
  }
}

/** The same stream; every piece of it is noted, also one that makes no event yet. */
function noting(stream: ReadableStream<Uint8Array>, heard: () => void): ReadableStream<Uint8Array> {
  const transform = (chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void => {
    heard();
    controller.enqueue(chunk);
  };
  return stream.pipeThrough(new TransformStream({ transform }));
}

function asUnreachable(error: unknown, url: string): unknown {
  return error instanceof ApiError || error instanceof ServerUnreachable ? error : new ServerUnreachable(url, error);
}
