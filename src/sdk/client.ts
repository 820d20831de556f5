import type { Host } from "../host/host.ts";
import { timeId } from "../host/time-id.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import { copyJson } from "../json/copy-json.ts";
import type { Json } from "../json/json.ts";
import type { Backend } from "./backend.ts";
import { checkOptions, type Names } from "./known-options.ts";
import { ownJson } from "./own-json.ts";
import { RunHandle, WAIT_OPTIONS, type WaitOptions } from "./run-handle.ts";
import { parse } from "./standard-schema.ts";
import { PARTS, type Workflow, type WorkflowParts } from "./workflow.ts";

export interface StartOptions {
  /** The same key again gives the same run, whoever asks. By default every start is a run of its own. */
  readonly idempotencyKey?: string;
  /** Names and values to find the run by. */
  readonly labels?: Readonly<Record<string, string>>;
}

const START_OPTIONS: Names<StartOptions> = { idempotencyKey: true, labels: true };

/** A workflow without an input need not be given one. */
export type InputArguments<In, Options> =
  Readonly<Record<string, never>> extends In ? [input?: In, options?: Options] : [input: In, options?: Options];

/** Starts runs and finds them again. */
export class Client implements AsyncDisposable {
  readonly #backend: Backend;
  readonly #host: Host;
  /** Called with every workflow before it is started. */
  readonly #meet: (parts: WorkflowParts) => void;
  /** Workflows that are known to be stored: under which hash, by our own. */
  readonly #published = new Map<string, Promise<string>>();

  constructor(backend: Backend, host: Host, meet: (parts: WorkflowParts) => void = () => {}) {
    this.#backend = backend;
    this.#host = host;
    this.#meet = meet;
  }

  /** Starts a run, and does not wait for it. */
  async start<In, Out>(
    workflow: Workflow<In, Out>,
    ...[input, options = {}]: InputArguments<NoInfer<In>, StartOptions>
  ): Promise<RunHandle<Out>> {
    checkOptions("start", START_OPTIONS, options);
    return this.#start(workflow, input, options);
  }

  async #start<In, Out>(workflow: Workflow<In, Out>, input: unknown, options: StartOptions): Promise<RunHandle<Out>> {
    const parts = workflow[PARTS];
    this.#meet(parts);
    const sent = await sendable(parts, input);
    const key = options.idempotencyKey ?? this.#key();
    const { labels } = options;
    const start = async (): Promise<{ readonly execution_id: string }> =>
      this.#backend.start(
        parts.name,
        { input: sent, version: await this.#publish(parts), ...(labels !== undefined && { labels }) },
        key,
      );
    const { execution_id: id } = await start().catch((error: unknown) => {
      if ((error as { readonly code?: unknown } | null)?.code !== "NOT_FOUND") throw error;
      // It was stored once: the store is another one since, or somebody has removed it.
      this.#published.clear();
      return start();
    });
    return this.#started<Out>(id);
  }

  /** Starts a run and waits for its result. */
  async run<In, Out>(
    workflow: Workflow<In, Out>,
    ...[input, options = {}]: InputArguments<NoInfer<In>, StartOptions & WaitOptions>
  ): Promise<Out> {
    checkOptions("run", { ...START_OPTIONS, ...WAIT_OPTIONS }, options);
    const { timeout, signal, ...starting } = options;
    const run = await this.#start(workflow, input, starting);
    return run.result({ ...(timeout !== undefined && { timeout }), ...(signal !== undefined && { signal }) });
  }

  /** Starts a run of a workflow that is stored where the client is connected to, by its name. */
  async startByName<Out = Json>(
    name: string,
    input: Json = {},
    options: StartOptions & { readonly version?: number | string } = {},
  ): Promise<RunHandle<Out>> {
    checkOptions("startByName", { ...START_OPTIONS, version: true }, options);
    const { version, idempotencyKey, labels } = options;
    const request = {
      input: ownJson("input", input),
      ...(version !== undefined && { version }),
      ...(labels !== undefined && { labels }),
    };
    const { execution_id: id } = await this.#backend.start(name, request, idempotencyKey ?? this.#key());
    return this.#started<Out>(id);
  }

  /** A run that was started before. */
  get<Out = Json>(id: string): RunHandle<Out> {
    return new RunHandle<Out>(id, this.#backend, this.#host);
  }

  #started<Out>(id: string): RunHandle<Out> {
    return new RunHandle<Out>(id, this.#backend, this.#host, { isNew: true });
  }

  close(): Promise<void> {
    return this.#backend.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** It tells when it was drawn: so a server whose archive is away knows that nobody used it long ago. */
  #key(): string {
    return timeId(this.#host);
  }

  /** Stores a workflow, and before it those it calls, once. Tells under which hash it is stored. */
  #publish(parts: WorkflowParts): Promise<string> {
    const known = this.#published.get(parts.hash);
    if (known !== undefined) return known;
    const publishing = (async (): Promise<string> => {
      const versions = new Map<WorkflowParts, string>();
      for (const child of parts.children) versions.set(child, await this.#publish(child));
      return this.#backend.publish(
        parts.definition((child) => versions.get(child)!),
        parts.hash,
      );
    })();
    this.#published.set(parts.hash, publishing);
    publishing.catch(() => this.#published.delete(parts.hash));
    return publishing;
  }
}

/** The input as it is sent: what the schema makes of it is made again where it is used. Whoever starts several with one object may change it meanwhile. */
async function sendable({ input: schema }: WorkflowParts, input: unknown = {}): Promise<Json> {
  const sent = ownJson("input", input);
  if (schema === undefined) return sent;
  const parsed = await parse(schema, copyJson(sent));
  if ("reason" in parsed) throw new MillraceError("INPUT_INVALID", { reason: parsed.reason });
  return sent;
}
