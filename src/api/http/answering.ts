import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { MillraceError } from "../../errors/millrace-error.ts";
import { KEEP_ALIVE_MS, MAX_BODY_BYTES, MAX_STALL_MS, MAX_STREAMS, MAX_UNREAD_BYTES } from "../limits.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Caller } from "../service/caller.ts";
import { Refusal } from "../service/refusal.ts";
import type { Service } from "../service/service.ts";
import type { Soon } from "../service/soon.ts";
import type { Admission, Admitted } from "./admission.ts";
import { checkBody, checkQuery, refuseCredentials } from "./check.ts";
import { formatOf, readJsonBody } from "./read-body.ts";
import { headerOf, RequestCall, RequestKnock } from "./request-call.ts";
import type { EventSink, Reply, Route } from "./route.ts";
import { emptyBody, noQuery } from "./schemas.ts";
import { UsedKeys } from "./used-keys.ts";

const NOTHING = new Uint8Array();
const HEADERS: Readonly<Record<string, string>> = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...HEADERS,
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
  "referrer-policy": "no-referrer",
};

/** From a request to a reply: who asks, what is asked, and how it is written down. */
export class Answering {
  readonly admission: Admission;
  readonly #parts: { readonly service: Service; readonly admission: Admission };
  readonly #metrics: Metrics;
  readonly #streams = new Set<AbortController>();
  readonly #usedKeys = new UsedKeys();

  constructor(service: Service, admission: Admission, metrics: Metrics) {
    this.#parts = { service, admission };
    this.admission = admission;
    this.#metrics = metrics;
  }

  /** Before the body is read. `url` is the address of the route as it is counted. */
  admit(route: Route, url: string, request: FastifyRequest, reply: FastifyReply, go: (error?: Error) => void): void {
    request.arrival = { url, atMs: performance.now() };
    let entered: Soon<void>;
    try {
      // Before the key itself: whoever puts it there has none where it belongs.
      if (hasQuery(route)) refuseCredentials(request.query as Record<string, unknown>);
      const admitted = this.admission.admit(route, new RequestKnock(request));
      entered =
        admitted instanceof Promise
          ? admitted.then((known) => this.#enter(known, route, request, reply))
          : this.#enter(admitted, route, request, reply);
    } catch (error) {
      this.#refuse(route, request, reply, error as Error, go);
      return;
    }
    // Not a promise for what is known, nor a function that nobody calls: this is on the way of every request.
    if (entered === undefined) go();
    else
      void entered.then(
        () => go(),
        (error: unknown) => this.#refuse(route, request, reply, error as Error, go),
      );
  }

  #enter(admitted: Admitted, route: Route, request: FastifyRequest, reply: FastifyReply): Soon<void> {
    request.admitted = admitted;
    return this.#reserve(route, request, reply);
  }

  #refuse(route: Route, request: FastifyRequest, reply: FastifyReply, error: Error, go: (error: Error) => void): void {
    // Whoever looks at a page has no way to send a key along.
    const isPage = route.tag === PAGES && route.permission !== "open";
    if (!isPage || !(error instanceof MillraceError) || error.code !== "UNAUTHENTICATED") {
      go(error);
      return;
    }
    const location = `/login?next=${encodeURIComponent(request.url)}`;
    this.measure(request, 303);
    void reply
      .code(303)
      .headers({ ...HEADERS, location })
      .send();
  }

  /** Room for its body, if it has one. */
  #reserve(route: Route, request: FastifyRequest, reply: FastifyReply): Soon<void> {
    const { "content-length": length, "transfer-encoding": encoding } = request.headers;
    if (length === undefined && encoding === undefined) return undefined;
    if (encoding !== undefined && encoding.toLowerCase() !== "chunked") return refuseEncoding(encoding);
    const limitBytes = route.body?.limitBytes ?? MAX_BODY_BYTES;
    if (Number(length ?? 0) > limitBytes) throw tooLarge(limitBytes);
    // Not once: an answer closes once, and every request would pay for the guard.
    reply.raw.on("close", this.admission.reserve(length, encoding !== undefined, limitBytes));
    return undefined;
  }

  async answer(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { caller } = request.admitted!;
    const given = request.body instanceof Uint8Array ? request.body : NOTHING;
    const isDefinition = route.body?.isDefinition === true;
    const format =
      given.length === 0 || route.body?.isForm === true
        ? "json"
        : formatOf(headerOf(request, "content-type"), headerOf(request, "content-encoding"), isDefinition);
    if (route.body === undefined && given.length > 0) checkBody(emptyBody, readJsonBody(given));
    const body =
      route.body === undefined || isDefinition
        ? undefined
        : checkBody(
            route.body.schema,
            route.body.isForm === true ? readForm(given) : readJsonBody(given, route.body.maxDepth),
          );
    const source = { source: given.length === 0 ? EMPTY : given, format };
    const call = new RequestCall(this.#parts, request, reply, { query: queryOf(route, request), body, source });
    const use =
      route.isRepeatable === true && caller.key !== undefined
        ? this.#usedKeys.use(`${caller.tenant} ${request.method} ${request.url}`, caller.key, given)
        : undefined;
    const answer = await route.handle(call);
    use?.remember();
    return this.#send(answer, caller, request, reply);
  }

  #send(answer: Reply, caller: Caller, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    if (caller.trace !== "") void reply.header("traceparent", caller.trace);
    if ("stream" in answer) {
      if (this.#streams.size >= MAX_STREAMS) throw tooManyStreams();
      reply.hijack();
      // Whoever asked may be gone already.
      if (reply.raw.destroyed) this.measure(request, answer.status);
      else reply.raw.once("close", () => this.measure(request, answer.status));
      void this.#stream(answer.stream, reply.raw);
      return reply;
    }
    // Counted when it is written: one that cannot be is answered, and counted, as an error.
    const written = this.#write(answer, reply);
    this.measure(request, answer.status);
    return written;
  }

  #write(answer: Exclude<Reply, { readonly stream: unknown }>, reply: FastifyReply): FastifyReply {
    void reply.code(answer.status);
    if ("location" in answer) {
      const { location, cookie } = answer;
      return reply.headers({ ...HEADERS, location, ...(cookie !== undefined && { "set-cookie": cookie }) }).send();
    }
    if ("json" in answer) return reply.headers(HEADERS).type(JSON_TYPE).send(JSON.stringify(answer.json));
    if (!("text" in answer)) return reply.headers(HEADERS).send();
    const { type = JSON_TYPE, text } = answer;
    return reply
      .headers(type.startsWith("text/html") ? PAGE_HEADERS : HEADERS)
      .type(type)
      .send(text);
  }

  /**
   * Counts an answer when it is given to the socket, a stream when it has ended. Not by a hook of Fastify behind the answer:
   * two listeners for each request, put there and taken away, to learn how long the socket took.
   */
  measure(request: FastifyRequest, status: number): void {
    const { method, arrival } = request;
    if (arrival === undefined) {
      this.#metrics.answeredNobody(status);
      return;
    }
    const { url: route, atMs } = arrival;
    this.#metrics.answered(method, route, status, (performance.now() - atMs) / 1000);
  }

  /** Clients come again, to another process or later, with the number of the last event they saw. */
  endStreams(): void {
    for (const stream of this.#streams) stream.abort();
  }

  /** Never rejects: the answer has begun, so there is nobody left to tell. */
  async #stream(run: (out: EventSink) => Promise<void>, raw: ServerResponse): Promise<void> {
    const closing = new AbortController();
    this.#streams.add(closing);
    this.#metrics.streams.set(this.#streams.size);
    raw.once("close", () => closing.abort());
    closing.signal.addEventListener("abort", () => raw.end(), { once: true });
    const keepAlive = setInterval(() => raw.write(": here\n\n"), KEEP_ALIVE_MS);
    try {
      raw.writeHead(200, {
        ...HEADERS,
        "content-type": "text/event-stream; charset=utf-8",
        "x-accel-buffering": "no",
        connection: "close",
      });
      raw.write("retry: 1000\n\n");
      await run({ closed: closing.signal, send: (frame, isBacklog) => sendFrame(raw, closing, frame, isBacklog) });
      raw.end();
    } catch {
      // Whoever comes again is told what is wrong.
      raw.destroy();
    } finally {
      clearInterval(keepAlive);
      closing.abort();
      this.#streams.delete(closing);
      this.#metrics.streams.set(this.#streams.size);
    }
  }
}

/** The tag of what is made for people. */
export const PAGES = "Pages";
const EMPTY = Buffer.from("{}");
const JSON_TYPE = "application/json; charset=utf-8";

/** A backlog waits for the client, within reason; what happens now does not, and cuts off who does not keep up. */
async function sendFrame(
  raw: ServerResponse,
  closing: AbortController,
  frame: string,
  isBacklog: boolean,
): Promise<boolean> {
  if (closing.signal.aborted) return false;
  const isTaken = raw.write(frame);
  if (raw.writableLength > MAX_UNREAD_BYTES) {
    raw.destroy();
    return false;
  }
  if (isTaken || !isBacklog) return true;
  const stalled = setTimeout(() => raw.destroy(), MAX_STALL_MS);
  try {
    await once(raw, "drain", { signal: closing.signal });
    return true;
  } catch {
    return false;
  } finally {
    clearTimeout(stalled);
  }
}

function queryOf(route: Route, request: FastifyRequest): unknown {
  const query = request.query as Record<string, unknown>;
  return hasQuery(route) ? checkQuery(route.query ?? noQuery, query) : {};
}

/** Probes and pages may be asked with whatever somebody appends; everything else says what it understands. */
function hasQuery(route: Route): boolean {
  return route.query !== undefined || route.path.startsWith("/v1/");
}

/** Fields that come twice count once. */
function readForm(bytes: Uint8Array): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(Buffer.from(bytes).toString("utf8")));
}

/** Later than the parser, which may find that nobody can tell where such a body ends: it has the first word then. */
function refuseEncoding(encoding: string): Promise<never> {
  const reason = `The transfer encoding ${JSON.stringify(encoding.slice(0, 80))} is not supported`;
  return Promise.reject(new MillraceError("UNSUPPORTED_MEDIA_TYPE", { reason }));
}

function tooLarge(limitBytes: number): MillraceError {
  return new MillraceError("PAYLOAD_TOO_LARGE", { what: "The body", limitBytes });
}

function tooManyStreams(): Refusal {
  return new Refusal("RATE_LIMITED", { reason: "Too many event streams are open" }, { retryAfterSeconds: 5 });
}
