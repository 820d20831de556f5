import { reviewId } from "../core/execution/review-listing.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import type { Host } from "../host/host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Backend, Command, EventView, ExecutionView, NodeView, RunStatus } from "./backend.ts";
import { type Duration, durationMs } from "./duration.ts";
import { checkOptions, type Names } from "./known-options.ts";
import type { Config } from "./options.ts";
import { ownJson } from "./own-json.ts";
import { ResultTimeout, WorkflowFailed } from "./workflow-failed.ts";

/** A node, by its id or its handle. */
export type NodeName = string | { readonly id: string };

export interface WaitOptions {
  /** How long to wait. The run goes on afterwards. */
  readonly timeout?: Duration;
  readonly signal?: AbortSignal;
}

export const WAIT_OPTIONS: Names<WaitOptions> = { timeout: true, signal: true };

/** Something that has happened to a run. */
export interface RunEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly node: string | undefined;
  readonly attempt: number | undefined;
  readonly data: JsonObject;
}

export interface RetryRequest {
  /** Run this node again and all that come after it; by default what failed. */
  readonly from?: NodeName;
  /** With `from`: that node alone, or what comes after it too (the default). */
  readonly scope?: "descendants" | "node";
  /** Another config for that node. */
  readonly config?: Config;
  /** Another input for what runs from now on. */
  readonly input?: Json;
}

const OVER: ReadonlySet<RunStatus> = new Set(["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"]);

/** One run of a workflow, wherever it runs. */
export class RunHandle<out Out> {
  readonly id: string;
  readonly #backend: Backend;
  readonly #host: Host;
  /** It was started just now: whoever waits for its end need not look at it first. */
  #isNew: boolean;

  constructor(id: string, backend: Backend, host: Host, { isNew = false }: { readonly isNew?: boolean } = {}) {
    this.id = id;
    this.#backend = backend;
    this.#host = host;
    this.#isNew = isNew;
  }

  /**
   * The result, once it is there. A run that ended without one is a WorkflowFailed; one that ended PARTIAL has a result if
   * nothing that the result is made of failed.
   */
  async result(options: WaitOptions = {}): Promise<Out> {
    checkOptions("result", WAIT_OPTIONS, options);
    const { timeout, signal } = options;
    const view = await this.#ended(timeout === undefined ? undefined : durationMs(timeout, "timeout"), signal);
    if (view.status !== "COMPLETED" && (view.status !== "PARTIAL" || view.output === null))
      throw new WorkflowFailed(view, this.#backend.causeOf?.(view));
    return (await this.#backend.output(this.id)) as Out;
  }

  async status(): Promise<RunStatus> {
    return (await this.#backend.execution(this.id)).status;
  }

  /** The run and its nodes as they stand. */
  view(): Promise<ExecutionView> {
    return this.#backend.execution(this.id);
  }

  /** One node, or one item of a map as `ocr[3]`, with its whole output. */
  node(node: NodeName): Promise<NodeView> {
    return this.#backend.node(this.id, idOf(node));
  }

  /** What has happened and what happens, until the run is over. A connection that breaks is taken up where it broke. */
  async *events({ after = 0, signal }: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<RunEvent, void> {
    const stop = new AbortController();
    const forward = (): void => stop.abort(signal?.reason);
    signal?.addEventListener("abort", forward, { once: true });
    if (signal?.aborted === true) forward();
    try {
      for await (const event of this.#backend.events(this.id, after, stop.signal)) yield shown(event);
    } finally {
      signal?.removeEventListener("abort", forward);
      // With a reason of our own: making up an exception with its stack is dear.
      stop.abort("over");
    }
  }

  /** Ends it, and everything open in it. */
  cancel(): Promise<void> {
    return this.#command("cancel");
  }

  /** Starts nothing new until it is resumed. */
  pause(): Promise<void> {
    return this.#command("pause");
  }

  resume(): Promise<void> {
    return this.#command("resume");
  }

  /** Runs what failed again, or a part, and keeps the rest. The run stays the same; `result` waits for the new end. */
  async retry({ from, scope, config, input }: RetryRequest = {}): Promise<this> {
    const given = {
      ...(config !== undefined && { config: ownJson("config", config) }),
      ...(input !== undefined && { input_params: ownJson("input", input) }),
    };
    // With another config, or alone, it is that node itself that is meant.
    const whole = from !== undefined && scope !== "node" && config === undefined;
    await this.#command("retry", {
      ...(from !== undefined && { from: whole ? await this.#firstPart(idOf(from)) : idOf(from) }),
      ...(scope !== undefined && { scope }),
      ...given,
    });
    return this;
  }

  /** What is asked before a node, such as its condition, is part of it and is asked again. */
  async #firstPart(id: string): Promise<string> {
    const { nodes = {} } = await this.#backend.execution(this.id);
    const ids = Object.keys(nodes);
    const own = ids.indexOf(id);
    return ids.find((other, i) => i < own && other.startsWith(`${id}#`)) ?? id;
  }

  /** Sends word to a node that waits for it, now or later. */
  async signal(name: NodeName, data: Json = null): Promise<void> {
    await this.#command("signal", { name: idOf(name), data: ownJson("data", data) });
  }

  /** Approves what waits for a person, with what the form asks for. */
  approve(node: NodeName, data: Json = null, { comment }: { readonly comment?: string } = {}): Promise<void> {
    return this.#decide(node, "approve", data, comment);
  }

  reject(
    node: NodeName,
    { data = null, comment }: { readonly data?: Json; readonly comment?: string } = {},
  ): Promise<void> {
    return this.#decide(node, "reject", data, comment);
  }

  async #decide(
    node: NodeName,
    decision: "approve" | "reject",
    data: Json,
    comment: string | undefined,
  ): Promise<void> {
    const own = ownJson("data", data);
    const { generation } = await this.#backend.execution(this.id);
    const review = reviewId(this.id, generation, idOf(node));
    await this.#backend.decide(
      review,
      { decision, data: own, ...(comment !== undefined && { comment }) },
      this.#host.id() + this.#host.id(),
    );
  }

  #command(command: Command, body: JsonObject = {}): Promise<void> {
    return this.#backend.command(this.id, command, body, this.#host.id() + this.#host.id());
  }

  /** The run once it is over. */
  async #ended(timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<ExecutionView> {
    const stop = new AbortController();
    const forward = (): void => stop.abort(signal?.reason);
    signal?.addEventListener("abort", forward, { once: true });
    if (signal?.aborted === true) forward();
    let isLate = false;
    const giveUp = async (): Promise<void> => {
      await this.#host.sleep(timeoutMs!, stop.signal);
      isLate = !stop.signal.aborted;
      stop.abort();
    };
    if (timeoutMs !== undefined) void giveUp();
    try {
      if (this.#isNew) {
        this.#isNew = false;
        await this.#backend.untilOver(this.id, 0, stop.signal);
      }
      for (;;) {
        const view = await this.#backend.execution(this.id);
        if (OVER.has(view.status)) return view;
        signal?.throwIfAborted();
        if (isLate) throw new ResultTimeout(this.id, timeoutMs!);
        await this.#backend.untilOver(this.id, view.seq, stop.signal);
      }
    } finally {
      signal?.removeEventListener("abort", forward);
      // With a reason of our own: making up an exception with its stack is dear.
      stop.abort("over");
    }
  }
}

function shown({ seq, type, at, node_id: node, attempt, data }: EventView): RunEvent {
  return { seq, type, at, node, attempt, data };
}

function idOf(node: NodeName): string {
  const id = typeof node === "string" ? node : node?.id;
  if (typeof id === "string" && id !== "") return id;
  throw new MillraceError("INVALID_TYPE", { field: "node", expected: "the id or handle of a node", got: typeof node });
}
