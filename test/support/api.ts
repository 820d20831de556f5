import type { Machine } from "../../src/core/machine.ts";
import { MACHINES } from "../../src/core/machines.ts";
import type { HandlerCatalogue } from "../../src/definition/handlers.ts";
import { openMemory, type MemoryStore } from "../../src/drivers/memory/memory-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { ShippingSettings } from "../../src/engine/settings.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Json } from "../../src/json/json.ts";
import { Metrics } from "../../src/api/metrics/metrics.ts";
import { measured } from "../../src/api/metrics/measured-store.ts";
import type { Route } from "../../src/api/http/route.ts";
import { ApiServer, type ServerOptions } from "../../src/api/http/server.ts";
import { Service } from "../../src/api/service/service.ts";
import type { Archive } from "../../src/store/archive.ts";
import { withArchive } from "../../src/store/cold-reads.ts";
import type { Store } from "../../src/store/contract.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { Worker } from "../../src/worker/worker.ts";

export interface TestApiOptions extends Partial<ServerOptions> {
  readonly handlers?: Readonly<Record<string, Handler>>;
  /** Handlers that are known without anybody who serves them. */
  readonly known?: readonly string[];
  readonly secret?: (name: string) => string | undefined;
  readonly engine?: boolean;
  /** What decides, if it is not to be what always does. */
  readonly machines?: readonly Machine[];
  readonly pagesOf?: (service: Service) => readonly Route[];
  /** One that is shared, and outlives this process. By default a memory store of its own. */
  readonly memory?: MemoryStore;
  readonly store?: Store;
  /** Behind the store. */
  readonly archive?: Archive;
  readonly shipping?: ShippingSettings;
  readonly retentionMs?: number;
  /** The part of its memory that the process uses. */
  readonly memoryUsed?: () => number;
  /** As in production. */
  readonly isStrict?: boolean;
  /** What the API sees of the store. */
  readonly wrap?: (store: Store) => Store;
}

export interface Answered {
  readonly status: number;
  // A test says what it expects; the type would only be in its way.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
  readonly headers: Headers;
}

/** The API over real HTTP, with the production engine and worker over the memory store behind it. */
export class TestApi {
  readonly memory: MemoryStore;
  readonly service: Service;
  readonly server: ApiServer;
  readonly incidents: unknown[] = [];
  url = "";
  #engine: Engine | undefined;
  #worker: Worker | undefined;
  readonly #isShared: boolean;
  #isClosed = false;

  private constructor(options: TestApiOptions) {
    const { handlers = {}, known = [], secret, memory, store: given, wrap, engine: _, ...more } = options;
    const {
      archive,
      shipping,
      retentionMs = null,
      pagesOf,
      memoryUsed,
      isStrict = false,
      machines = MACHINES,
      ...server
    } = more;
    const host = nodeHost;
    this.#isShared = memory !== undefined || given !== undefined;
    this.memory = memory ?? openMemory({ host });
    const base = given ?? this.memory;
    const metrics = new Metrics(base);
    const store = measured(base, metrics);
    const names = [...Object.keys(handlers), ...known];
    const catalogue: HandlerCatalogue = {
      get: (name) => (names.includes(name) ? { engine: false } : undefined),
      names: () => names,
      allowMissing: false,
    };
    if (Object.keys(handlers).length > 0) {
      this.#worker = new Worker({
        store,
        host,
        handlers: new Map(Object.entries(handlers)),
        queues: Object.keys(handlers),
        settings: { slots: 32, startReportMs: 50, pollMs: 50, graceMs: 100 },
        ...(secret !== undefined && { secret }),
      });
    }
    if (options.engine !== false) {
      const settings = { renewMs: 20, idleMs: 20, retentionMs, shipping: shipping ?? null };
      const behind = archive === undefined ? {} : { archive };
      this.#engine = new Engine({ store, host, machines, settings, ...behind });
    }
    const seen = archive === undefined ? base : withArchive(base, archive);
    this.service = new Service({
      store: wrap?.(seen) ?? seen,
      host,
      handlers: catalogue,
      isStrict,
      ...(secret !== undefined && { secret }),
      ...(memoryUsed !== undefined && { memory: memoryUsed }),
    });
    this.server = new ApiServer({
      service: this.service,
      metrics,
      port: 0,
      log: ({ error }) => this.incidents.push(error),
      ...(pagesOf !== undefined && { pages: pagesOf(this.service) }),
      ...server,
    });
  }

  static async start(options: TestApiOptions = {}): Promise<TestApi> {
    const api = new TestApi(options);
    api.#engine?.start();
    api.#worker?.start();
    api.service.start();
    api.url = (await api.server.listen()).replace("0.0.0.0", "127.0.0.1");
    return api;
  }

  get engine(): Engine | undefined {
    return this.#engine;
  }

  async stopEngine(): Promise<void> {
    await this.#engine?.stop();
    this.#engine = undefined;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.server.close();
    this.service.stop();
    await this.#worker?.stop();
    await this.stopEngine();
    if (!this.#isShared) await this.memory.close();
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answered> {
    return this.call("GET", path, undefined, headers);
  }

  post(path: string, body?: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Answered> {
    return this.call("POST", path, body, headers);
  }

  delete(path: string): Promise<Answered> {
    return this.call("DELETE", path, undefined, {});
  }

  async call(
    method: string,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answered> {
    const isText = typeof body === "string" || body instanceof Uint8Array;
    const response = await fetch(this.url + path, {
      method,
      headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
      ...(body !== undefined && { body: isText ? Buffer.from(body) : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = /json/.test(response.headers.get("content-type") ?? "");
    return {
      status: response.status,
      headers: response.headers,
      body: isJson && text !== "" ? JSON.parse(text) : text,
    };
  }

  /** Submits and starts; gives the id. */
  async run(definition: unknown, input?: Json): Promise<string> {
    const body = input === undefined ? definition : { definition, input_params: input };
    const { status, body: answer } = await this.post("/v1/workflow?start=true", body);
    if (status !== 201) throw new Error(`not started: ${JSON.stringify(answer)}`);
    return (answer as { execution_id: string }).execution_id;
  }

  /** The execution once it is in one of these states. */
  async until(id: string, ...statuses: readonly string[]): Promise<Answered["body"]> {
    while (!this.#isClosed) {
      const { body } = await this.get(`/v1/executions/${id}`);
      if (statuses.includes((body as { status: string }).status)) return body;
      await nodeHost.sleep(10);
    }
    throw new Error(`the API was closed before ${id} was ${statuses.join(" or ")}`);
  }

  ended(id: string): Promise<Answered["body"]> {
    return this.until(id, "COMPLETED", "FAILED", "PARTIAL", "CANCELLED");
  }

  /** Resolves once it is true; a test that waits in vain ends by its timeout. */
  async eventually(fits: () => Promise<boolean> | boolean): Promise<void> {
    while (!this.#isClosed && !(await fits())) await nodeHost.sleep(10);
  }
}
