import { DEFAULT_LIMITS, rateLimit } from "../definition/load-limits.ts";
import { checkDefinition } from "../definition/read.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import { quote } from "../errors/registry.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import type { Builder } from "./builder.ts";
import { BUILDER_OPTIONS } from "./builder-options.ts";
import { type Body, type Calling, type Closure, expecting, retryingIf, withGiven } from "./closure.ts";
import { type AnyPlacing, DefinitionWriter, type NodeDraft, type Part } from "./definition-writer.ts";
import { DEPENDENCY, type Handle, nodePlace } from "./dependency.ts";
import { type Duration, durationSeconds } from "./duration.ts";
import { type Expr, isExpr, refTo } from "./expression.ts";
import { type End, type Node, nodeHandle, routeHandle } from "./handle.ts";
import { InvalidWorkflow } from "./invalid-workflow.ts";
import { checkOptions } from "./known-options.ts";
import { foreignLimits, nodeLimitFields, type NodeLimits, workflowLimitFields } from "./limits.ts";
import type { FunctionRetryPolicy, Retry, RetryPolicy, WorkflowOptions } from "./options.ts";
import { type InputOf, type OutputOf, parseOrFail, type StandardSchema, toJsonSchema } from "./standard-schema.ts";
import { PARTS, type Workflow, type WorkflowParts } from "./workflow.ts";

/** The input of a workflow that has none. */
export type NoInput = Readonly<Record<string, never>>;

/** Begins a workflow. */
export function workflow<S extends StandardSchema>(
  name: string,
  options: WorkflowOptions<S> & { readonly input: S },
): Builder<OutputOf<S>, InputOf<S>>;
export function workflow(name: string, options?: Omit<WorkflowOptions<StandardSchema>, "input">): Builder<NoInput>;
export function workflow(name: string, options: WorkflowOptions<StandardSchema> = {}): unknown {
  checkOptions(`the workflow ${quote(name)}`, BUILDER_OPTIONS.workflow, options);
  return new WorkflowBuilder(name, options);
}

/** Any options of a node, with all types forgotten. */
interface AnyOptions extends AnyPlacing, NodeLimits {
  readonly timeout?: Duration;
  readonly queueTimeout?: Duration;
  readonly dlq?: string;
  readonly retry?: Retry | FunctionRetryPolicy;
}

/** What the signatures of `Builder` promise. Here types are forgotten, and code that was not type-checked is caught. */
class WorkflowBuilder {
  readonly name: string;
  readonly input = refTo("input", []);
  readonly #options: WorkflowOptions<StandardSchema>;
  readonly #writer: DefinitionWriter;
  readonly #ends = new Set<string>();
  #isDone = false;

  constructor(name: string, options: WorkflowOptions<StandardSchema>) {
    this.name = name;
    this.#options = options;
    this.#writer = new DefinitionWriter(name, options.input);
  }

  node(id: string, options: AnyOptions | Body, run?: Body): Node<unknown> {
    return typeof options === "function" ? this.#function(id, {}, options) : this.#function(id, options, run);
  }

  #function(id: string, options: AnyOptions, run: Body | undefined): Node<unknown> {
    checkNode("node", id, options);
    const handler = this.#writer.addFunction(id, options, bodyOf(id, run), withGiven, retrying(options));
    return this.#add({
      id,
      placing: options,
      handler,
      config: (scope) => scope.arguments,
      fields: this.#taskFields(options),
    });
  }

  repeat(
    id: string,
    options: AnyOptions & { readonly every?: Duration; readonly max?: number },
    run: Body,
    until: (output: unknown, given: unknown) => unknown,
  ): Node<unknown> {
    checkNode("repeat", id, options);
    const check = expecting("true or false", "until", (value) => typeof value === "boolean");
    const round: Calling = (body) => async (given) => {
      const value = await (body as Closure)(given);
      return { value: value ?? null, done: check(await until(value, given)) };
    };
    const place = `${nodePlace(id)}.output`;
    return this.#add({
      id,
      placing: options,
      handler: this.#writer.addFunction(id, options, bodyOf(id, run), round, retrying(options)),
      config: (scope) => scope.arguments,
      fields: { ...this.#taskFields(options), repeat: repeatFields(`${place}.done`, options) },
      seen: { place: `${place}.value` },
    });
  }

  map(
    id: string,
    options: AnyOptions & {
      readonly over: Expr<unknown> | Closure | readonly unknown[];
      readonly concurrency?: number;
      readonly toleratedFailures?: number | string;
    },
    run: Body | Workflow<never, unknown>,
  ): Node<unknown> {
    checkNode("map", id, options);
    const { over, concurrency, toleratedFailures } = options;
    const items = this.#asked(id, "over", over, expecting("a list", "over", Array.isArray));
    const calls = typeof run === "function" ? undefined : { workflow: partsOf(id, run), perItem: true };
    const { retry, ...fields } = this.#taskFields(options);
    const config: JsonObject = {
      items: items.value,
      ...(concurrency !== undefined && { max_concurrency: concurrency }),
      ...(toleratedFailures !== undefined && { tolerated_failures: toleratedFailures }),
      ...(retry !== undefined && { retry }),
    };
    const draft = { id, placing: options, handler: "map", fields, parts: items.parts };
    if (calls !== undefined) {
      const item = { name: calls.workflow.name, input: "{{ item }}" };
      return this.#add({ ...draft, calls, config: () => ({ ...config, handler: "workflow", config: item }) });
    }
    const ofItem: Calling = (body) => (given, config) => {
      const { item, index } = config as { readonly item: Json; readonly index: number };
      return (body as (item: unknown, given: object) => unknown)(item, { ...given, index });
    };
    const handler = this.#writer.addFunction(id, options, bodyOf(id, run as Body), ofItem, retrying(options));
    const item = { item: "{{ item }}", index: "{{ index }}" };
    return this.#add({
      ...draft,
      config: (scope) => ({ ...config, handler, config: { ...item, ...scope.arguments } }),
    });
  }

  sub(id: string, child: Workflow<never, unknown>, options: AnyOptions & { readonly input: unknown }): Node<unknown> {
    checkNode("sub", id, options);
    const calls = { workflow: partsOf(id, child), perItem: false };
    const input = this.#asked(id, "input", options.input);
    const config = { name: calls.workflow.name, input: input.value };
    return this.#add({ id, placing: options, handler: "workflow", config: () => config, parts: input.parts, calls });
  }

  task(
    id: string,
    options: AnyOptions & {
      readonly handler: string;
      readonly config?: unknown;
      readonly output?: StandardSchema;
      readonly repeat?: {
        readonly until: (self: unknown) => Expr<boolean>;
        readonly every?: Duration;
        readonly max?: number;
      };
    },
  ): Node<unknown> {
    checkNode("task", id, options);
    const { handler, output, repeat } = options;
    const config = this.#writer.embed(options.config ?? {}, true) as JsonObject;
    const until = repeat === undefined ? "" : this.#writer.source(repeat.until(refTo(`${nodePlace(id)}.output`, [])));
    return this.#add({
      id,
      placing: options,
      handler,
      config: () => config,
      fields: { ...this.#taskFields(options), ...(repeat !== undefined && { repeat: repeatFields(until, repeat) }) },
      seen: decodedBy(output, id),
    });
  }

  approval(id: string, options: AnyReview): Node<unknown> {
    const place = `${nodePlace(id)}.output`;
    const node = this.#review(id, options, {
      place: `${place}.data`,
      also: `${id}#rejected`,
      ...decodedBy(options.form, id),
    });
    this.#writer.addHidden(id, "rejected", {
      handler: "end",
      dependencies: [id],
      condition: `${place}.decision == "reject"`,
      config: { status: "FAILED", message: `${id} was rejected by {{ ${place}.by }}` },
    });
    return node;
  }

  review(id: string, options: AnyReview): Node<unknown> {
    const decode = decodedBy(options.form, id).decode;
    return this.#review(id, options, {
      ...(decode !== undefined && {
        decode: async (decided) => {
          const { data } = decided as { readonly data: Json };
          return data === null ? decided : { ...(decided as JsonObject), data: await decode(data) };
        },
      }),
    });
  }

  #review(id: string, options: AnyReview, seen: NodeDraft["seen"] & object): Node<unknown> {
    checkNode("review", id, options);
    const { form, fourEyes, escalate, expiresIn, onExpire } = options;
    const title = this.#asked(id, "title", options.title, expecting("a text", "title", isText));
    const assignees = this.#asked(id, "assignees", options.assignees, expecting("a list", "assignees", Array.isArray));
    const values = this.#asked(id, "values", options.values, expecting("an object", "values", isFields));
    const confidence = this.#asked(id, "confidence", options.confidence);
    const source = this.#asked(id, "source", options.source);
    const schema = form === undefined ? { type: "null" } : toJsonSchema(form);
    const config: JsonObject = {
      title: title.value,
      ...(schema !== undefined && { form: schema }),
      ...(options.values !== undefined && { values: values.value }),
      ...(options.confidence !== undefined && { confidence: confidence.value }),
      ...(options.source !== undefined && { source: source.value }),
      ...(options.assignees !== undefined && { assignees: assignees.value }),
      ...(fourEyes !== undefined && { four_eyes: fourEyes }),
      ...(escalate !== undefined && {
        escalate: { after_seconds: durationSeconds(escalate.after, "escalate.after"), assignees: escalate.assignees },
      }),
      ...(expiresIn !== undefined && { due_seconds: durationSeconds(expiresIn, "expiresIn") }),
      ...(onExpire === "reject" && { on_due: { decision: "reject" } }),
      ...(typeof onExpire === "object" && {
        on_due: { decision: "approve", data: this.#writer.embed(onExpire.approveWith) },
      }),
    };
    const parts = [title, assignees, values, confidence, source].flatMap((asked) => asked.parts);
    return this.#add({ id, placing: options, handler: "review", config: () => config, parts, seen });
  }

  sleep(
    id: string,
    options: AnyOptions & {
      readonly for?: Duration | Expr<number> | Closure;
      readonly until?: Date | string | Expr<string> | Closure;
    },
  ): Node<unknown> {
    checkNode("sleep", id, options);
    const { for: span, until } = options;
    if ((span === undefined) === (until === undefined)) {
      throw new MillraceError("CONFIG_INVALID", { id, reason: 'it must have one of "for" and "until"' });
    }
    const wait = until === undefined ? this.#span(id, span!) : this.#moment(id, until);
    const { parts, ...config } = wait;
    return this.#add({ id, placing: options, handler: "wait", config: () => config, parts });
  }

  #span(id: string, span: Duration | Expr<number> | Closure): { seconds: Json; parts: readonly Part[] } {
    if (isExpr(span)) return { seconds: `{{ (${this.#writer.source(span)}) * 0.001 }}`, parts: [] };
    if (typeof span !== "function") return { seconds: durationSeconds(span, "for"), parts: [] };
    const { value, parts } = this.#asked(id, "for", span, (given) => durationSeconds(given as Duration, "for"));
    return { seconds: value, parts };
  }

  #moment(id: string, until: Date | string | Expr<string> | Closure): { until: Json; parts: readonly Part[] } {
    if (until instanceof Date) return { until: until.toISOString(), parts: [] };
    const date = (given: unknown): unknown => (given instanceof Date ? given.toISOString() : given);
    const { value, parts } = this.#asked(id, "until", until, date);
    return { until: value, parts };
  }

  signal(
    id: string,
    options: AnyOptions & {
      readonly signal?: string;
      readonly data?: StandardSchema;
      readonly timeout?: Duration;
    } = {},
  ): Node<unknown> {
    checkNode("signal", id, options);
    const { signal = id, data, timeout } = options;
    const config: JsonObject = {
      signal,
      ...(timeout !== undefined && { timeout_seconds: durationSeconds(timeout, "timeout") }),
    };
    return this.#add({ id, placing: options, handler: "wait", config: () => config, seen: decodedBy(data, id) });
  }

  router(
    id: string,
    options: AnyOptions & {
      readonly routes: Readonly<Record<string, Expr<boolean> | Closure>>;
      readonly else?: string;
      readonly mode?: "exclusive" | "inclusive";
    },
  ): unknown {
    checkNode("router", id, options);
    const { routes, else: otherwise, mode = "exclusive" } = options;
    const closures = Object.entries(routes).filter(
      (route): route is [string, Closure] => typeof route[1] === "function",
    );
    const chosen = `${nodePlace(`${id}#routes`)}.output`;
    const whens = Object.entries(routes).map(([route, when]) => [
      route,
      isExpr(when) ? this.#writer.source(when) : `${JSON.stringify(route)} in ${chosen}`,
    ]);
    const names = [...Object.keys(routes), ...(otherwise === undefined ? [] : [otherwise])];
    if (new Set(names).size < names.length) {
      throw new MillraceError("CONFIG_INVALID", { id, reason: `${quote(otherwise!)} is both a route and "else"` });
    }
    this.#writer.addRouter(id, names);
    const config: JsonObject = {
      mode,
      routes: Object.fromEntries(whens) as JsonObject,
      ...(otherwise !== undefined && { else: otherwise }),
    };
    const parts = closures.length === 0 ? [] : [{ name: "routes", run: fittingRoutes(closures, mode) }];
    const node = this.#add({ id, placing: options, handler: "router", config: () => config, parts });
    const handles = names.map((name) => [name, routeHandle(node[DEPENDENCY], name)]);
    return Object.assign(node, { routes: Object.fromEntries(handles) as object });
  }

  end(id: string, options: AnyOptions & { readonly output?: unknown }): unknown {
    checkNode("end", id, options);
    const output = this.#asked(id, "output", options.output ?? null);
    const config = { status: "COMPLETED", output: output.value };
    this.#add({ id, placing: options, handler: "end", config: () => config, parts: output.parts });
    this.#ends.add(id);
    return { id };
  }

  fail(id: string, options: AnyOptions & { readonly message: string | Expr<string> }): void {
    checkNode("fail", id, options);
    const config = { status: "FAILED", message: this.#writer.embed(options.message) };
    this.#add({ id, placing: options, handler: "end", config: () => config });
  }

  output(of: Readonly<Record<string, Handle<unknown>>>, ...ends: readonly End<unknown>[]): Workflow<never, unknown> {
    this.#open();
    const named = new Set(ends.map((end) => end?.id));
    const forgotten = [...this.#ends].filter((id) => !named.has(id));
    if (forgotten.length > 0) {
      const reason = `it may end the run, so "output" has to name it: wf.output({ … }, ${forgotten.join(", ")})`;
      throw new MillraceError("CONFIG_INVALID", { id: forgotten[0]!, reason });
    }
    this.#writer.addOutput(of);
    this.#isDone = true;
    const parts = this.#parts();
    return {
      name: this.name,
      [PARTS]: parts,
      toJSON: () => parts.definition((child) => child.hash),
    } as unknown as Workflow<never, unknown>;
  }

  #parts(): WorkflowParts {
    const { name } = this;
    const { functions, queues, children } = this.#writer;
    const definition: WorkflowParts["definition"] = (versionOf) => ({
      name,
      ...workflowFields(this.#options),
      ...workflowLimitFields(this.#options, this.input, (value) => this.#writer.embed(value)),
      nodes: this.#writer.nodes(versionOf),
    });
    const written = definition((child) => child.hash);
    // What the settings of a server call a limit is known there alone: it refuses what it does not know.
    const foreign = foreignLimits(written["nodes"] as readonly JsonObject[], this.#options.limits);
    const catalogue = {
      get: (handler: string) => (functions.has(handler) ? { engine: false } : undefined),
      names: () => functions.keys(),
      // A handler by name is served by whoever serves it.
      allowMissing: true,
      defaults: { limits: { ...Object.fromEntries(foreign.map((name) => [name, rateLimit(1)])), ...DEFAULT_LIMITS } },
    };
    const { hash, errors } = checkDefinition(written, { handlers: catalogue });
    if (hash === undefined) throw new InvalidWorkflow(name, errors, written);
    return { name, definition, hash, input: this.#options.input, functions, queues, children: [...children.values()] };
  }

  #taskFields(options: AnyOptions): JsonObject {
    return { ...taskFields(options), ...nodeLimitFields(options, (value) => this.#writer.embed(value)) };
  }

  #add(draft: NodeDraft): Node<unknown> {
    this.#open();
    return nodeHandle(this.#writer.add(draft));
  }

  #open(): void {
    if (this.#isDone) throw new Error(`The workflow ${quote(this.name)} is complete: \`output\` was its last word`);
  }

  /** A value of a config: as it stands, or what a function will give, which then is a part of the node. */
  #asked(
    id: string,
    part: string,
    value: unknown,
    check: (given: unknown) => unknown = (given) => given,
  ): { readonly value: Json; readonly parts: readonly Part[] } {
    if (typeof value !== "function") return { value: this.#writer.embed(value), parts: [] };
    const run: Closure = async (given) => check(await (value as Closure)(given));
    return { value: `{{ ${nodePlace(`${id}#${part}`)}.output }}`, parts: [{ name: part, run }] };
  }
}

function checkNode(kind: keyof typeof BUILDER_OPTIONS, id: string, options: object): void {
  checkOptions(`the ${kind} ${quote(id)}`, BUILDER_OPTIONS[kind], options);
}

function isFields(value: unknown): value is JsonObject {
  return isJsonObject(value as Json);
}

interface AnyReview extends AnyOptions {
  readonly title: string | Expr<string> | Closure;
  readonly form?: StandardSchema;
  readonly values?: unknown;
  readonly confidence?: unknown;
  readonly source?: unknown;
  readonly assignees?: readonly string[] | Expr<readonly string[]> | Closure;
  readonly fourEyes?: boolean;
  readonly escalate?: { readonly after: Duration; readonly assignees: readonly string[] };
  readonly expiresIn?: Duration;
  readonly onExpire?: "fail" | "reject" | { readonly approveWith: Json };
}

function workflowFields(options: WorkflowOptions<StandardSchema>): JsonObject {
  const { description, labels, input, onError, timeout, maxParallelNodes, retry, dlq, priority } = options;
  const schema = input === undefined ? undefined : toJsonSchema(input);
  return {
    ...(description !== undefined && { description }),
    ...(labels !== undefined && { labels }),
    ...(schema !== undefined && { input_schema: schema }),
    ...(onError !== undefined && { on_error: onError }),
    ...(timeout !== undefined && { timeout_seconds: durationSeconds(timeout, "timeout") }),
    ...(maxParallelNodes !== undefined && { max_parallel_nodes: maxParallelNodes }),
    ...(retry !== undefined && { retry: retryFields(retry) }),
    ...(dlq !== undefined && { dlq }),
    ...(priority !== undefined && { priority }),
  };
}

function taskFields({ timeout, queueTimeout, queue, priority, dlq, retry }: AnyOptions): JsonObject {
  return {
    ...(timeout !== undefined && { timeout_seconds: durationSeconds(timeout, "timeout") }),
    ...(queueTimeout !== undefined && { queue_timeout_seconds: durationSeconds(queueTimeout, "queueTimeout") }),
    ...(retry !== undefined && { retry: retryFields(retry) }),
    ...(queue !== undefined && { queue }),
    ...(priority !== undefined && { priority }),
    ...(dlq !== undefined && { dlq }),
  };
}

function retryFields(retry: number | RetryPolicy): JsonObject {
  if (typeof retry === "number") return { max_attempts: retry };
  const { attempts, backoff, factor, max, jitter } = retry;
  return {
    ...(attempts !== undefined && { max_attempts: attempts }),
    ...(backoff !== undefined && { base_delay_seconds: durationSeconds(backoff, "backoff") }),
    ...(factor !== undefined && { exponential_base: factor }),
    ...(max !== undefined && { max_delay_seconds: durationSeconds(max, "max") }),
    ...(jitter !== undefined && { jitter }),
  };
}

function repeatFields(until: string, { every, max }: { readonly every?: Duration; readonly max?: number }): JsonObject {
  return {
    until,
    ...(every !== undefined && { every_seconds: durationSeconds(every, "every") }),
    ...(max !== undefined && { max }),
  };
}

function retrying({ retry }: AnyOptions): ((handler: Handler) => Handler) | undefined {
  const retryIf = typeof retry === "object" && "retryIf" in retry ? retry.retryIf : undefined;
  return retryIf === undefined ? undefined : (handler) => retryingIf(handler, retryIf);
}

function decodedBy(schema: StandardSchema | undefined, id: string): { readonly decode?: (json: Json) => unknown } {
  return schema === undefined ? {} : { decode: (json) => parseOrFail(schema, json, `What ${quote(id)} gave`) };
}

/** Which routes fit, of those that are functions. Of routes that exclude each other none is asked after the first. */
function fittingRoutes(routes: readonly (readonly [string, Closure])[], mode: "exclusive" | "inclusive"): Closure {
  const check = expecting("true or false", "routes", (value) => typeof value === "boolean");
  return async (given) => {
    const chosen: string[] = [];
    for (const [route, when] of routes) {
      if (!check(await when(given))) continue;
      chosen.push(route);
      if (mode === "exclusive") break;
    }
    return chosen;
  };
}

function bodyOf(id: string, run: Body | undefined): Body {
  if (typeof run === "function") return run;
  throw new MillraceError("CONFIG_INVALID", { id, reason: "it has no function to run" });
}

function partsOf(id: string, child: Workflow<never, unknown>): WorkflowParts {
  const parts = child?.[PARTS] as WorkflowParts | undefined;
  if (parts !== undefined) return parts;
  throw new MillraceError("CONFIG_INVALID", { id, reason: "it calls something that `wf.output` did not make" });
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
