import { isBatchWithFailures, NEVER_TRIGGERED } from "../../core/execution/messages/retry.ts";
import { dryRun } from "../../core/execution/view.ts";
import type { Cancel, Pause, Release, Resume, Retry, RetryScope, Signal } from "../../core/message.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import type { Caller } from "./caller.ts";
import type { Decisions } from "./decisions.ts";
import type { DefinitionChecker } from "./definition-checker.ts";
import type { Definitions } from "./definitions.ts";
import { checkedConfig } from "./edited-config.ts";
import { type ExecutionReader, standing } from "./execution-reader.ts";
import { isExecutionId } from "./ids.ts";
import { checkInput } from "./input-check.ts";
import type { Payloads } from "./payloads.ts";
import { notFound, Refusal } from "./refusal.ts";

export interface RetryRequest {
  readonly from?: string | undefined;
  readonly scope?: "failed" | "descendants" | "node" | undefined;
  readonly config?: JsonObject | undefined;
  readonly input_params?: Json | undefined;
}

/** Which nodes would run again, and which would be kept. */
export interface DryRun {
  readonly rerun: readonly string[];
  readonly kept: readonly string[];
}

/** What people ask of an execution. The owner decides; here it is only asked. */
export class Commands {
  readonly #decisions: Decisions;
  readonly #reader: ExecutionReader;
  readonly #payloads: Payloads;
  readonly #checker: DefinitionChecker;
  readonly #definitions: Definitions;

  constructor(parts: {
    readonly decisions: Decisions;
    readonly reader: ExecutionReader;
    readonly payloads: Payloads;
    readonly checker: DefinitionChecker;
    readonly definitions: Definitions;
  }) {
    this.#decisions = parts.decisions;
    this.#reader = parts.reader;
    this.#payloads = parts.payloads;
    this.#checker = parts.checker;
    this.#definitions = parts.definitions;
  }

  cancel(caller: Caller, id: string): Promise<Json> {
    return this.#decisions.command(caller, id, "cancel", {}, (command): Cancel => ({ kind: "cancel", ...command }));
  }

  pause(caller: Caller, id: string): Promise<Json> {
    return this.#decisions.command(caller, id, "pause", {}, (command): Pause => ({ kind: "pause", ...command }));
  }

  resume(caller: Caller, id: string): Promise<Json> {
    return this.#decisions.command(caller, id, "resume", {}, (command): Resume => ({ kind: "resume", ...command }));
  }

  async retry(caller: Caller, id: string, request: RetryRequest): Promise<Json> {
    const { from, config, input_params: input } = request;
    const scope = scopeOf(request);
    const edited = await this.#checked(id, request);
    const value = input === undefined ? undefined : await this.#payloads.keep(id, input);
    return this.#decisions.command(caller, id, "retry", request as Json, (command): Retry => ({
      kind: "retry",
      ...command,
      scope,
      ...(from !== undefined && { from }),
      ...(config !== undefined && { config: edited ?? config }),
      ...(value !== undefined && { input: value }),
    }));
  }

  /** The config that a retry brings as it would be stored. Throws if that or its input does not fit, or is nobody's. */
  async #checked(id: string, { from, config, input_params: input }: RetryRequest): Promise<JsonObject | undefined> {
    if (!isExecutionId(id)) throw notFound("execution", id);
    const isEdit = from !== undefined && config !== undefined;
    const edited = isEdit ? await checkedConfig(this.#checker, this.#reader, id, from, config) : undefined;
    if (input === undefined) return edited;
    await this.#reader.require(id);
    // One that is open is refused by its owner, whatever it is given.
    const hash = await this.#reader.find(id, ({ state }) => (state.isEnded ? state.plan.hash : undefined));
    const definition = hash === undefined ? undefined : await this.#definitions.get(hash);
    if (definition !== undefined) checkInput(definition, input);
    return edited;
  }

  /** What a retry would do, judged as its owner would judge it now. */
  async dryRun(id: string, request: RetryRequest): Promise<DryRun> {
    const scope = scopeOf(request);
    const judged = await this.#reader.read(id, ({ state }) => {
      const execution = standing(state);
      if (!state.isEnded) throw new Refusal("EXECUTION_OPEN", { id }, { execution });
      if (request.from !== undefined && !state.plan.graph.indexOf.has(request.from))
        throw notFound("node", request.from);
      if (state.startedAtMs === null)
        throw new Refusal("NOT_RETRYABLE", { id }, { detail: `${NEVER_TRIGGERED}.`, execution });
      if (scope === "failed" && state.status === "completed" && !isBatchWithFailures(state))
        throw new Refusal("NOT_RETRYABLE", { id }, { execution });
      return dryRun(state, { scope, ...(request.from !== undefined && { from: request.from }) });
    });
    await this.#checked(id, request);
    return judged;
  }

  /** Lets an execution go on that could not be decided, with all that was sent to it meanwhile. */
  release(caller: Caller, id: string): Promise<Json> {
    return this.#decisions.command(caller, id, "release", {}, ({ request }): Release => ({ kind: "release", request }));
  }

  async signal(caller: Caller, id: string, name: string, data: Json): Promise<Json> {
    // A large one is written down first, and nothing is written for an execution that is not there.
    await this.#reader.require(id);
    const value = await this.#payloads.keep(id, data);
    return this.#decisions.command(caller, id, "signal", { name, data }, (command): Signal => ({
      kind: "signal",
      ...command,
      name,
      data: value,
    }));
  }
}

function scopeOf({ from, scope, config }: RetryRequest): RetryScope {
  if (from === undefined && (scope === "descendants" || scope === "node")) {
    throw new MillraceError("INVALID_TYPE", {
      field: "from",
      expected: `a node id with scope "${scope}"`,
      got: "nothing",
    });
  }
  if (from !== undefined && scope === "failed") {
    throw new MillraceError("INVALID_TYPE", {
      field: "scope",
      expected: '"descendants" or "node" with "from"',
      got: '"failed"',
    });
  }
  if (from === undefined && config !== undefined) {
    throw new MillraceError("INVALID_TYPE", { field: "config", expected: 'used together with "from"', got: "alone" });
  }
  return from === undefined ? "failed" : (scope ?? "descendants");
}
