import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Service } from "../../scripts/services/service.ts";
import { postgresService, redisService } from "../support/services.ts";
import { getJson, type Program, type ProgramOptions, serve, serving, type Serving, start } from "../cli/program.ts";

export const STORES: readonly (readonly [kind: string, service: () => Promise<Service>])[] = [
  ["Postgres", postgresService],
  ["Redis", redisService],
];

/** A store of its own on a server that other files of tests use too, and processes on it. */
export class Fleet {
  readonly store: string;
  readonly #env: Readonly<Record<string, string>>;

  /** @param number another one for each file of tests: the database of Redis, the schema of Postgres */
  constructor(url: string, number: number, env: Readonly<Record<string, string>> = {}) {
    this.store = url.startsWith("redis") ? `${url}/${number}` : url;
    this.#env = { POSTGRES_SCHEMA: `fleet_${number}`, ...env };
  }

  /** A process that serves the API, and whatever else it is told to. */
  server(roles: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Serving> {
    return serve(this.store, ["--roles", roles, ...args], { env: { ...this.#env, ...env } });
  }

  async process(roles: string): Promise<Program> {
    const program = start(["serve", "--store", this.store, "--roles", roles], { env: this.#env });
    await program.says(/"started"/);
    return program;
  }

  /** A process without the API that tells its health; `command` is what it is. */
  async healthy(command: readonly string[], options: ProgramOptions = {}): Promise<Serving> {
    const args = [...command, "--store", this.store, "--health-port", "0"];
    const program = start(args, { ...options, env: { ...this.#env, ...options.env } });
    const [, url] = await program.says(/"health":"(http:[^"]+)"/);
    return serving(url!, program);
  }
}

/** How many engines are alive, by what a server measures. */
export async function engines(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return Number(/^millrace_engines (\d+)/m.exec(text)?.[1]);
}

/** As something in front of several servers: asks them whether they are ready, and takes turns among those that are. */
export class RoundRobin {
  readonly #upstreams = new Map<string, boolean>();
  readonly #server: Server;
  #turn = 0;
  #isClosed = false;

  private constructor() {
    this.#server = createServer((incoming, outgoing) => this.#forward(incoming, outgoing));
  }

  static async start(urls: readonly string[]): Promise<RoundRobin> {
    const proxy = new RoundRobin();
    for (const url of urls) proxy.add(url);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  add(url: string): void {
    this.#upstreams.set(url, true);
    void this.#watch(url);
  }

  remove(url: string): void {
    this.#upstreams.delete(url);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #watch(url: string): Promise<void> {
    while (!this.#isClosed && this.#upstreams.has(url)) {
      const isReady = await getJson<{ status: unknown }>(`${url}/health/ready`).then(
        ({ status }) => status === "ok",
        () => false,
      );
      if (this.#upstreams.has(url)) this.#upstreams.set(url, isReady);
      await sleep(50);
    }
  }

  #forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const ready = [...this.#upstreams].filter(([, isReady]) => isReady).map(([url]) => url);
    const to = ready[this.#turn++ % Math.max(1, ready.length)];
    if (to === undefined) return void outgoing.writeHead(502).end("nobody is ready");
    const { method, headers, url } = incoming;
    // Connections of its own for each request: none is kept that the other side may close at the wrong moment.
    const forwarded = request(to + url, { method, headers: { ...headers, connection: "close" }, agent: false });
    forwarded.on("response", (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(outgoing);
    });
    forwarded.on("error", (error) => outgoing.headersSent || outgoing.writeHead(502).end(String(error)));
    incoming.pipe(forwarded);
  }
}
