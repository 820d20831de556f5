import { entityId, entityKind } from "../../src/core/entity.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { buildPlan, type Plan } from "../../src/core/execution/plan.ts";
import type { ExecutionState } from "../../src/core/execution/state.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import { contentHash } from "../../src/json/hash.ts";
import type { Remains } from "../../src/simulator/history.ts";

interface RecordRow {
  readonly entity: string;
  readonly version: number;
  readonly count: number;
  readonly text: string;
}

/** What is stored of journals, whoever stores it. */
export interface StoredJournals {
  readonly definitions: Readonly<Record<string, Workflow>>;
  /** Those of an entity in the order of their versions. */
  readonly records: readonly RecordRow[];
  /** The newest of an entity; undefined if there is none. */
  snapshot(entity: string): { readonly version: number; readonly text: string } | undefined;
}

/** The journals of a store, read row by row, without the engine's own loader. */
export class Journals {
  readonly definitions: Readonly<Record<string, Workflow>>;
  /** By execution. */
  readonly events: ReadonlyMap<string, readonly ExecutionEvent[]>;
  /** By entity, of every kind. */
  readonly written: ReadonlyMap<string, readonly unknown[]>;
  /** Where versions do not follow on each other. */
  readonly gaps: readonly string[];
  readonly #stored: StoredJournals;
  readonly #plans = new Map<string, Plan>();

  constructor(stored: StoredJournals) {
    this.#stored = stored;
    this.definitions = stored.definitions;
    const written = new Map<string, ExecutionEvent[]>();
    const gaps: string[] = [];
    for (const { entity, version, count, text } of stored.records) {
      const list = written.get(entity) ?? [];
      written.set(entity, list);
      if (version !== list.length + 1) gaps.push(`${entity} goes on with ${version} after ${list.length}`);
      const own = JSON.parse(text) as ExecutionEvent[];
      if (own.length !== count) gaps.push(`${entity} has ${own.length} events at ${version}, and says ${count}`);
      list.push(...own);
    }
    const executions = [...written].filter(([entity]) => entityKind(entity) === "execution");
    this.events = new Map(executions.map(([entity, events]) => [entityId(entity), events]));
    this.written = written;
    this.gaps = gaps;
  }

  /** The state that the whole journal gives. */
  fold(id: string): ExecutionState {
    const events = this.events.get(id)!;
    const state = executionMachine.create(id, this.#planOf(events));
    for (const event of events) executionMachine.evolve(state, event);
    return state;
  }

  /** The same by the newest snapshot and what came after it; undefined if there is none. */
  foldFromSnapshot(id: string): ExecutionState | undefined {
    const snapshot = this.#stored.snapshot(`execution/${id}`);
    if (snapshot === undefined) return undefined;
    const events = this.events.get(id)!;
    const state = executionMachine.restore(id, this.#planOf(events), snapshot.text);
    for (const event of events.slice(snapshot.version)) executionMachine.evolve(state, event);
    return state;
  }

  /** Hashes of each fold, for the checker to compare. */
  folds(): Remains["folds"] {
    return Array.from(this.events.keys(), (id) => {
      const hashOf = (fold: () => ExecutionState): string => {
        try {
          return contentHash(executionMachine.snapshot(fold()));
        } catch (error) {
          return `no state: ${String(error)}`;
        }
      };
      const whole = (): ExecutionState => this.fold(id);
      const fromSnapshot = hashOf(() => this.foldFromSnapshot(id) ?? whole());
      return { entity: `execution/${id}`, whole: hashOf(whole), fromSnapshot, again: hashOf(whole) };
    });
  }

  #planOf([accepted]: readonly ExecutionEvent[]): Plan {
    if (accepted?.kind !== "accepted") throw new Error("a journal does not begin with its acceptance");
    const { definition } = accepted;
    let plan = this.#plans.get(definition);
    if (plan === undefined) this.#plans.set(definition, (plan = buildPlan(definition, this.definitions[definition]!)));
    return plan;
  }
}
