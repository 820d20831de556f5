import type { GateAsk } from "../message.ts";

/** One who waits, and since when. */
export interface Waiting extends GateAsk {
  readonly atMs: number;
}

/** So long does one who waits have to wait for each point of priority that others have more, to be like them. */
const AGEING_MS = 10_000;

const NOBODY: ReadonlySet<string> = new Set();

type Asks = Map<number, Waiting>;
type Executions = Map<string, Asks>;

/**
 * Those who wait at a gate. Workflows take turns, and the executions of a workflow take turns, each with its oldest ask: one that
 * brings a flood stands in its own way and in nobody else's. Higher priority goes first; but who waits becomes like those of
 * the highest in time, and has its turn among them, so that nobody waits for ever.
 */
export class WaitingLine {
  /** By workflow and execution, each in the order of their turns. */
  private readonly turns = new Map<string, Executions>();
  private readonly workflowOf = new Map<string, string>();
  /** How many wait with each priority. */
  private readonly priorities = new Map<number, number>();
  length = 0;

  add(execution: string, asks: readonly (GateAsk & { readonly atMs?: number })[], workflow = "", atMs = 0): void {
    const group = this.workflowOf.get(execution) ?? workflow;
    this.workflowOf.set(execution, group);
    let executions = this.turns.get(group);
    if (executions === undefined) this.turns.set(group, (executions = new Map()));
    let own = executions.get(execution);
    if (own === undefined) executions.set(execution, (own = new Map()));
    for (const ask of asks) {
      own.set(ask.ask, { atMs, ...ask });
      this.count(ask, 1);
    }
  }

  clear(): void {
    this.turns.clear();
    this.workflowOf.clear();
    this.priorities.clear();
    this.length = 0;
  }

  has(execution: string, ask: number): boolean {
    return this.asksOf(execution)?.has(ask) ?? false;
  }

  get(execution: string, ask: number): GateAsk | undefined {
    return this.asksOf(execution)?.get(ask);
  }

  /** Of which workflow an execution is that waits. */
  groupOf(execution: string): string | undefined {
    return this.workflowOf.get(execution);
  }

  /** Whether somebody waits who is of another workflow. */
  hasOthers(workflow: string): boolean {
    return this.turns.size > 1 || (this.turns.size === 1 && !this.turns.has(workflow));
  }

  /** Who comes next at a moment. */
  first(nowMs: number, passedBy: ReadonlySet<string> = NOBODY): Turn | undefined {
    for (const turn of this.inTurn(nowMs, passedBy)) return turn;
    return undefined;
  }

  /** Who comes next, and who after that, as if nobody were added and no time passed; some workflows may be passed by. */
  *inTurn(nowMs: number, passedBy: ReadonlySet<string> = NOBODY): Generator<Turn, void> {
    if (this.priorities.size <= 1) return yield* takingTurns(this.turns, passedBy);
    const highest = Math.max(...this.priorities.keys());
    const levels = new Map<number, Map<string, Executions>>();
    for (const [workflow, executions] of this.turns) {
      for (const [execution, asks] of executions) {
        for (const ask of asks.values()) {
          const aged = Math.floor(Math.max(0, nowMs - ask.atMs) / AGEING_MS);
          put(levels, Math.min(highest, (ask.priority ?? 0) + aged), workflow, execution, ask);
        }
      }
    }
    for (const level of [...levels.keys()].toSorted((a, b) => b - a)) yield* takingTurns(levels.get(level)!, passedBy);
  }

  /** Takes one out whose turn it was: its execution goes behind the others of its workflow, and that behind all others. */
  take(execution: string, ask: number): void {
    const workflow = this.workflowOf.get(execution);
    if (workflow === undefined || !this.remove(execution, ask)) return;
    const executions = this.turns.get(workflow);
    if (executions === undefined) return;
    this.turns.delete(workflow);
    this.turns.set(workflow, executions);
    const own = executions.get(execution);
    if (own === undefined) return;
    executions.delete(execution);
    executions.set(execution, own);
  }

  /** Takes one out that does not wait any more. */
  remove(execution: string, ask: number): boolean {
    const own = this.asksOf(execution);
    const removed = own?.get(ask);
    if (own === undefined || removed === undefined) return false;
    own.delete(ask);
    this.count(removed, -1);
    if (own.size > 0) return true;
    const workflow = this.workflowOf.get(execution)!;
    this.workflowOf.delete(execution);
    const executions = this.turns.get(workflow)!;
    executions.delete(execution);
    if (executions.size === 0) this.turns.delete(workflow);
    return true;
  }

  toJSON(): readonly (readonly [workflow: string, execution: string, asks: readonly Waiting[]])[] {
    return Array.from(this.turns).flatMap(([workflow, executions]) =>
      Array.from(executions, ([execution, asks]) => [workflow, execution, [...asks.values()]] as const),
    );
  }

  private asksOf(execution: string): Asks | undefined {
    const workflow = this.workflowOf.get(execution);
    return workflow === undefined ? undefined : this.turns.get(workflow)?.get(execution);
  }

  private count({ priority = 0 }: GateAsk, change: 1 | -1): void {
    this.length += change;
    const left = (this.priorities.get(priority) ?? 0) + change;
    if (left === 0) this.priorities.delete(priority);
    else this.priorities.set(priority, left);
  }
}

export interface Turn {
  readonly execution: string;
  readonly ask: Waiting;
}

function* takingTurns(
  workflows: ReadonlyMap<string, Executions>,
  passedBy: ReadonlySet<string>,
): Generator<Turn, void> {
  const going = passedBy.size === 0 ? workflows : new Map([...workflows].filter(([name]) => !passedBy.has(name)));
  yield* inRounds(Array.from(going.values(), executionsInTurn));
}

function executionsInTurn(executions: Executions): Iterator<Turn, void> {
  return inRounds(mapped(executions, ([execution, asks]) => mapped(asks.values(), (ask) => ({ execution, ask }))));
}

/** One of each, then the next of each that has more. */
function* inRounds(sources: Iterable<Iterator<Turn, void>>): Generator<Turn, void> {
  let round = sources;
  for (;;) {
    const left: Iterator<Turn, void>[] = [];
    for (const source of round) {
      const { value, done } = source.next();
      if (done === true) continue;
      yield value;
      left.push(source);
    }
    if (left.length === 0) return;
    round = left;
  }
}

function* mapped<From, To>(items: Iterable<From>, map: (item: From) => To): Generator<To, void> {
  for (const item of items) yield map(item);
}

function put(
  levels: Map<number, Map<string, Executions>>,
  level: number,
  workflow: string,
  execution: string,
  ask: Waiting,
): void {
  const workflows = levels.get(level) ?? new Map<string, Executions>();
  levels.set(level, workflows);
  const executions = workflows.get(workflow) ?? new Map<string, Asks>();
  workflows.set(workflow, executions);
  const asks = executions.get(execution) ?? new Map<number, Waiting>();
  executions.set(execution, asks);
  asks.set(ask.ask, ask);
}
