import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import { ApiError, type ApiProblem, isSilence, ServerUnreachable } from "./api-error.ts";
import { ANSWER_MS, type Answered, Connections } from "./connections.ts";

export interface ClientOptions {
  /** Where the server is. */
  readonly url: string;
  readonly token: string | undefined;
  readonly host: Host;
  /** How long a request is tried again while the server is busy, starting or on its way to another machine. */
  readonly patienceMs: number;
  /** How long the server may say nothing while it owes an answer; 12 s by default. */
  readonly answerMs?: number;
}

export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** With its query. */
  readonly path: string;
  readonly body?: Json;
  /** Idempotency-Key: a POST without one is sent once. */
  readonly key?: string;
  readonly signal?: AbortSignal;
  /** Until the answer begins, besides the time that the body takes to get there. By default that of the client. */
  readonly answerMs?: number;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;
/** An answer that says "not now", from the server or from something in front of it. */
const BUSY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Speaks to a server: tries again what can be tried again, and turns its no into errors. */
export class HttpClient {
  readonly url: string;
  readonly #token: string | undefined;
  readonly #host: Host;
  readonly #patienceMs: number;
  readonly #answerMs: number;
  readonly #connections = new Connections();

  constructor({ url, token, host, patienceMs, answerMs = ANSWER_MS }: ClientOptions) {
    if (!/^https?:\/\/./.test(url)) throw new TypeError(`The url must begin with http:// or https://, not ${url}`);
    this.url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#host = host;
    this.#patienceMs = patienceMs;
    this.#answerMs = answerMs;
  }

  async json<Answer>(request: HttpRequest): Promise<Answer> {
    const text = await this.#patiently(request);
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }

  /** One try, for a stream that its reader takes up again itself, and whose silences are the reader's. */
  async stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    const { response } = await this.#fetch({ method: "GET", path, signal }, headers, 0);
    return response;
  }

  /** Nothing is asked any more. */
  close(): Promise<void> {
    return this.#connections.close();
  }

  /** What a response that is not ok says. */
  async refusal(response: Response): Promise<ApiError> {
    let problem: ApiProblem = {};
    try {
      problem = JSON.parse(await response.text()) as ApiProblem;
    } catch {
      // Something in between has answered; its status is all there is.
    }
    return new ApiError(response.status, problem);
  }

  async #patiently(request: HttpRequest): Promise<string> {
    const untilMs = this.#host.monotonicMs() + this.#patienceMs;
    const isRepeatable = request.method === "GET" || request.key !== undefined;
    let wasSilent = false;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      // A signal may be aborted with any reason, and no text of its is an answer.
      const failed = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));
      const outcome = await this.#exchange(request).catch(failed);
      if (typeof outcome === "string") return outcome;
      request.signal?.throwIfAborted();
      const isBusy = outcome instanceof Error || BUSY.has(outcome.status);
      const waitMs = Math.max(pauseMs, outcome instanceof Error ? 0 : retryAfterMs(outcome));
      // A connection that has died without a word says nothing of the server, and has used up all patience: once more.
      const isSpared: boolean = !wasSilent && outcome instanceof ServerUnreachable && isSilence(outcome.cause);
      const isLate = this.#host.monotonicMs() + waitMs > untilMs && !isSpared;
      if (!isRepeatable || !isBusy || isLate) {
        throw outcome instanceof Error ? outcome : await this.refusal(outcome);
      }
      wasSilent ||= isSpared;
      if (!(outcome instanceof Error)) await outcome.body?.cancel();
      await this.#host.sleep(waitMs * (1 + this.#host.random() / 4), request.signal);
    }
  }

  /** What the server answers, or how it refuses. */
  async #exchange(request: HttpRequest): Promise<string | Response> {
    const { response, text } = await this.#fetch(request, {}, this.#answerMs);
    if (!response.ok) return response;
    try {
      return await text();
    } catch (error) {
      throw this.#failure(error, request.signal);
    }
  }

  /** `pauseMs` is how long an answer that has begun may pause; 0 = for ever. */
  async #fetch(request: HttpRequest, more: Readonly<Record<string, string>>, pauseMs: number): Promise<Answered> {
    const { method, path, key, signal, answerMs = this.#answerMs } = request;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    const headers: Record<string, string> = {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(key !== undefined && { "idempotency-key": key }),
      ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
      ...more,
    };
    const init = { method, headers, ...(body !== undefined && { body }), ...(signal !== undefined && { signal }) };
    try {
      return await this.#connections.fetch(this.url + path, init, { answerMs, pauseMs });
    } catch (error) {
      throw this.#failure(error, signal);
    }
  }

  #failure(error: unknown, signal: AbortSignal | undefined): unknown {
    return signal?.aborted === true ? signal.reason : new ServerUnreachable(this.url, error);
  }
}

function retryAfterMs(response: Response): number {
  const seconds = Number(response.headers.get("retry-after"));
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1_000 : 0;
}

/** A name as one step of a path. */
export function step(name: string): string {
  return encodeURIComponent(name);
}
