import { setTimeout as sleep } from "node:timers/promises";
import { keyedId } from "../../src/api/service/ids.ts";
import { canonicalHash } from "../../src/json/canonical.ts";
import type { Json, JsonObject } from "../../src/json/json.ts";
import type { ClientEntry, Command } from "../../src/simulator/history.ts";

export interface Answer {
  readonly status: number;
  // Whoever asks knows what is answered; the type would only be in the way.
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
  /** Who answered. */
  readonly pid: number;
}

/** A process that answers, once it does. */
export interface Listening {
  readonly pid: number;
  /** undefined if it ended before it listened. */
  readonly url: Promise<string | undefined>;
  readonly listenedAt: number | undefined;
  /** Set when it has ended. */
  readonly exit: object | undefined;
}

type Logged<Kind> = Extract<ClientEntry, { readonly kind: Kind }>;

/** A read, with the moment at which it was sent: its place in the history is known when all logs are merged. */
export type ReadNote = Omit<Logged<"read">, "sentAfter"> & { readonly sentAt: number };

/** A command without what its request names it by. */
export type Asked = Command extends infer One
  ? One extends Command
    ? Omit<One, "request" | "bodyHash">
    : never
  : never;

const RETRY_MS = 25;
const PATIENCE_MS = 30_000;

/**
 * People with patience: whatever they ask for they ask again, under the same key, until they are answered; by the next
 * process if this one dies. They write down what they were told.
 */
export class Client {
  readonly log: (Exclude<ClientEntry, Logged<"read">> | ReadNote)[] = [];
  /** Answers that nobody should ever get. */
  readonly incidents: string[] = [];
  #servers: readonly Listening[] = [];
  #asked = 0;
  #changed = Promise.withResolvers<void>();

  /** Who answers from now on: of several, each in turn. */
  use(...servers: readonly Listening[]): void {
    this.#servers = servers;
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }

  now(): number {
    return Number(process.hrtime.bigint()) / 1e6;
  }

  /** Somebody who listens, once somebody does. */
  async listener(): Promise<{ readonly url: string; readonly pid: number }> {
    for (;;) {
      // Before anything is awaited: whoever comes meanwhile must be noticed.
      const changed = this.#changed.promise;
      const alive = this.#servers.filter(({ exit }) => exit === undefined);
      const ready = alive.filter(({ listenedAt }) => listenedAt !== undefined);
      const server = ready[this.#asked++ % Math.max(1, ready.length)];
      const url = await server?.url;
      if (server !== undefined && url !== undefined && server.exit === undefined) return { url, pid: server.pid };
      if (server === undefined) await Promise.race([changed, ...alive.map((one) => one.url)]);
    }
  }

  get(path: string): Promise<Answer> {
    return this.#ask("GET", path);
  }

  post(path: string, body: Json, key: string, watch?: Watch): Promise<Answer> {
    return this.#ask("POST", path, { body, key }, watch);
  }

  /** Starts an execution; answers its id. */
  async start(how: Start): Promise<string> {
    const { key, definition, input, isHeld } = how;
    const isByName = how.by === "name";
    const { name } = definition;
    const execution = isByName ? keyedId("default", "start", name, key) : keyedId("default", "submit", key);
    const path = isByName
      ? `/v1/workflows/${encodeURIComponent(name)}/executions`
      : `/v1/workflow${isHeld ? "" : "?start=true"}`;
    const body = isByName ? { input_params: input } : { definition, input_params: input };
    const bodyHash = isByName ? canonicalHash([input, null]) : canonicalHash([how.hash, input, !isHeld, false]);
    const entry = { log: "client" as const, execution, bodyHash };
    const answer = await this.post(path, body, key, {
      sent: () => {
        const hold = isHeld ? { hold: true } : {};
        this.log.push({ ...entry, kind: "submit", at: this.now(), definition: how.hash, input, ...hold });
      },
      heard: (said) => this.log.push({ ...entry, kind: "submitted", at: this.now(), ...outcomeOf(said) }),
    });
    if (answer.status !== 201) throw new Error(`${name} was not accepted: ${JSON.stringify(answer.body)}`);
    const { execution_id: id } = answer.body;
    if (id !== execution) throw new Error(`${name} was accepted as ${String(id)}, and its key says ${execution}`);
    return execution;
  }

  /** Asks something of an execution. `route` is what the key counts for. */
  async command(
    execution: string,
    route: string,
    path: string,
    body: Json,
    asked: Asked,
    key: string,
  ): Promise<Answer> {
    const request = keyedId("default", route, key);
    const command = { ...asked, request } as Command;
    return this.post(path, body, key, {
      sent: () => this.log.push({ log: "client", kind: "command", at: this.now(), execution, request, command }),
      heard: (said) =>
        this.log.push({
          log: "client",
          kind: "answered",
          at: this.now(),
          execution,
          request,
          command: command.kind,
          ...outcomeOf(said),
        }),
    });
  }

  /** Reads an execution, and writes down what it saw. */
  async read(execution: string): Promise<Answer> {
    const sentAt = this.now();
    const answer = await this.get(`/v1/executions/${execution}`);
    const { seq, status } = answer.body;
    const found = answer.status === 200;
    this.log.push({
      log: "client",
      kind: "read",
      at: this.now(),
      reader: "client",
      execution,
      sentAt,
      found,
      version: found ? Number(seq) : 0,
      status: found ? String(status) : "NONE",
    });
    return answer;
  }

  async #ask(
    method: string,
    path: string,
    given?: { readonly body: Json; readonly key: string },
    watch?: Watch,
  ): Promise<Answer> {
    for (;;) {
      const { url, pid } = await this.listener();
      watch?.sent();
      const said = await request(url + path, method, given);
      const answer = said === undefined ? undefined : { ...said, pid };
      watch?.heard(answer);
      if (answer !== undefined && answer.status < 500) return answer;
      if (answer !== undefined && answer.status !== 503) this.incidents.push(`${method} ${path}: ${answer.status}`);
      await sleep(RETRY_MS);
    }
  }
}

export interface Start {
  readonly key: string;
  readonly definition: JsonObject & { readonly name: string };
  /** Of the definition as it is stored. */
  readonly hash: string;
  readonly input: JsonObject;
  readonly by: "name" | "definition";
  readonly isHeld: boolean;
}

interface Watch {
  readonly sent: () => void;
  readonly heard: (answer: Answer | undefined) => void;
}

/** undefined if nobody answered. */
async function request(
  url: string,
  method: string,
  given?: { readonly body: Json; readonly key: string },
): Promise<Omit<Answer, "pid"> | undefined> {
  try {
    const response = await fetch(url, {
      method,
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...(given !== undefined && {
        headers: { "content-type": "application/json", "idempotency-key": given.key },
        body: JSON.stringify(given.body),
      }),
    });
    return { status: response.status, body: await response.json() };
  } catch {
    return undefined;
  }
}

function outcomeOf(answer: Answer | undefined): Pick<Logged<"submitted">, "outcome" | "code"> & { answer?: Json } {
  if (answer === undefined || answer.status === 503) return { outcome: "unknown" };
  if (answer.status < 300) return { outcome: "ok", answer: answer.body };
  return { outcome: "refused", code: String(answer.body["code"]) };
}
