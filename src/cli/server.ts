import { setTimeout as sleep } from "node:timers/promises";
import type { Workflow } from "../definition/workflow.ts";
import { nodeHost } from "../host/node-host.ts";
import { timeId } from "../host/time-id.ts";
import type { Json } from "../json/json.ts";
import { isSilence } from "../sdk/api-error.ts";
import { type Answered, Connections, type Silences } from "../sdk/connections.ts";
import { type Call, hasSwitch, option } from "./call.ts";
import { LOCAL } from "./contexts.ts";
import { EXIT, type ExitCode } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { type Fault, faultLines } from "./problems-text.ts";
import type { Gap, Listed, ShownEvent, ShownExecution, ShownExplanation } from "./shapes.ts";

const KEY_HINT = "name a key that it knows in MILLRACE_API_KEY, or keep one with its address: millrace context add";
/** How often a request that can be repeated is repeated. */
const TRIES = 4;
const MAX_PAUSE_MS = 5_000;
const PAGE = 500;
/** A server asks its store several times for some answers, and gives it 10 s each. */
const ANSWER_MS = 30_000;
/** For a request that goes through many executions. */
const LONG_ANSWER_MS = 300_000;
/** A stream that has been silent for longer is dead: the server says something every 15 s. */
const SILENCE_MS = 45_000;

export interface Sent {
  /** Anything that JSON can carry, or a definition as it is written. */
  readonly body?: unknown;
  readonly source?: { readonly source: Uint8Array | string; readonly format: "json" | "yaml" };
  /** Idempotency-Key. There always is one; this is what the user chose. */
  readonly key?: string | undefined;
  /** The answer may take minutes. */
  readonly isLong?: boolean;
}

interface Request {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly signal?: AbortSignal;
}

/** A server that commands talk to. Every request is safe to repeat: posts carry a key. */
export class Server {
  readonly url: string;
  readonly #key: string | undefined;
  readonly #answerMs: number;
  readonly #connections = new Connections();

  /** @param answerMs how long the server may say nothing while it owes an answer */
  constructor(url: string, key: string | undefined, answerMs = ANSWER_MS) {
    this.url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#answerMs = answerMs;
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

  /** What it runs, also when its workflow was deleted. */
  definition(id: string): Promise<Workflow> {
    return this.get(`/v1/executions/${segment(id)}/definition`);
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
    // Also what only keeps the stream alive: one may be quiet for days.
    const heard = (): void => void (pauses = 0);
    while (!signal.aborted) {
      try {
        const path = `/v1/executions/${segment(id)}/events?after=${seen}`;
        const headers = { accept: "text/event-stream", ...(seen > after && { "last-event-id": String(seen) }) };
        const silences = { answerMs: this.#answerMs, pauseMs: SILENCE_MS };
        const { response, text } = await this.#fetch("GET", path, { headers, signal }, silences);
        if (response.status === 204) return;
        if (!response.ok) throw refused(response, await text());
        for await (const event of parseEvents(response, heard)) {
          if (event === "end") return;
          seen = event.seq;
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
    const request = requestOf(method, sent);
    const silences = { answerMs: sent.isLong === true ? LONG_ANSWER_MS : this.#answerMs, pauseMs: this.#answerMs };
    for (let attempt = 1; ; attempt++) {
      const { response, text } = await this.#exchange(method, path, request, silences);
      if (response.ok) return response.status === 204 ? undefined : this.#read(text);
      const isBusy = response.status === 503 || response.status === 429;
      const pauseMs = Number(response.headers.get("retry-after") ?? 1) * 1_000;
      if (!isBusy || attempt === TRIES || pauseMs > MAX_PAUSE_MS) throw refused(response, text);
      await sleep(pauseMs);
    }
  }

  /** Something else may listen there, and be content with any path. */
  #read(text: string): unknown {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw new Failure(EXIT.unreachable, `${this.url} does not answer as Millrace does: its answer is not JSON.`, {
        hint: "name the server with --url or MILLRACE_URL; millrace doctor looks at the one that is named",
      });
    }
  }

  async #exchange(
    method: string,
    path: string,
    request: Request,
    silences: Silences,
  ): Promise<{ readonly response: Response; readonly text: string }> {
    const once = async (): Promise<{ readonly response: Response; readonly text: string }> => {
      const { response, text } = await this.#fetch(method, path, request, silences);
      return { response, text: await text() };
    };
    try {
      return await once().catch((error: unknown) => {
        // A connection that has died without a word says nothing of the server. What was removed is not found again.
        if (isSilence(error) && method !== "DELETE") return once();
        throw error;
      });
    } catch (error) {
      throw this.#unreachable(error);
    }
  }

  #fetch(method: string, path: string, request: Request, silences: Silences): Promise<Answered> {
    const headers = { ...request.headers, ...(this.#key !== undefined && { authorization: `Bearer ${this.#key}` }) };
    return this.#connections.fetch(this.url + path, { ...request, method, headers }, silences);
  }

  #unreachable(error: unknown): Failure {
    const { cause, message } = error as Error & {
      readonly cause?: { readonly code?: string; readonly message?: string };
    };
    const known = cause?.code === "ECONNREFUSED" ? "nobody listens there" : (cause?.message ?? message);
    const reason = isSilence(error) ? "it does not answer" : known;
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
  if (hasSwitch(call, "server") || (option(call, "context") ?? LOCAL) !== LOCAL) return true;
  return (await call.settings()).origins.url === "--url";
}

/** A name as a part of a path. */
export function segment(name: string): string {
  return encodeURIComponent(name);
}

/** A stored workflow, the newest version of it unless one is named. */
export function workflowPath(name: string, version?: string): string {
  const path = `/v1/workflows/${segment(name)}`;
  return version === undefined ? path : `${path}/versions/${segment(version)}`;
}

export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

function requestOf(method: string, { body, source, key }: Sent): Request {
  if (method !== "POST") return { headers: {} };
  const headers: Record<string, string> = { "idempotency-key": key ?? timeId(nodeHost) };
  if (source !== undefined) {
    headers["content-type"] = source.format === "yaml" ? "application/yaml" : "application/json";
    return { headers, body: Buffer.from(source.source) };
  }
  headers["content-type"] = "application/json";
  return { headers, body: Buffer.from(JSON.stringify(body ?? {})) };
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly title?: string;
  readonly errors?: readonly Fault[];
  readonly execution?: Json;
}

/** A refusal of the server as the end of a command. */
function refused(response: Response, text: string): Failure {
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
async function* parseEvents(response: Response, heard: () => void): AsyncGenerator<ShownEvent | "end", void> {
  let buffer = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    heard();
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
