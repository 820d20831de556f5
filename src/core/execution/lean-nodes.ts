import type { WorkflowNode } from "../../definition/workflow.ts";
import type { CompiledValue } from "../../expression/scope.ts";
import { compileValue } from "../../expression/template.ts";
import { firstTryOf } from "../token.ts";
import { GivenText } from "./given-text.ts";
import type { JoinRule } from "./joins.ts";
import { NO_GATES } from "./plan-gates.ts";
import type { PlanNode } from "./plan-node.ts";

/** Plans of fewer nodes keep everything compiled: ten megabytes, and no step has to look for what it needs. */
export const LEAN_FROM = 5_000;

/** Configs that are kept compiled, by the last digits of their node: those of the steps that are under way, mostly. */
const SLOTS = 1_024;

type NodeIds = { has(id: string): boolean };

const NONE: readonly never[] = [];

/** What many nodes of a plan have in common. */
interface Kind {
  readonly engine: boolean;
  line: number;
  readonly join: JoinRule;
  readonly caught: boolean;
  readonly final: boolean;
  readonly all: LeanNodes;
}

interface Compilation {
  readonly index: number;
  readonly config: CompiledValue;
  readonly given: GivenText;
}

/**
 * The nodes of a large plan that have nothing but a config and dependencies, as most have. Their configs are compiled when
 * they are needed, which is once in each execution: 2 µs of a step, where to keep one compiled takes twice what the rest of its node does.
 */
export class LeanNodes {
  readonly readerCount: Int32Array;
  readonly #nodeIds: NodeIds;
  readonly #kinds = new Map<string, Kind>();
  /** Neighbours often read the same. */
  #lastReads: readonly number[] = NONE;
  readonly #recent: (Compilation | undefined)[] = Array.from({ length: SLOTS });

  /** `readerCount` is filled by whoever makes the plan. */
  constructor(nodeIds: NodeIds, readerCount: Int32Array) {
    this.#nodeIds = nodeIds;
    this.readerCount = readerCount;
  }

  /** The same node in less room; undefined if there is more to it. */
  of(draft: PlanNode, caught: boolean, final: boolean): PlanNode | undefined {
    if (!isPlain(draft)) return undefined;
    const { index, spec, engine, line, join, reads } = draft;
    const key = `${engine} ${line} ${spec.join} ${caught} ${final}`;
    let kind = this.#kinds.get(key);
    if (kind === undefined) this.#kinds.set(key, (kind = { engine, line, join, caught, final, all: this }));
    if (!isSame(reads, this.#lastReads)) this.#lastReads = reads;
    return new LeanNode(index, spec, this.#lastReads, kind);
  }

  /** Whether it is one of those that `of` has made. */
  has(node: PlanNode): boolean {
    return node instanceof LeanNode;
  }

  /** The lines have got their places. */
  settleLines(at: readonly number[]): void {
    for (const kind of this.#kinds.values()) kind.line = at[kind.line]!;
  }

  compiled({ index, spec }: LeanNode): Compilation {
    const slot = index % SLOTS;
    const known = this.#recent[slot];
    if (known?.index === index) return known;
    const config = compileValue(spec.config, { nodeIds: this.#nodeIds });
    return (this.#recent[slot] = { index, config, given: new GivenText(config) });
  }
}

function isPlain({ condition, until, routes, item, gates, cache, graphs }: PlanNode): boolean {
  const has = condition ?? until ?? item ?? cache ?? graphs;
  return has === null && routes.length === 0 && gates.length === 0;
}

function isSame(reads: readonly number[], others: readonly number[]): boolean {
  return reads.length === others.length && reads.every((read, i) => read === others[i]);
}

class LeanNode implements PlanNode {
  readonly index: number;
  readonly spec: WorkflowNode;
  readonly reads: readonly number[];
  readonly #kind: Kind;

  constructor(index: number, spec: WorkflowNode, reads: readonly number[], kind: Kind) {
    this.index = index;
    this.spec = spec;
    this.reads = reads;
    this.#kind = kind;
  }

  get id(): string {
    return this.spec.id;
  }

  get engine(): boolean {
    return this.#kind.engine;
  }

  get line(): number {
    return this.#kind.line;
  }

  get config(): CompiledValue {
    return this.#kind.all.compiled(this).config;
  }

  get given(): GivenText {
    return this.#kind.all.compiled(this).given;
  }

  get firstTry(): string {
    return firstTryOf(this.spec.id);
  }

  get join(): JoinRule {
    return this.#kind.join;
  }

  get caught(): boolean {
    return this.#kind.caught;
  }

  get readerCount(): number {
    return this.#kind.all.readerCount[this.index]!;
  }

  get final(): boolean {
    return this.#kind.final;
  }

  get condition(): null {
    return null;
  }

  get until(): null {
    return null;
  }

  get routes(): readonly never[] {
    return NONE;
  }

  get routed(): readonly never[] {
    return NONE;
  }

  get item(): null {
    return null;
  }

  get gates(): PlanNode["gates"] {
    return NO_GATES;
  }

  get cache(): null {
    return null;
  }

  get graphs(): null {
    return null;
  }
}
