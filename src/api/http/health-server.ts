import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import type { Metrics } from "../metrics/metrics.ts";
import type { Readiness } from "../service/readiness.ts";
import { clientError } from "./client-error.ts";
import { liveReply, metricsReply, readyReply } from "./health-replies.ts";
import { bearerKey, type Keys } from "./keys.ts";
import { checkLocal, isLoopbackAddress } from "./loopback.ts";
import { requirePermission } from "./permissions.ts";
import { plainProblem, problemOf, PROBLEM_TYPE } from "./problem.ts";
import type { Reply } from "./route.ts";
import { WrongKeys } from "./wrong-keys.ts";

export interface HealthOptions {
  readonly host: Host;
  readonly metrics: Metrics;
  readonly readiness: () => Promise<Readiness>;
  /** Who may see measurements from elsewhere. */
  readonly keys: Keys;
  /** Where it listens. */
  readonly address: string;
  readonly port: number;
  /** Told of what went wrong here, not with a request. */
  readonly log: (entry: { readonly incident: string; readonly route: string; readonly error: unknown }) => void;
}

/** More than probes and scrapers need, however many forget to hang up. */
const MAX_CONNECTIONS = 100;
const REQUEST_MS = 10_000;
const MAX_HEADER_BYTES = 16_384;
const HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" };

/** What a process without the API tells of itself: whether it lives, whether it is ready, and what it measures. */
export class HealthServer {
  readonly #options: HealthOptions;
  readonly #server: Server;
  readonly #wrongKeys: WrongKeys;
  readonly #routes: ReadonlyMap<string, (request: IncomingMessage) => Promise<Reply>>;
  #isDraining = false;

  constructor(options: HealthOptions) {
    this.#options = options;
    this.#wrongKeys = new WrongKeys(options.host);
    this.#routes = new Map([
      ["/health/live", async () => liveReply()],
      ["/health/ready", () => readyReply(this.#isDraining, options.readiness)],
      [
        "/metrics",
        async (request: IncomingMessage) => {
          await this.#admit(request);
          return metricsReply(await options.metrics.text());
        },
      ],
    ]);
    const limits = { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, maxHeaderSize: MAX_HEADER_BYTES };
    this.#server = createServer({ ...limits, requireHostHeader: false }, (request, response) => {
      void this.#answer(request, response);
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
    this.#server.on("clientError", (error, socket) => clientError(error, socket as Socket));
  }

  /** Also beyond this machine without a key: then nobody there may see the measurements. */
  async listen(): Promise<string> {
    const { address, port } = this.#options;
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(port, address, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    const bound = this.#server.address() as AddressInfo;
    return `http://${bound.family === "IPv6" ? `[${bound.address}]` : bound.address}:${bound.port}`;
  }

  /** Not ready from now on. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Nobody's work depends on an answer from here. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? "").split("?", 1)[0]!;
    try {
      const route = this.#routes.get(path);
      if (route === undefined) throw new MillraceError("NOT_FOUND", { what: "route", id: path.slice(0, 200) });
      const { method = "" } = request;
      if (method === "GET" || method === "HEAD") return send(response, await route(request));
      const allowed = ["GET", "HEAD"];
      const { problem } = plainProblem("METHOD_NOT_ALLOWED", { method, allowed });
      send(response, { status: 405, text: JSON.stringify(problem), type: PROBLEM_TYPE }, { allow: allowed.join(", ") });
    } catch (error) {
      const { problem, headers } = problemOf(error, () => this.#incident(error, path));
      send(response, { status: problem.status, text: JSON.stringify(problem), type: PROBLEM_TYPE }, headers);
    }
  }

  /** The API's rule: from this machine anybody, as long as no page of the web asks; from elsewhere with a key that may read. */
  async #admit({ headers, socket }: IncomingMessage): Promise<void> {
    const { address, keys } = this.#options;
    // Without asking the store for keys: what is measured is wanted most while that is away.
    if (isLoopbackAddress(address)) return checkLocal(headers.host, headers.origin);
    const key = bearerKey(headers.authorization);
    const principal = key === undefined ? undefined : await keys.principal(key);
    if (principal !== undefined) return requirePermission(principal.roles, "read");
    if (key !== undefined) this.#wrongKeys.count(socket.remoteAddress ?? "");
    throw new MillraceError("UNAUTHENTICATED", {});
  }

  #incident(error: unknown, route: string): string {
    const incident = this.#options.host.id();
    this.#options.log({ incident, route, error });
    return incident;
  }
}

function send(response: ServerResponse, reply: Reply, more: Readonly<Record<string, string>> = {}): void {
  const text = "text" in reply ? reply.text : JSON.stringify("json" in reply ? reply.json : null);
  const type = ("text" in reply ? reply.type : undefined) ?? "application/json; charset=utf-8";
  const body = Buffer.from(text);
  response.writeHead(reply.status, { ...HEADERS, ...more, "content-type": type, "content-length": body.length });
  response.end(body);
}
