import { MISSING, stepInto } from "./step.ts";
import { nearestName } from "../errors/nearest-name.ts";
import type { Missing, Step } from "./step.ts";
import type { BlobRef, ExpressionProblem, NodeView, Reference, Scope } from "./scope.ts";
import type { Json } from "../json/json.ts";

/** What the words in templates may mean in one workflow. */
export interface CompileOptions {
  readonly nodeIds: { has(id: string): boolean };
  /** The node id that an unknown name was probably meant to be. */
  nearest?(name: string): string | undefined;
}

export type Problem = Omit<ExpressionProblem, "pointer">;

/** A place in the scope that a path or expression reads. */
export type Binding =
  | {
      readonly kind: "node";
      readonly id: string;
      readonly steps: readonly Step[];
      /** Written with the first step `output`: then a key called `error` is a key of the output, always. */
      readonly viaOutput: boolean;
    }
  | { readonly kind: "input"; readonly steps: readonly Step[] }
  | { readonly kind: "item"; readonly steps: readonly Step[] }
  | { readonly kind: "index" }
  | { readonly kind: "execution" }
  | { readonly kind: "secret"; readonly name: string };

const FORBIDDEN_STEPS: ReadonlySet<Step> = new Set(["__proto__", "constructor", "prototype"]);

/** Names by which payloads reach for JavaScript. A node may have such an id (`process` is a likely one); then it is that node. */
const FORBIDDEN_NAMES: ReadonlySet<string> = new Set(
  (
    "process global globalThis window self this require module exports import eval Function Object Reflect Proxy " +
    "Promise Buffer Symbol Array String Number Boolean Date Math JSON Error async await new delete typeof yield " +
    "function return while for var let const class throw void"
  ).split(" "),
);

/** A hint is a courtesy: it must not cost more than the failure it explains. */
const MAX_HINT_NAME = 64;
const MAX_HINT_KEYS = 500;

export function isForbiddenStep(step: Step): boolean {
  return FORBIDDEN_STEPS.has(step);
}

export function isForbiddenName(name: string): boolean {
  return FORBIDDEN_NAMES.has(name);
}

/** Says what `name` followed by `steps` reads, or why it cannot be read. */
export function bind(name: string, steps: readonly Step[], options: CompileOptions): Binding | Problem {
  const forbidden = isForbiddenStep(name) ? name : steps.find(isForbiddenStep);
  if (forbidden !== undefined) return forbiddenPath(forbidden);

  // Reserved ids: no node can have one of these, so they always mean the same.
  switch (name) {
    case "nodes":
      return bindNodes(steps, options);
    case "secrets":
      if (steps.length === 1 && typeof steps[0] === "string") return { kind: "secret", name: steps[0] };
      return { code: "TEMPLATE_SYNTAX", message: "A secret is written {{ secrets.NAME }}: it has no parts." };
    case "item":
      return { kind: "item", steps };
    case "index":
      if (steps.length === 0) return { kind: "index" };
      return { code: "TEMPLATE_SYNTAX", message: "`index` is a number: it has no parts." };
    case "execution":
      if (steps.length === 1 && steps[0] === "id") return { kind: "execution" };
      return { code: "TEMPLATE_SYNTAX", message: "Of the execution only `execution.id` can be read." };
    default:
  }
  if (options.nodeIds.has(name)) return bindNode(name, steps);
  if (name === "input") return { kind: "input", steps };
  return unknownName(name, options);
}

function bindNodes(steps: readonly Step[], options: CompileOptions): Binding | Problem {
  const id = steps[0];
  if (typeof id !== "string") {
    return {
      code: "TEMPLATE_SYNTAX",
      message: "`nodes` needs the id of a node as a literal, so that the order of nodes can be checked.",
      hint: 'nodes["some id"]',
    };
  }
  return options.nodeIds.has(id) ? bindNode(id, steps.slice(1)) : unknownName(id, options);
}

function bindNode(id: string, steps: readonly Step[]): Binding {
  const viaOutput = steps[0] === "output";
  return { kind: "node", id, steps: viaOutput ? steps.slice(1) : steps, viaOutput };
}

export function forbiddenPath(step: Step): Problem {
  return { code: "TEMPLATE_FORBIDDEN_PATH", message: `\`${step}\` cannot be part of a path.` };
}

function unknownName(name: string, options: CompileOptions): Problem {
  if (isForbiddenName(name)) {
    return { code: "EXPRESSION_FORBIDDEN", message: `\`${name}\` is not available in templates and conditions.` };
  }
  const nearest = options.nearest?.(name);
  return {
    code: "TEMPLATE_UNKNOWN_NODE",
    message: `The workflow has no node "${name}".`,
    ...(nearest === undefined ? {} : { hint: `Did you mean "${nearest}"?` }),
  };
}

export function isProblem(bound: Binding | Problem): bound is Problem {
  return "code" in bound;
}

/** True if the binding is the whole output of a node or the whole input: it can pass by reference when it is a blob. */
export function isWhole(binding: Binding): boolean {
  return (binding.kind === "node" || binding.kind === "input") && binding.steps.length === 0;
}

export function viewOf(binding: Binding, scope: Scope): NodeView | undefined {
  if (binding.kind === "node") return scope.node(binding.id);
  return binding.kind === "input" ? scope.input : undefined;
}

/** The blob that must be fetched before the binding can be read. */
export function blobNeeded(binding: Binding, scope: Scope): BlobRef | undefined {
  const view = viewOf(binding, scope);
  return view?.kind === "blob" && view.value === undefined ? view.ref : undefined;
}

/** Reads a place of the scope: own properties only, and the same answer every time. */
export function read(binding: Binding, scope: Scope): Json | Missing {
  switch (binding.kind) {
    case "node":
    case "input": {
      const view = viewOf(binding, scope);
      if (view?.kind === "error" && readsError(binding)) return walk(view.error, binding.steps, 1);
      const output = outputOf(view);
      return output === MISSING ? MISSING : walk(output, binding.steps, 0);
    }
    case "item":
      return scope.item === undefined ? MISSING : walk(scope.item, binding.steps, 0);
    case "index":
      return scope.index ?? MISSING;
    case "execution":
      return scope.executionId;
    case "secret":
      break;
  }
  return MISSING; // The engine never has a secret's value.
}

/** True if it reads the node's error, should the node have failed. */
function readsError(binding: Binding): boolean {
  return binding.kind === "node" && !binding.viaOutput && binding.steps[0] === "error";
}

export function outputOf(view: NodeView | undefined): Json | Missing {
  if (view?.kind === "output") return view.value;
  return view?.kind === "blob" && view.value !== undefined ? view.value : MISSING;
}

function walk(value: Json, steps: readonly Step[], from: number): Json | Missing {
  let at: Json = value;
  for (let index = from; index < steps.length; index += 1) {
    const inside = stepInto(at, steps[index]!) as Json | Missing;
    if (inside === MISSING) return MISSING;
    at = inside;
  }
  return at;
}

/** One sentence on why `read` found nothing: the node, the path as far as it exists, and the nearest key. */
export function whyMissing(binding: Binding, scope: Scope): string {
  if (binding.kind === "index" || (binding.kind === "item" && scope.item === undefined)) {
    return `\`${binding.kind}\` exists only inside a map.`;
  }
  if (binding.kind === "secret" || binding.kind === "execution") return "It cannot be read here.";

  const name = binding.kind === "node" ? binding.id : binding.kind;
  const view = viewOf(binding, scope);
  const failed = view?.kind === "error" && readsError(binding);
  const start = binding.kind === "item" ? (scope.item ?? MISSING) : failed ? view.error : outputOf(view);
  if (start === MISSING) {
    if (binding.kind === "input") return "The execution has no input.";
    return `Node "${name}" has no output${view?.kind === "error" ? ": it failed" : ""}.`;
  }

  let at: Json = start;
  let seen = failed ? `${name}.error` : name;
  for (const step of failed ? binding.steps.slice(1) : binding.steps) {
    const inside = stepInto(at, step) as Json | Missing;
    if (inside === MISSING) return `\`${seen}\` ${lacks(at, step)}`;
    at = inside;
    seen += typeof step === "number" ? `[${step}]` : `.${step}`;
  }
  return `\`${seen}\` has no value.`;
}

function lacks(value: Json, step: Step): string {
  if (value === null) return `is null, so \`${step}\` cannot be read from it.`;
  if (typeof value !== "object") return `is a ${typeof value}, which has no \`${step}\`.`;
  if (Array.isArray(value)) {
    if (typeof step === "number") return `has ${value.length} elements, none at index ${step}.`;
    return `is a list: only an index can be read from it, not \`${step}\`.`;
  }
  const nearest = nearestName(String(step).slice(0, MAX_HINT_NAME), Object.keys(value).slice(0, MAX_HINT_KEYS));
  const subtract = String(step).includes("-") ? " To subtract, put spaces around the minus." : "";
  return `has no key "${step}"${nearest === undefined ? "" : `; the nearest is "${nearest}"`}.${subtract}`;
}

/** What a binding refers to, for the checks and the prefetching of the definition. */
export function referenceTo(binding: Binding, optional: boolean, whole: boolean): Reference {
  switch (binding.kind) {
    case "node":
      return { kind: "node", id: binding.id, path: binding.steps, optional, whole, error: readsError(binding) };
    case "input":
      return { kind: "input", path: binding.steps, optional };
    case "secret":
      return { kind: "secret", name: binding.name };
    case "item":
    case "index":
    case "execution":
      break;
  }
  return { kind: binding.kind };
}
