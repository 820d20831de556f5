import { setTimeout as sleep } from "node:timers/promises";
import { nodeHost } from "../host/node-host.ts";
import { timeId } from "../host/time-id.ts";
import type { Json } from "../json/json.ts";
import { type Call, hasSwitch } from "./call.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { type Fault, faultLines } from "./problems-text.ts";
import type { Gap, Listed, ShownEvent, ShownExecution, ShownExplanation } from "./shapes.ts";

const KEY_HINT = "name a key that it knows in MILLRACE_API_KEY, or keep one with its address: millrace context add";
/** How often a request that can be repeated is repeated. */
const TRIES = 4;
const MAX_PAUSE_MS = 5_000;
const PAGE = 500;

export interface Sent {
  /** Anything that JSON can carry, or a definition as it is written. */
  readonly body?: unknown;
  readonly source?: { readonly source: Uint8Array | string; readonly format: "json" | "yaml" };
  /** Idempotency-Key. There always is one; this is what the user chose. */
  readonly key?: string | undefined;
}

/** A server that commands talk to. Every request is safe to repeat: posts carry a key. */
export class Server {
  readonly url: string;
  readonly #key: string | undefined;

  constructor(url: string, key: string | undefined) {
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
  }

  async get<Answer>(path: string, query: Readonly<Record<string, string | undefined>> = {}): Promise<Answer> {
    return (await this.#send("GET", withQuery(path, query), {})) as Answer;
  }

  async post<Answer>(path: string, sent: Sent = {}): Promise<Answer> {
    return (await this.#send("POST", path, sent)) as Answer;
  }

  async delete(path: string): Promise<void> {
    await this.#send("DELETE", path, {});
  }

  execution(id: string): Promise<ShownExecution> {
    return this.get(`/v1/executions/${segment(id)}`);
  }

  async explain(id: string, node?: string): Promise<readonly ShownExplanation[]> {
    const { items } = await this.get<Listed<ShownExplanation>>(`/v1/executions/${segment(id)}/explain`, { node });
    return items;
  }

  /** `@latest` and `@failed` name the newest such execution that somebody has started; anything else is an id. */
  async idOf(name: string): Promise<string> {
    if (!name.startsWith("@")) return name;
    if (name !== "@latest" && name !== "@failed") {
      throw new Failure(EXIT.usage, `${JSON.stringify(name)} names no execution.`, {
        hint: "use an id, @latest or @failed",
      });
    }
    const status = name === "@failed" ? "FAILED" : undefined;
    const { items, incomplete } = await this.get<Listed<{ readonly execution_id: string }>>("/v1/executions", {
      limit: "1",
      status,
    });
    if (items[0] === undefined) {
      const wanted = `${status === undefined ? "" : "failed "}execution`;
      if (incomplete === undefined) throw new Failure(EXIT.notFound, `there is no ${wanted} yet.`);
      throw new Failure(EXIT.unreachable, `the store has no ${wanted}, and the archive does not answer.`);
    }
    return this.#rootOf(items[0].execution_id, status);
  }

  /** Parts of maps and called workflows are executions too, and newer; who says `@latest` means what they began with. */
  async #rootOf(id: string, status: string | undefined): Promise<string> {
    // Only the id of one that another has called has no dashes: all others need not be asked for.
    if (id.includes("-")) return id;
    const { parent } = await this.execution(id);
    const above = parent === undefined ? undefined : await this.#known(parent.execution_id);
    if (above === undefined || (status !== undefined && above.status !== status)) return id;
    return this.#rootOf(above.execution_id, status);
  }

  /** A batch calls executions too, and is none. */
  async #known(id: string): Promise<ShownExecution | undefined> {
    try {
      return await this.execution(id);
    } catch (error) {
      if (error instanceof Failure && error.exit === EXIT.notFound) return undefined;
      throw error;
    }
  }

  /** Up to `limit` entries of a list, page after page. */
  async list<Item>(
    path: string,
    query: Readonly<Record<string, string | undefined>>,
    limit: number,
  ): Promise<Listed<Item>> {
    const items: Item[] = [];
    let cursor: string | null = null;
    let gap: Gap = {};
    do {
      const size = String(Math.min(PAGE, limit - items.length));
      const page: Listed<Item> = await this.get(path, { ...query, limit: size, cursor: cursor ?? undefined });
      items.push(...page.items);
      if (page.incomplete !== undefined) gap = { incomplete: page.incomplete };
      cursor = page.next_cursor;
    } while (cursor !== null && items.length < limit);
    return { items, next_cursor: cursor, ...gap };
  }

  /**
   * What happens to an execution, until it is over or the signal says stop. A stream that breaks is taken up where it
   * was.
   */
  async *events(id: string, after: number, signal: AbortSignal): AsyncGenerator<ShownEvent, void> {
    let seen = after;
    let pauses = 0;
    while (!signal.aborted) {
      try {
        const response = await this.#fetch("GET", `/v1/executions/${segment(id)}/events?after=${seen}`, {
          headers: { accept: "text/event-stream", ...(seen > after && { "last-event-id": String(seen) }) },
          signal,
        });
        if (response.status === 204) return;
        if (!response.ok) throw await refused(response);
        for await (const event of parseEvents(response)) {
          if (event === "end") return;
          seen = event.seq;
          pauses = 0;
          yield event;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Failure && error.exit !== EXIT.unreachable) throw error;
        if (++pauses > TRIES) throw lostSight(error instanceof Failure ? error : this.#unreachable(error), id);
      }
      await sleep(Math.min(MAX_PAUSE_MS, 200 * 2 ** pauses), undefined, { signal }).catch(() => undefined);
    }
  }

  async #send(method: string, path: string, sent: Sent): Promise<unknown> {
    const init = requestOf(method, sent);
    for (let attempt = 1; ; attempt++) {
      const response = await this.#fetch(method, path, init);
      if (response.ok) return response.status === 204 ? undefined : response.json();
      const isBusy = response.status === 503 || response.status === 429;
      const pauseMs = Number(response.headers.get("retry-after") ?? 1) * 1_000;
      if (!isBusy || attempt === TRIES || pauseMs > MAX_PAUSE_MS) throw await refused(response);
      await response.body?.cancel();
      await sleep(pauseMs);
    }
  }

  async #fetch(method: string, path: string, init: RequestInit): Promise<Response> {
    const headers = {
      ...(init.headers as Record<string, string>),
      ...(this.#key !== undefined && { authorization: `Bearer ${this.#key}` }),
    };
    try {
      return await fetch(`${this.url}${path}`, { ...init, method, headers });
    } catch (error) {
      if ((error as Error).name === "AbortError") throw error;
      throw this.#unreachable(error);
    }
  }

  #unreachable(error: unknown): Failure {
    const { cause, message } = error as Error & {
      readonly cause?: { readonly code?: string; readonly message?: string };
    };
    const reason = cause?.code === "ECONNREFUSED" ? "nobody listens there" : (cause?.message ?? message);
    return new Failure(EXIT.unreachable, `cannot reach ${this.url}: ${reason}.`, {
      hint: "start a server with: millrace dev   (or name another with --url or MILLRACE_URL)",
    });
  }
}

/** The server that this call is for. */
export async function connect(call: Call): Promise<Server> {
  const { settings } = await call.settings();
  if (!/^https?:\/\/./.test(settings.url)) {
    throw new Failure(EXIT.usage, `--url must begin with http:// or https://, not ${JSON.stringify(settings.url)}.`);
  }
  return new Server(settings.url, settings.apiKey);
}

/** Whether a file that could run here shall run there: whoever names a server in the call means it. */
export async function isForServer(call: Call): Promise<boolean> {
  return hasSwitch(call, "server") || (await call.settings()).origins.url === "--url";
}

/** A name as a part of a path. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

function requestOf(method: string, { body, source, key }: Sent): RequestInit {
  if (method !== "POST") return { headers: {} };
  const headers: Record<string, string> = { "idempotency-key": key ?? timeId(nodeHost) };
  if (source !== undefined) {
    headers["content-type"] = source.format === "yaml" ? "application/yaml" : "application/json";
    return { headers, body: source.source as NonNullable<RequestInit["body"]> };
  }
  headers["content-type"] = "application/json";
  return { headers, body: JSON.stringify(body ?? {}) };
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly title?: string;
  readonly errors?: readonly Fault[];
  readonly execution?: Json;
}

/** A refusal of the server as the end of a command. */
async function refused(response: Response): Promise<Failure> {
  const text = await response.text();
  let problem: Problem = {};
  try {
    problem = JSON.parse(text) as Problem;
  } catch {
    // Something between us and the server has answered.
  }
  const { code, detail, title, errors = [] } = problem;
  const message = detail ?? title ?? `the server answered ${response.status} ${response.statusText}.`;
  const lines = faultLines(errors);
  // What stands in a query came from the options of the command.
  const exit = code === "INVALID_QUERY" ? EXIT.usage : exitOf(response.status);
  const hint = response.status === 401 ? KEY_HINT : undefined;
  return new Failure(exit, code === undefined ? message : `${message} (${code})`, { code, lines, hint });
}

function exitOf(status: number): ExitCode {
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return EXIT.invalid;
    case 401:
    case 403:
    case 409:
      return EXIT.notAllowed;
    case 404:
      return EXIT.notFound;
    default:
      return EXIT.unreachable;
  }
}

/** Whoever followed an execution wants to know what becomes of it. */
function lostSight({ exit, message, code }: Failure, id: string): Failure {
  return new Failure(exit, message, { code, hint: `it goes on with its server; then: millrace watch ${id}` });
}

/** Server-sent events: `end` is the last. */
async function* parseEvents(response: Response): AsyncGenerator<ShownEvent | "end", void> {
  let buffer = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    buffer += decoder.decode(chunk, { stream: true });
    for (let at = buffer.indexOf("\n\n"); at >= 0; at = buffer.indexOf("\n\n")) {
      const block = buffer.slice(0, at);
      buffer = buffer.slice(at + 2);
      const fields = block.split("\n");
      if (fields.includes("event: end")) {
        yield "end";
        return;
      }
      const data = fields.find((line) => line.startsWith("data: "))?.slice(6);
      if (data !== undefined) yield JSON.parse(data) as ShownEvent;
    }
  }
}
