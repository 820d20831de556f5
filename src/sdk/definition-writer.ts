import { ID_PATTERN } from "../definition/fields.ts";
import type { Join } from "../definition/workflow.ts";
import { MillraceError } from "../errors/millrace-error.ts";
import { quote } from "../errors/registry.ts";
import { characterCount, isLongerThan } from "../json/characters.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { type NamedDependency, resultTemplate, writeArguments } from "./arguments.ts";
import {
  type Body,
  type Calling,
  type Closure,
  expecting,
  withGiven,
  type WorkflowFunction,
  workflowFunction,
} from "./closure.ts";
import { DEPENDENCY, type Dependency, type Handle, isHandle, nodePlace } from "./dependency.ts";
import { type Duration, durationSeconds } from "./duration.ts";
import { embed, type Expr, isExpr, WRITTEN } from "./expression.ts";
import type { StandardSchema } from "./standard-schema.ts";
import type { WorkflowParts } from "./workflow.ts";

/** Where a node stands, with all types forgotten. */
export interface AnyPlacing {
  readonly after?: Readonly<Record<string, Handle<unknown>>>;
  readonly join?: Join | undefined;
  readonly joinTimeout?: Duration;
  readonly when?: Expr<boolean> | Closure;
  readonly onError?: string | undefined;
  readonly name?: string;
  readonly queue?: string;
  readonly priority?: number;
}

/** A task that a function of a node becomes, and that runs before the node. */
export interface Part {
  readonly name: string;
  readonly run: Closure;
}

export interface NodeDraft {
  readonly id: string;
  readonly placing: AnyPlacing;
  readonly handler: string;
  /** Gets the arguments for a function of the node's own. */
  readonly config: (scope: { readonly arguments: JsonObject }) => JsonObject;
  readonly fields?: JsonObject;
  readonly parts?: readonly Part[];
  /** The workflow that it calls; `version` goes into `config`, or into the config of its items. */
  readonly calls?: { readonly workflow: WorkflowParts; readonly perItem: boolean };
  /** How dependants see it, where that is not simply its output. */
  readonly seen?: Partial<Pick<Dependency, "place" | "decode" | "also">>;
}

/** A node as it stands in a definition, complete but for the versions of workflows it calls. */
interface WrittenNode {
  readonly node: JsonObject;
  readonly calls?: NodeDraft["calls"];
}

interface Edge {
  readonly id: string;
  readonly on: string;
}

/** Marks the tasks that are parts of a node, for those who show a workflow. */
const PART_OF = "x-millrace-part-of";
const OUTPUT_ID = "output#";
const VALID_ID = new RegExp(ID_PATTERN);

/** Collects the nodes of one workflow and the functions they call. */
export class DefinitionWriter {
  readonly functions = new Map<string, WorkflowFunction>();
  readonly queues = new Set<string>();
  readonly children = new Map<string, WorkflowParts>();
  readonly #workflow: string;
  readonly #input: StandardSchema | undefined;
  readonly #nodes: WrittenNode[] = [];
  readonly #ids = new Set<string>();
  /** Which nodes come after a route, by router and route. */
  readonly #targets = new Map<string, Map<string, string[]>>();

  constructor(workflow: string, input: StandardSchema | undefined) {
    this.#workflow = workflow;
    this.#input = input;
  }

  /** Writes a node, and before it the parts that have to run first. Gives what dependants refer to. */
  add(draft: NodeDraft): Dependency {
    const { id, placing, calls, seen = {} } = draft;
    this.#take(id);
    const dependencies = this.#dependencies(id, placing.after ?? {});
    const join = placing.join ?? defaultJoin(dependencies);
    const given = writeArguments(dependencies, join);
    const { before, condition } = this.#addParts(draft, dependencies, join, given);
    const node: JsonObject = {
      id,
      ...(placing.name !== undefined && { name: placing.name }),
      handler: draft.handler,
      config: draft.config({ arguments: given }),
      ...placed(dependencies, join, placing, before),
      ...(condition !== undefined && { condition }),
      ...(placing.onError !== undefined && { on_error: placing.onError }),
      ...draft.fields,
    };
    this.#nodes.push({ node, ...(calls !== undefined && { calls }) });
    if (before === undefined) this.#noteRoutes(id, dependencies);
    if (placing.queue !== undefined) this.queues.add(placing.queue);
    if (calls !== undefined) this.children.set(calls.workflow.name, calls.workflow);
    return {
      owner: this,
      id,
      on: "completed",
      place: `${nodePlace(id)}.output`,
      gives: placing.onError === "continue" ? "result" : "value",
      mayLack: placing.when !== undefined || mayBeSkipped(dependencies, join),
      ...seen,
    };
  }

  /** The functions of a node that have to be asked before it runs, each of them a task that comes after the one before. */
  #addParts(
    { id, placing, parts = [] }: NodeDraft,
    dependencies: readonly NamedDependency[],
    join: Join,
    config: JsonObject,
  ): { readonly before: string | undefined; readonly condition: string | undefined } {
    const { when, queue, priority, onError } = placing;
    let condition = isExpr(when) ? this.source(when) : undefined;
    const asked = typeof when === "function" ? [{ name: "when", run: conditionOf(when) }, ...parts] : parts;
    let before: string | undefined;
    for (const { name, run } of asked) {
      const part = `${id}#${name}`;
      this.#nodes.push({
        node: {
          id: part,
          name: `${id}: ${name}`,
          handler: this.#register(part, workflowFunction({ dependencies, input: this.#input }, run, withGiven)),
          config,
          ...placed(dependencies, join, placing, before),
          ...(condition !== undefined && { condition }),
          // To go on without its answer would be to run the node on nothing.
          ...(onError !== undefined && { on_error: onError === "continue" ? "fail_branch" : onError }),
          ...(queue !== undefined && { queue }),
          ...(priority !== undefined && { priority }),
          [PART_OF]: id,
        },
      });
      if (before === undefined) this.#noteRoutes(part, dependencies);
      condition = name === "when" ? `${nodePlace(part)}.output` : undefined;
      before = part;
    }
    return { before, condition };
  }

  /** A node of the engine's that belongs to another one. */
  addHidden(partOf: string, part: string, node: JsonObject): string {
    const id = `${partOf}#${part}`;
    this.#nodes.push({ node: { id, name: `${partOf}: ${part}`, ...node, [PART_OF]: partOf } });
    return id;
  }

  /** Registers the function of a node, and gives the name of the handler that it is. */
  addFunction(
    id: string,
    placing: AnyPlacing,
    body: Body,
    calling: Calling,
    wrap?: (handler: Handler) => Handler,
  ): string {
    const dependencies = this.#dependencies(id, placing.after ?? {});
    return this.#register(id, workflowFunction({ dependencies, input: this.#input }, body, calling, wrap));
  }

  #register(id: string, fn: WorkflowFunction): string {
    const name = `${this.#workflow}/${id}`;
    if (isLongerThan(name, 128)) {
      const reason = `${quote(name)} is the name of its handler and has ${characterCount(name)} characters; at most 128 are allowed`;
      throw new MillraceError("INVALID_NODE_ID", { reason });
    }
    this.functions.set(name, fn);
    return name;
  }

  /** Plain data with expressions in it, as the definition holds it. */
  embed(value: unknown, isConfig = false): Json {
    const reads: Dependency[] = [];
    const json = embed(value, reads, isConfig);
    for (const dependency of reads) this.#own(dependency);
    return json;
  }

  /** An expression without braces. */
  source(expression: Expr<unknown>): string {
    const { source, reads } = expression[WRITTEN];
    if (source === undefined) throw new TypeError("A text`…` is no condition; write expr`…`");
    for (const dependency of reads) this.#own(dependency);
    return source;
  }

  addRouter(id: string, routes: readonly string[]): void {
    this.#targets.set(id, new Map(routes.map((route) => [route, []])));
  }

  /** The node that collects the result. */
  addOutput(of: Readonly<Record<string, Handle<unknown>>>): void {
    const dependencies = this.#dependencies("output", of);
    const config = Object.fromEntries(
      dependencies.map(({ name, dependency }) => [name, resultTemplate(dependency)] as const),
    );
    // A result of which every part may be missing is still a result.
    const isSure = dependencies.length === 0 || dependencies.some(({ dependency }) => !dependency.mayLack);
    const join = isSure ? "none_failed" : "all_done";
    if (isSure) this.#checkResult(dependencies);
    this.#noteRoutes(OUTPUT_ID, dependencies);
    this.#nodes.push({
      node: { id: OUTPUT_ID, name: "output", handler: "output", config, ...placed(dependencies, join, {}) },
    });
  }

  /**
   * A run whose only failures were caught ends well. What such a failure skips must not be part of the result, unless its
   * type says that it may be missing.
   */
  #checkResult(dependencies: readonly NamedDependency[]): void {
    const nodes = new Map(this.#nodes.map(({ node }) => [node["id"] as string, node]));
    const edgesOf = (id: string): readonly Edge[] =>
      ((nodes.get(id)?.["dependencies"] as readonly (string | Edge)[] | undefined) ?? []).map((edge) =>
        typeof edge === "string" ? { id: edge, on: "completed" } : edge,
      );
    const caught = new Set<string>();
    for (const id of nodes.keys()) for (const edge of edgesOf(id)) if (edge.on === "failed") caught.add(edge.id);
    const safe = new Set<string>();
    const culprit = (id: string): string | undefined => {
      const stack = [id];
      for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
        if (caught.has(at)) return at;
        if (safe.has(at)) continue;
        safe.add(at);
        // A node that takes parents however they ended has an output all the same.
        if (nodes.get(at)?.["join"] === "all_done") continue;
        for (const edge of edgesOf(at)) if (edge.on === "completed") stack.push(edge.id);
      }
      return undefined;
    };
    for (const { dependency } of dependencies) {
      const { id, on } = dependency;
      const found = on === "completed" ? culprit(id) : undefined;
      if (found === undefined) continue;
      const reason = `it is part of the result, and is missing if ${quote(found)} fails and that is caught; name its \`optional\` or \`done\` instead`;
      throw new MillraceError("CONFIG_INVALID", { id, reason });
    }
  }

  nodes(versionOf: (child: WorkflowParts) => string): JsonObject[] {
    return this.#nodes.map(({ node, calls }) => {
      const config = node["config"] as JsonObject;
      if (node["handler"] === "router") return { ...node, config: this.#routes(node["id"] as string, config) };
      if (calls === undefined) return node;
      const version = versionOf(calls.workflow);
      const called = calls.perItem
        ? { ...config, config: { ...(config["config"] as JsonObject), version } }
        : { ...config, version };
      return { ...node, config: called };
    });
  }

  /** The routes of a router, each with the nodes that came after it. */
  #routes(id: string, config: JsonObject): JsonObject {
    const targets = this.#targets.get(id)!;
    const to = (route: string): readonly string[] => {
      const found = targets.get(route)!;
      if (found.length > 0) return found;
      const reason = `nothing comes after its route ${quote(route)}`;
      throw new MillraceError("CONFIG_INVALID", { id, reason });
    };
    const { routes, else: otherwise, ...rest } = config;
    return {
      ...rest,
      routes: Object.entries(routes as JsonObject).map(([route, when]) => ({ when, to: to(route) })),
      ...(typeof otherwise === "string" && { else: to(otherwise) }),
    };
  }

  #noteRoutes(target: string, dependencies: readonly NamedDependency[]): void {
    for (const { dependency } of dependencies) {
      if (dependency.route !== undefined) this.#targets.get(dependency.id)!.get(dependency.route)!.push(target);
    }
  }

  #dependencies(id: string, after: Readonly<Record<string, unknown>>): readonly NamedDependency[] {
    const routers = new Set<string>();
    return Object.entries(after).map(([name, handle]) => {
      if (!isHandle(handle)) throw notAHandle(id, name);
      if (name === "input" || name === "ctx") {
        const reason = `${quote(id)} comes after something under the name ${quote(name)}, which every function is given`;
        throw new MillraceError("INVALID_NODE_ID", { reason });
      }
      const dependency = this.#own(handle[DEPENDENCY]);
      if (dependency.route !== undefined) {
        if (routers.has(dependency.id)) throw twoRoutes(id, dependency.id);
        routers.add(dependency.id);
      }
      return { name, dependency };
    });
  }

  #own(dependency: Dependency): Dependency {
    if (dependency.owner === this) return dependency;
    const reason = `the handle of ${quote(dependency.id)} belongs to another workflow`;
    throw new MillraceError("CONFIG_INVALID", { id: this.#workflow, reason });
  }

  #take(id: string): void {
    if (typeof id !== "string" || !VALID_ID.test(id) || id.includes("#")) {
      const hint = "Use letters, digits, _ . and -, at most 128, starting with a letter, digit or _";
      const name = quote(typeof id === "string" ? id : typeof id);
      throw new MillraceError("INVALID_NODE_ID", { reason: `${name} cannot be the id of a node. ${hint}` });
    }
    if (this.#ids.has(id)) throw new MillraceError("DUPLICATE_NODE_ID", { id, first: "another node" });
    this.#ids.add(id);
  }
}

function defaultJoin(dependencies: readonly NamedDependency[]): Join {
  const isConditional = dependencies.some(({ dependency: { route, on } }) => route !== undefined || on === "failed");
  return isConditional ? "all_success" : "none_failed";
}

/** Whether a join may find that there is nothing to run for. The types say the same: see `Skips`. */
function mayBeSkipped(dependencies: readonly NamedDependency[], join: Join): boolean {
  if (dependencies.length === 0 || join === "all_done") return false;
  // To come after the end of a node, whatever it was, skips nothing.
  const lacks = dependencies.filter(({ dependency: { mayLack, on } }) => mayLack && on !== "done").length;
  return join === "none_failed" || join === "one_success" ? lacks === dependencies.length : lacks > 0;
}

/**
 * The edges into a node, and how it joins them. After a part of the node that part alone decides, because it has joined
 * all the rest; only where all must be ok do they stand here as well, so that whoever checks the definition sees it.
 */
function placed(
  dependencies: readonly NamedDependency[],
  join: Join,
  { joinTimeout }: AnyPlacing,
  before?: string,
): JsonObject {
  if (before !== undefined && join !== "all_success") return { dependencies: [before] };
  const edges = new Map<string, Json>(before === undefined ? [] : [[before, before]]);
  for (const { dependency } of dependencies) {
    const { id, on, also } = dependency;
    edges.set(`${id} ${on}`, on === "completed" ? id : { id, on });
    // A join that counts would count it twice.
    const counts = join === "one_success" || join.startsWith("quorum:");
    if (also !== undefined && !counts) edges.set(`${also} done`, { id: also, on: "done" });
  }
  const timeout = before === undefined ? joinTimeout : undefined;
  return {
    ...(edges.size > 0 && { dependencies: [...edges.values()] }),
    ...(join !== "none_failed" && { join }),
    ...(timeout !== undefined && { join_timeout_seconds: durationSeconds(timeout, "joinTimeout") }),
  };
}

function conditionOf(when: Closure): Closure {
  const check = expecting("true or false", "when", (value) => typeof value === "boolean");
  return async (given) => check(await when(given));
}

function notAHandle(id: string, name: string): MillraceError {
  const reason = `${quote(id)} comes after ${quote(name)}, which is no handle of a node`;
  return new MillraceError("CONFIG_INVALID", { id, reason });
}

function twoRoutes(id: string, router: string): MillraceError {
  const reason = `it comes after two routes of ${quote(router)}; make one route of them`;
  return new MillraceError("CONFIG_INVALID", { id, reason });
}
