import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import { ApiError, type ApiProblem, ServerUnreachable } from "./api-error.ts";

export interface ClientOptions {
  /** Where the server is. */
  readonly url: string;
  readonly token: string | undefined;
  readonly host: Host;
  /** How long a request is tried again while the server is busy, starting or on its way to another machine. */
  readonly patienceMs: number;
}

export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** With its query. */
  readonly path: string;
  readonly body?: Json;
  /** Idempotency-Key: a POST without one is sent once. */
  readonly key?: string;
  readonly signal?: AbortSignal;
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

  constructor({ url, token, host, patienceMs }: ClientOptions) {
    if (!/^https?:\/\/./.test(url)) throw new TypeError(`The url must begin with http:// or https://, not ${url}`);
    this.url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#host = host;
    this.#patienceMs = patienceMs;
  }

  async json<Answer>(request: HttpRequest): Promise<Answer> {
    const response = await this.#patiently(request);
    const text = await response.text();
    return (text === "" ? undefined : JSON.parse(text)) as Answer;
  }

  /** One try, for a stream that its reader takes up again itself. */
  stream(path: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Response> {
    return this.#fetch({ method: "GET", path, signal }, headers);
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

  async #patiently(request: HttpRequest): Promise<Response> {
    const untilMs = this.#host.monotonicMs() + this.#patienceMs;
    const isRepeatable = request.method === "GET" || request.key !== undefined;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
      const outcome = await this.#fetch(request, {}).catch((error: unknown) => error as Error);
      if (outcome instanceof Response && outcome.ok) return outcome;
      request.signal?.throwIfAborted();
      const isBusy = !(outcome instanceof Response) || BUSY.has(outcome.status);
      const waitMs = Math.max(pauseMs, outcome instanceof Response ? retryAfterMs(outcome) : 0);
      if (!isRepeatable || !isBusy || this.#host.monotonicMs() + waitMs > untilMs) {
        throw outcome instanceof Response ? await this.refusal(outcome) : outcome;
      }
      if (outcome instanceof Response) await outcome.body?.cancel();
      await this.#host.sleep(waitMs * (1 + this.#host.random() / 4), request.signal);
    }
  }

  async #fetch(request: HttpRequest, more: Readonly<Record<string, string>>): Promise<Response> {
    const { method, path, body, key, signal } = request;
    const headers: Record<string, string> = {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(key !== undefined && { "idempotency-key": key }),
      ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
      ...more,
    };
    try {
      return await fetch(this.url + path, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal !== undefined && { signal }),
      });
    } catch (error) {
      signal?.throwIfAborted();
      throw new ServerUnreachable(this.url, error);
    }
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
