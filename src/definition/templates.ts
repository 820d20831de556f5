import { NearestName, nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { compileCondition } from "../expression/condition.ts";
import type { ExpressionProblem, Reference } from "../expression/scope.ts";
import { compileValue } from "../expression/template.ts";
import { isJsonObject, type Json } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import type { AncestorQuestion } from "./ancestors.ts";
import { answerAmidCircles, answerAncestors } from "./ancestors.ts";
import { routeConditions } from "./control-nodes.ts";
import type { TopologicalOrder } from "./cycles.ts";
import type { Graph } from "./graph.ts";
import { isTemplate, type KnownHandlers } from "./handlers.ts";
import type { SkipAnalysis } from "./may-skip.ts";
import type { NodeList } from "./node-list.ts";
import { unknownInSchema } from "./output-fields.ts";
import type { ProblemList } from "./problems.ts";
import { referenceText } from "./reference-text.ts";

/** One graph of a definition with what was found out about it. */
export interface ListCheck {
  readonly list: NodeList;
  readonly graph: Graph;
  readonly topology: TopologicalOrder;
  readonly skips: SkipAnalysis;
  readonly outer: ListCheck | undefined;
  /** References to nodes of this graph that are not plain parents; answered all at once. */
  readonly questions: Question[];
  /** Those about nodes that are in a circle, or behind one. */
  readonly amidCircles: Question[];
}

/** Something with templates in it: a whole config, one condition. */
interface Piece {
  readonly kind: "value" | "condition";
  readonly value: Json;
  /** Turns a pointer below the value into one into the document. */
  readonly pointer: (below: string) => string;
  /** `{{ item }}` and `{{ index }}` exist. */
  readonly inMap: boolean;
  /** May read the node's own output. */
  readonly afterwards: boolean;
  /** Why no secret may stand in it, if none may. */
  readonly refusesSecrets?: string | undefined;
}

const SHOWN = "it runs in the engine, which cannot use a secret: its output would show it";

type NodeReference = Extract<Reference, { kind: "node" }>;

interface Question extends AncestorQuestion {
  readonly check: ListCheck;
  readonly index: number;
  readonly piece: Piece;
  readonly reference: NodeReference;
}

/** Compiles every template and condition of a definition and checks what they refer to. */
export class TemplateChecker {
  readonly #handlers: KnownHandlers;
  readonly #inputSchema: Json | undefined;
  readonly #problems: ProblemList;
  readonly #warned = new Set<string>();

  constructor(handlers: KnownHandlers, inputSchema: Json | undefined, problems: ProblemList) {
    this.#handlers = handlers;
    this.#inputSchema = inputSchema;
    this.#problems = problems;
  }

  check(checks: readonly ListCheck[]): void {
    for (const check of checks) new ListTemplates(this, check).run();
    for (const { graph, topology, questions, amidCircles } of checks) {
      const answers = answerAncestors(graph, topology, questions);
      const wrong = questions.filter((_, i) => answers[i] === false);
      const turned = wrong.map(({ node, ancestor }) => ({ node: ancestor, ancestor: node }));
      const comesAfter = answerAncestors(graph, topology, turned);
      for (let i = 0; i < questions.length; i++) {
        if (answers[i] === true) this.checkAvailable(questions[i]!);
        else if (answers[i] === undefined) this.#notChecked(questions[i]!);
      }
      for (let i = 0; i < wrong.length; i++) this.#notBefore(wrong[i]!, comesAfter[i], graph);
      this.#checkAmidCircles(graph, amidCircles);
    }
  }

  /** Whether what comes before will be there is told once there is no circle any more. */
  #checkAmidCircles(graph: Graph, questions: readonly Question[]): void {
    const answers = answerAmidCircles(graph, questions);
    const wrong = questions.filter((_, i) => answers[i] === false);
    const turned = wrong.map(({ node, ancestor }) => ({ node: ancestor, ancestor: node }));
    const comesAfter = answerAmidCircles(graph, turned);
    for (let i = 0; i < wrong.length; i++) this.#notBefore(wrong[i]!, comesAfter[i], graph);
  }

  compileProblem(piece: Piece, { code, message, hint, pointer }: ExpressionProblem): void {
    this.#problems.add(code, piece.pointer(pointer), { reason: message }, { hint });
  }

  #notChecked({ check, index, piece, reference }: Question): void {
    const { id } = check.list.nodes[index]!;
    const path = whereIs(piece, reference, check.graph);
    this.#problems.add("TEMPLATE_NOT_CHECKED", path, { id, reference: reference.id });
  }

  #notBefore({ check, index, piece, reference, node }: Question, comesAfter: boolean | undefined, graph: Graph): void {
    const { id } = check.list.nodes[index]!;
    // Inside a map, what must come first is a matter of the map node.
    const waiting = graph.ids[node]!;
    // What comes after it cannot come before it as well: that would be a circle.
    const hint =
      comesAfter === false
        ? `Add ${quote(reference.id)} to the dependencies of ${quote(waiting)}.`
        : `It can be read by nodes that come after ${quote(reference.id)}.`;
    const path = whereIs(piece, reference, check.graph);
    this.#problems.add("TEMPLATE_REF_NOT_ANCESTOR", path, { id, reference: reference.id }, { hint });
  }

  selfReference(check: ListCheck, index: number, piece: Piece, reference: NodeReference): void {
    const { id } = check.list.nodes[index]!;
    const hint = 'Only "repeat.until" can read the output of its own node.';
    const path = whereIs(piece, reference, check.graph);
    this.#problems.add("TEMPLATE_REF_NOT_ANCESTOR", path, { id, reference: reference.id }, { hint });
  }

  outsideMap(word: string, piece: Piece, reference: Reference, graph: Graph): void {
    const reason = `"${word}" exists only inside a map.`;
    this.#problems.add("TEMPLATE_UNKNOWN_NODE", whereIs(piece, reference, graph), { reason });
  }

  /** Refused here, since the node could only fail. */
  misplacedSecret(check: ListCheck, index: number, piece: Piece, reference: Reference): void {
    if (piece.refusesSecrets === undefined) return;
    const details = { id: check.list.nodes[index]!.id, reason: piece.refusesSecrets };
    this.#problems.add("CONFIG_INVALID", whereIs(piece, reference, check.graph), details, {
      hint: "Read it in the config of a node that a worker runs.",
    });
  }

  /** Why a config has to do without secrets, by who runs it. */
  secretFault(handler: Json | undefined): string | undefined {
    return typeof handler === "string" && this.#handlers.get(handler)?.engine === true ? SHOWN : undefined;
  }

  inputField(piece: Piece, reference: Extract<Reference, { kind: "input" }>, graph: Graph): void {
    const schema = this.#inputSchema;
    // Callers may send more than the schema names, unless it forbids that.
    if (!isJsonObject(schema) || schema["additionalProperties"] !== false || reference.optional) return;
    const unknown = unknownInSchema(schema, reference.path);
    if (unknown === undefined) return;
    const nearest = nearestName(unknown.field, unknown.known);
    const hint = nearest === undefined ? undefined : `Did you mean ${quote(nearest)}?`;
    const details = { reference: "input", field: unknown.field };
    this.#problems.add("TEMPLATE_UNKNOWN_FIELD", whereIs(piece, reference, graph), details, { hint });
  }

  /** The node comes before. Will its output be there, and have the field? */
  checkAvailable({ check, index, piece, reference, node, ancestor }: Question): void {
    if (reference.error || reference.optional) return;
    // The graph that the questioned node belongs to is that of the map around it, if the reference goes outside.
    let owner = check;
    while (owner.graph.indexOf.get(reference.id) === undefined) owner = owner.outer!;
    const target = owner.list.nodes[ancestor]!;
    if (reference.path.length > 0) {
      const unknown = this.#handlers.get(target.handler)?.unknownField(target.config, reference.path);
      if (unknown !== undefined) {
        const nearest = nearestName(unknown.field, unknown.known);
        const known = unknown.known.slice(0, 10).map(quote).join(", ");
        const hint = nearest === undefined ? `It has ${known || "no fields"}.` : `Did you mean ${quote(nearest)}?`;
        const details = { reference: target.id, field: unknown.field };
        this.#problems.add("TEMPLATE_UNKNOWN_FIELD", whereIs(piece, reference, check.graph), details, { hint });
      }
    }
    if (!owner.skips.mayLack(node, ancestor)) return;
    const path = whereIs(piece, reference, check.graph);
    const key = `${path} ${reference.id}`;
    if (this.#warned.has(key)) return;
    this.#warned.add(key);
    const text = referenceText(target.id, reference.path);
    const hint = `Give a default: {{ ${text} | default("…") }}; in an expression ask has() first.`;
    const details = { id: check.list.nodes[index]!.id, reference: reference.id };
    this.#problems.add("TEMPLATE_MAYBE_SKIPPED", path, details, { hint });
  }
}

/** The templates of one graph. */
class ListTemplates {
  readonly #checker: TemplateChecker;
  readonly #check: ListCheck;
  readonly #options: { nodeIds: { has(id: string): boolean }; nearest(name: string): string | undefined };
  /** The node whose parents are marked, and the marks: a parent is a parent in O(1). */
  readonly #marks: Int32Array;
  #marked = -1;

  constructor(checker: TemplateChecker, check: ListCheck) {
    this.#checker = checker;
    this.#check = check;
    this.#marks = new Int32Array(check.graph.nodeCount).fill(-1);
    const nearest = new NearestName(visibleIds(check));
    this.#options = {
      nodeIds: { has: (id) => findOwner(check, id) !== undefined },
      nearest: (name) => nearest.find(name),
    };
    if (check.outer === undefined) this.#options.nodeIds = check.graph.indexOf;
  }

  run(): void {
    const { list, outer } = this.#check;
    const inMap = outer !== undefined;
    for (let index = 0; index < list.nodes.length; index++) {
      const node = list.nodes[index]!;
      const below = (prefix: string) => (rest: string) => list.config(index, prefix + rest);
      if (node.handler === "map") this.#runMap(index, below, inMap);
      else if (node.handler === "router") {
        for (const { text, below: at } of routeConditions(node)) {
          this.#piece(index, { kind: "condition", value: text, pointer: below(at), inMap, afterwards: false });
        }
      } else {
        const refusesSecrets = this.#checker.secretFault(node.handler);
        const pointer = below("");
        this.#piece(index, { kind: "value", value: node.config, pointer, inMap, afterwards: false, refusesSecrets });
      }
      if (node.condition !== undefined) {
        const pointer = (): string => list.field(index, "condition");
        this.#piece(index, { kind: "condition", value: node.condition, pointer, inMap, afterwards: false });
      }
      if (node.repeat !== undefined) {
        const pointer = (): string => `${list.field(index, "repeat")}/until`;
        this.#piece(index, { kind: "condition", value: node.repeat.until, pointer, inMap, afterwards: true });
      }
      for (const field of ["concurrency", "cache", "budget"] as const) {
        const key = node[field]?.key;
        if (key === undefined) continue;
        const pointer = (): string => `${list.field(index, field)}/key`;
        const inItem = inMap || node.handler === "map";
        const refusesSecrets = `the "key" of its ${field} cannot be a secret`;
        this.#piece(index, { kind: "value", value: key, pointer, inMap: inItem, afterwards: false, refusesSecrets });
      }
    }
  }

  #runMap(index: number, below: (prefix: string) => (rest: string) => string, inMap: boolean): void {
    // Nodes inside have a graph of their own.
    const { nodes: _, config, ...own } = this.#check.list.nodes[index]!.config;
    const piece = { kind: "value", afterwards: false } as const;
    this.#piece(index, { ...piece, value: own, pointer: below(""), inMap, refusesSecrets: SHOWN });
    if (config === undefined) return;
    const refusesSecrets = this.#checker.secretFault(own["handler"]);
    this.#piece(index, { ...piece, value: config, pointer: below("/config"), inMap: true, refusesSecrets });
  }

  #piece(index: number, piece: Piece): void {
    const { value } = piece;
    const compiled =
      piece.kind === "condition"
        ? compileCondition(value as string, this.#options)
        : compileValue(value, this.#options);
    for (const problem of compiled.problems) this.#checker.compileProblem(piece, problem);
    for (const reference of compiled.references) this.#reference(index, piece, reference);
  }

  #reference(index: number, piece: Piece, reference: Reference): void {
    const { graph } = this.#check;
    switch (reference.kind) {
      case "node":
        this.#nodeReference(index, piece, reference);
        break;
      case "item":
      case "index":
        if (!piece.inMap) this.#checker.outsideMap(reference.kind, piece, reference, graph);
        break;
      case "input":
        this.#checker.inputField(piece, reference, graph);
        break;
      case "secret":
        this.#checker.misplacedSecret(this.#check, index, piece, reference);
        break;
      case "execution":
        break;
    }
  }

  #nodeReference(index: number, piece: Piece, reference: NodeReference): void {
    const check = this.#check;
    // The node that waits: this one, or the map around it if the reference goes outside.
    let owner = check;
    let node = index;
    while (owner.graph.indexOf.get(reference.id) === undefined) {
      node = owner.list.parent!.index;
      owner = owner.outer!;
    }
    const ancestor = owner.graph.indexOf.get(reference.id)!;
    if (ancestor === node) {
      if (!piece.afterwards || owner !== check) this.#checker.selfReference(check, index, piece, reference);
      return;
    }
    const question: Question = { check, index, piece, reference, node, ancestor };
    if (owner === check && this.#isParent(node, ancestor)) {
      this.#checker.checkAvailable(question);
      return;
    }
    // What solves a circle takes an edge away: what is not upstream with it is not without it either.
    const { rank } = owner.topology;
    const isOrdered = rank[node] !== -1 && rank[ancestor] !== -1;
    (isOrdered ? owner.questions : owner.amidCircles).push(question);
  }

  #isParent(node: number, parent: number): boolean {
    if (this.#marked !== node) {
      this.#marked = node;
      const { parentStart, edgeParent } = this.#check.graph;
      for (let edge = parentStart[node]!; edge < parentStart[node + 1]!; edge++) this.#marks[edgeParent[edge]!] = node;
    }
    return this.#marks[parent] === node;
  }
}

function findOwner(check: ListCheck, id: string): ListCheck | undefined {
  let owner: ListCheck | undefined = check;
  while (owner !== undefined && !owner.graph.indexOf.has(id)) owner = owner.outer;
  return owner;
}

function* visibleIds(check: ListCheck): Iterable<string> {
  for (let owner: ListCheck | undefined = check; owner !== undefined; owner = owner.outer) yield* owner.graph.ids;
}

/**
 * Which string of a piece holds a reference. References do not carry their place, and only those with a problem need
 * one, so the strings are compiled again one by one until it turns up.
 */
function whereIs(piece: Piece, reference: Reference, graph: Graph): string {
  if (piece.kind === "condition" || typeof piece.value !== "object") return piece.pointer("");
  const wanted = JSON.stringify(reference);
  const nodeIds = reference.kind === "node" ? new Set([reference.id]) : graph.indexOf;
  const left: { value: Json; below: string }[] = [{ value: piece.value, below: "" }];
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { value, below } = next;
    if (typeof value === "object" && value !== null) {
      const steps = Object.entries(value).map(([key, member]) => ({
        value: member,
        below: below + pointerStep(key),
      }));
      // In document order: the stack takes them from its end.
      left.push(...steps.reverse());
    } else if (isTemplate(value)) {
      const found = compileValue(value, { nodeIds }).references.some((each) => JSON.stringify(each) === wanted);
      if (found) return piece.pointer(below);
    }
  }
  return piece.pointer("");
}
