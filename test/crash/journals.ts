import { entityId, entityKind } from "../../src/core/entity.ts";
import type { ExecutionEvent } from "../../src/core/execution/events.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { buildPlan, type Plan } from "../../src/core/execution/plan.ts";
import type { ExecutionState } from "../../src/core/execution/state.ts";
import type { Workflow } from "../../src/definition/workflow.ts";
import type { StoreCopy } from "./store-copy.ts";

interface RecordRow {
  readonly entity: string;
  readonly version: number;
  readonly count: number;
  readonly text: string;
}

/** The journals of a store, read row by row, without the engine's own loader. */
export class Journals {
  readonly definitions: Readonly<Record<string, Workflow>>;
  /** By execution. */
  readonly events: ReadonlyMap<string, readonly ExecutionEvent[]>;
  /** Where versions do not follow on each other. */
  readonly gaps: readonly string[];
  readonly #copy: StoreCopy;
  readonly #plans = new Map<string, Plan>();

  constructor(copy: StoreCopy) {
    this.#copy = copy;
    const texts = copy.rows<{ hash: string; text: string }>(
      "select hash, text from records where scope = 'definition'",
    );
    this.definitions = Object.fromEntries(texts.map(({ hash, text }) => [hash, JSON.parse(text) as Workflow]));
    const events = new Map<string, ExecutionEvent[]>();
    const gaps: string[] = [];
    for (const { entity, version, count, text } of copy.rows<RecordRow>(
      "select * from journal order by entity, version",
    )) {
      if (entityKind(entity) !== "execution") continue;
      const list = events.get(entityId(entity)) ?? [];
      events.set(entityId(entity), list);
      if (version !== list.length + 1) gaps.push(`${entity} goes on with ${version} after ${list.length}`);
      const own = JSON.parse(text) as ExecutionEvent[];
      if (own.length !== count) gaps.push(`${entity} has ${own.length} events at ${version}, and says ${count}`);
      list.push(...own);
    }
    this.events = events;
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
    const rows = this.#copy.rows<{ entity: string; version: number; text: string }>("select * from snapshots");
    const snapshot = rows.find(({ entity }) => entity === `execution/${id}`);
    if (snapshot === undefined) return undefined;
    const events = this.events.get(id)!;
    const state = executionMachine.restore(id, this.#planOf(events), this.#snapshotText(snapshot));
    for (const event of events.slice(snapshot.version)) executionMachine.evolve(state, event);
    return state;
  }

  #snapshotText({ entity, text }: { readonly entity: string; readonly text: string }): string {
    if (!text.startsWith("@")) return text;
    const records = this.#copy.rows<{ scope: string; hash: string; text: string }>("select * from records");
    return records.find(({ scope, hash }) => scope === entity && hash === text.slice(1))!.text;
  }

  #planOf([accepted]: readonly ExecutionEvent[]): Plan {
    if (accepted?.kind !== "accepted") throw new Error("a journal does not begin with its acceptance");
    const { definition } = accepted;
    let plan = this.#plans.get(definition);
    if (plan === undefined) this.#plans.set(definition, (plan = buildPlan(definition, this.definitions[definition]!)));
    return plan;
  }
}
