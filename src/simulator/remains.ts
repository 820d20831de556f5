import { DEFINITION_SCOPE, entityId, entityKind } from "../core/entity.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import { cacheMachine } from "../core/cache/machine.ts";
import { gateMachine } from "../core/gate/machine.ts";
import { fold as foldRecords, type FoldedRecord } from "../core/fold.ts";
import type { Machine } from "../core/machine.ts";
import { executionMachine } from "../core/execution/machine.ts";
import { buildPlan, type Plan } from "../core/execution/plan.ts";
import type { Workflow } from "../definition/workflow.ts";
import type { MemoryStore } from "../drivers/memory/memory-store.ts";
import { contentHash } from "../json/hash.ts";
import { partsOf } from "../store/snapshot-text.ts";
import type { Remains } from "./history.ts";
import { letterOf } from "./network.ts";

/** What is left in the store at the end, and whether its journals fold to the same state every way. */
export function remainsOf(memory: MemoryStore, definitions: Readonly<Record<string, Workflow>>): Remains {
  const { data } = memory;
  const plans = new Map<string, Plan>();
  const planOf = (hash: string): Plan => {
    let plan = plans.get(hash);
    if (plan === undefined) plans.set(hash, (plan = buildPlan(hash, definitions[hash]!)));
    return plan;
  };
  const known = data.records.get(DEFINITION_SCOPE);
  const folds: Remains["folds"][number][] = [];
  for (const [entity, { records, snapshot }] of data.entities) {
    const plain = PLAIN.get(entityKind(entity));
    if (plain !== undefined) {
      const text = snapshot === null ? null : snapshotText(memory, entity, snapshot.text);
      const tail = records.filter(({ version, count }) => version + count - 1 > (snapshot?.version ?? 0));
      folds.push(foldPlain(plain, entity, records, text === null ? null : { text, tail }));
    }
    if (entityKind(entity) !== "execution") continue;
    const events = records.flatMap((record) => JSON.parse(record.text) as ExecutionEvent[]);
    const accepted = events[0];
    // Without its definition no owner could fold it.
    if (accepted?.kind !== "accepted" || known?.has(accepted.definition) !== true) continue;
    const plan = planOf(accepted.definition);
    const whole = fold(entity, plan, events);
    const text = snapshot === null ? null : snapshotText(memory, entity, snapshot.text);
    const fromSnapshot =
      snapshot === null || text === null ? whole : foldSnapshot(entity, plan, text, events.slice(snapshot.version));
    folds.push({ entity, whole, fromSnapshot, again: fold(entity, plan, events) });
  }
  return {
    tasks: [...data.tasks.byToken.keys()],
    inbox: data.partitions.reduce((sum, partition) => sum + partition.inbox.length, 0),
    wakes: data.partitions.flatMap((partition) => [...partition.wakes.at.keys()]),
    deadLetters: [...data.deadLetters.values()].map(letterOf),
    listed: [...data.lists].flatMap(([list, { byId }]) => [...byId.keys()].map((id) => `${list} ${id}`)),
    headers: [...data.headers.values()].map(({ entity, class: kind, status, version }) => ({
      entity,
      class: kind,
      status,
      version,
    })),
    folds,
  };
}

function snapshotText(memory: MemoryStore, entity: string, text: string): string | null {
  const hashes = partsOf(text);
  if (hashes === undefined) return text;
  const records = memory.data.records.get(entity);
  const parts = hashes.map((hash) => records?.get(hash));
  return parts.includes(undefined) ? null : parts.join("");
}

function fold(entity: string, plan: Plan, events: readonly ExecutionEvent[]): string {
  const state = executionMachine.create(entityId(entity), plan);
  for (const event of events) executionMachine.evolve(state, event);
  return contentHash(executionMachine.snapshot(state));
}

/** Kinds that need no definition. */
const PLAIN: ReadonlyMap<string, Machine> = new Map(
  ([gateMachine, cacheMachine] as Machine[]).map((machine) => [machine.kind, machine]),
);

function foldPlain(
  machine: Machine,
  entity: string,
  records: readonly FoldedRecord[],
  snapshot: { readonly text: string; readonly tail: readonly FoldedRecord[] } | null,
): Remains["folds"][number] {
  const id = entityId(entity);
  const folded = (state: unknown, some: readonly FoldedRecord[]): string => {
    try {
      return contentHash(machine.snapshot(foldRecords(machine, state, some)));
    } catch (error) {
      return String(error);
    }
  };
  const whole = (): string => folded(machine.create(id, undefined), records);
  const fromSnapshot =
    snapshot === null ? whole() : folded(machine.restore(id, undefined, snapshot.text), snapshot.tail);
  return { entity, whole: whole(), fromSnapshot, again: whole() };
}

function foldSnapshot(entity: string, plan: Plan, text: string, tail: readonly ExecutionEvent[]): string {
  const state = executionMachine.restore(entityId(entity), plan, text);
  for (const event of tail) executionMachine.evolve(state, event);
  return contentHash(executionMachine.snapshot(state));
}
