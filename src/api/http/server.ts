import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { MillraceError } from "../../errors/millrace-error.ts";
import { DRAIN_MS, MAX_BODY_BYTES } from "../limits.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { DEFAULT_INGRESS, Ingress, type IngressLimit } from "../service/ingress.ts";
import type { Service } from "../service/service.ts";
import { Signing } from "../service/signing.ts";
import { Admission } from "./admission.ts";
import { Answering } from "./answering.ts";
import { clientError, endSocket } from "./client-error.ts";
import { docsPage } from "./docs-page.ts";
import { Keys } from "./keys.ts";
import { isLoopbackAddress } from "./loopback.ts";
import { openapi } from "./openapi.ts";
import { type ProblemAnswer, plainProblem, problemOf, PROBLEM_TYPE } from "./problem.ts";
import type { Route } from "./route.ts";
import { batchRoutes } from "./routes/batch-routes.ts";
import { executionRoutes } from "./routes/execution-routes.ts";
import { operationRoutes } from "./routes/operation-routes.ts";
import { submissionRoutes } from "./routes/submission-routes.ts";
import { systemRoutes } from "./routes/system-routes.ts";
import { taskRoutes } from "./routes/task-routes.ts";
import { Sessions } from "./sessions.ts";

export interface ServerOptions {
  readonly service: Service;
  readonly metrics: Metrics;
  /** Where it listens. Anything but this machine needs keys. */
  readonly host?: string;
  readonly port?: number;
  /** As in `MILLRACE_API_KEYS`: `role:key,…`. */
  readonly keys?: string;
  /** Beyond this machine only; null = none. */
  readonly ingress?: IngressLimit | null;
  readonly version?: string;
  /** Further routes, under the same rules for who may see them. */
  readonly pages?: readonly Route[];
  /** Told of what went wrong here, not with a request. */
  readonly log?: (entry: { readonly incident: string; readonly route: string; readonly error: unknown }) => void;
}

/** How long a request may take to arrive, and its headers. */
const REQUEST_MS = 30_000;
const HEADERS_MS = 15_000;
const MAX_HEADER_BYTES = 16_384;
const MAX_PARAM_CHARS = 2_048;

/** The routes of a server; the table that everything about them is made from. */
function routeTable(system: Parameters<typeof systemRoutes>[0]): readonly Route[] {
  return [
    ...submissionRoutes,
    ...batchRoutes,
    ...executionRoutes,
    ...operationRoutes,
    ...taskRoutes,
    ...systemRoutes(system),
  ];
}

/** The HTTP API: routing, limits and answers round the service. Every answer of 400 or more is a problem document. */
export class ApiServer {
  /** For whoever adds pages of their own, before `listen`. */
  readonly app: FastifyInstance;
  readonly routes: readonly Route[];
  readonly #options: ServerOptions;
  readonly #patterns: readonly { readonly route: Route; readonly pattern: RegExp }[];
  readonly #answering: Answering;
  #isDraining = false;
  #incidents = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
    const { service, metrics, version = "0" } = options;
    const host = options.host ?? "127.0.0.1";
    const isLocal = isLoopbackAddress(host);
    const ingress = options.ingress === undefined ? DEFAULT_INGRESS : options.ingress;
    const limiter = isLocal || ingress === null ? undefined : new Ingress(service.store, service.host, ingress);
    const limits =
      limiter === undefined || ingress === null
        ? []
        : [{ name: "ingress", kind: "rate", limit: ingress.limit, window_seconds: ingress.windowSeconds }];
    let document: string | undefined;
    let page: string | undefined;
    const table = routeTable({
      isDraining: () => this.#isDraining,
      metrics: () => metrics.text(),
      openapi: () => (document ??= openapi(this.routes, version)),
      docs: () => (page ??= docsPage(this.routes, version)),
      limits: () => limits,
    });
    this.routes = [...table, ...(options.pages ?? [])];
    this.#patterns = this.routes.map((route) => ({ route, pattern: patternOf(route.path) }));
    const keys = new Keys(options.keys ?? "", service.store);
    const sessions = new Sessions(new Signing(service.store), keys, () => service.host.wallMs());
    const { host: machine, pressure } = service;
    const admission = new Admission({ keys, sessions, limiter, isLocal, host: machine, pressure });
    metrics.watchAdmission(async () => pressure.closed());
    metrics.watchLimits(() => service.limits.measured());
    this.#answering = new Answering(service, admission, metrics);
    this.app = this.#build();
    for (const route of this.routes) this.#add(route);
  }

  /** Refuses to be reached from elsewhere without a key. */
  async listen(): Promise<string> {
    const { host = "127.0.0.1", port = 4747 } = this.#options;
    const { keys } = this.#answering.admission;
    // Asked for at once on this machine too: probes do not wait for the answer.
    if (!keys.isKnownSet() && !isLoopbackAddress(host) && !(await keys.isSet())) {
      throw new Error(`refusing to listen on ${host} without an API key: set MILLRACE_API_KEYS`);
    }
    return this.app.listen({ host, port });
  }

  /** Not ready from now on, while everything is still served: whoever sends requests here has time to notice. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Ends streams and waits, lets requests under way finish, and closes what is left after a while. */
  async close(): Promise<void> {
    this.drain();
    this.#options.service.drain();
    this.#answering.endStreams();
    // A connection whose last request is being answered is idle only afterwards.
    const idle = setInterval(() => this.app.server.closeIdleConnections(), 50);
    const force = setTimeout(() => this.app.server.closeAllConnections(), DRAIN_MS);
    try {
      await this.app.close();
    } finally {
      clearInterval(idle);
      clearTimeout(force);
    }
  }

  #build(): FastifyInstance {
    const app = fastify({
      logger: false,
      bodyLimit: MAX_BODY_BYTES,
      requestTimeout: REQUEST_MS,
      // Ours are problem documents.
      return503OnClosing: false,
      forceCloseConnections: "idle",
      routerOptions: { maxParamLength: MAX_PARAM_CHARS },
      http: { maxHeaderSize: MAX_HEADER_BYTES, requireHostHeader: false, connectionsCheckingInterval: 5_000 },
      frameworkErrors: (error, request, reply) =>
        this.#frameworkError(error, request as FastifyRequest, reply as unknown as FastifyReply),
      clientErrorHandler: (error, socket) => clientError(error, socket),
    });
    app.server.headersTimeout = HEADERS_MS;
    app.server.on("checkExpectation", (_request: IncomingMessage, response: ServerResponse) => {
      const { problem } = plainProblem("BAD_REQUEST", { reason: "This expectation cannot be met" }, 417);
      const body = Buffer.from(JSON.stringify(problem));
      const headers = { "content-type": PROBLEM_TYPE, "content-length": body.length, connection: "close" };
      response.writeHead(417, headers).end(body);
    });
    app.server.on("connect", (_request: IncomingMessage, socket: Socket) => {
      endSocket(socket, plainProblem("METHOD_NOT_ALLOWED", { method: "CONNECT", allowed: ["GET", "POST"] }));
    });
    app.decorateRequest("admitted");
    app.decorateRequest("arrival");
    app.removeAllContentTypeParsers();
    // Read here, understood by the route: a definition is not parsed twice.
    // JSON by its name too: Fastify remembers which parser that leads to, and takes all other types apart each time.
    for (const type of ["application/json", "*"]) {
      app.addContentTypeParser(type, { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    }
    app.setErrorHandler((error, request, reply) => this.#error(error, request, reply));
    app.setNotFoundHandler((request, reply) => this.#notFound(request, reply));
    return app;
  }

  #add(route: Route): void {
    const url = route.path.replaceAll(/\{(\w+)\}/g, ":$1");
    this.app.route({
      method: route.method,
      url,
      ...(route.body !== undefined && { bodyLimit: route.body.limitBytes }),
      config: { route },
      onRequest: (request, reply, done) => this.#answering.admit(route, url, request, reply, done),
      handler: (request, reply) => this.#answering.answer(route, request, reply),
    });
  }

  #notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const path = request.url.split("?", 1)[0]!;
    const methods = this.#patterns.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route.method);
    const allowed = methods.flatMap((method) => (method === "GET" ? [method, "HEAD"] : [method]));
    if (allowed.length === 0) {
      return this.#refuse(
        request,
        reply,
        problemOf(new MillraceError("NOT_FOUND", { what: "route", id: path.slice(0, 200) }), String),
      );
    }
    void reply.header("allow", allowed.join(", "));
    return this.#refuse(request, reply, plainProblem("METHOD_NOT_ALLOWED", { method: request.method, allowed }));
  }

  #error(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const problem = frameworkProblem(error);
    if (problem !== undefined) return this.#refuse(request, reply, problem);
    // Fastify has its own ideas of methods that we do not have, such as QUERY.
    if (request.routeOptions.url === undefined) return this.#notFound(request, reply);
    return this.#refuse(
      request,
      reply,
      problemOf(error, () => this.#incident(error, request)),
    );
  }

  #frameworkError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
    this.#refuse(
      request,
      reply,
      frameworkProblem(error) ?? plainProblem("BAD_REQUEST", { reason: "The address is not well-formed" }),
    );
  }

  #refuse(request: FastifyRequest, reply: FastifyReply, answer: ProblemAnswer): FastifyReply {
    this.#answering.measure(request, answer.problem.status);
    return send(reply, answer);
  }

  #incident(error: unknown, request: FastifyRequest): string {
    const incident = `${this.#options.service.host.id()}-${++this.#incidents}`;
    this.#options.log?.({ incident, route: `${request.method} ${request.routeOptions.url ?? ""}`, error });
    return incident;
  }
}

function send(reply: FastifyReply, { problem, headers }: ProblemAnswer): FastifyReply {
  return (
    reply
      .code(problem.status)
      .headers({
        ...headers,
        "content-type": PROBLEM_TYPE,
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
      })
      // As bytes: Fastify would add a charset, which this type does not have.
      .send(Buffer.from(JSON.stringify(problem)))
  );
}

function patternOf(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[^/]+")}$`);
}

/** What Fastify itself refuses, in our words. */
function frameworkProblem(error: unknown): ProblemAnswer | undefined {
  switch ((error as { code?: unknown } | null)?.code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return plainProblem("PAYLOAD_TOO_LARGE", { what: "The body", limitBytes: limitOf(error) });
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return plainProblem("UNSUPPORTED_MEDIA_TYPE", { reason: "The content type cannot be read" });
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return plainProblem("BAD_REQUEST", { reason: "The body is not as long as it says" });
    case "FST_ERR_BAD_URL":
      return plainProblem("BAD_REQUEST", { reason: "The address is not well-formed" });
    case "FST_ERR_MAX_PARAM_LENGTH":
      return plainProblem("NOT_FOUND", { what: "route", id: "with a part that long" });
    case "ECONNRESET":
    case "ERR_STREAM_PREMATURE_CLOSE":
      return plainProblem("BAD_REQUEST", { reason: "The request ended early" });
    default:
      return undefined;
  }
}

function limitOf(error: unknown): number {
  const limit = (error as { limitBytes?: unknown }).limitBytes;
  return typeof limit === "number" ? limit : MAX_BODY_BYTES;
}
