import type { GateAsk } from "../message.ts";

/**
 * Those who wait at a gate. Executions take turns, each with its oldest ask: one that brings a flood stands in its own way
 * and in nobody else's.
 */
export class WaitingLine {
  /** In the order of their turns. */
  private readonly turns = new Map<string, Map<number, GateAsk>>();
  length = 0;

  add(execution: string, asks: readonly GateAsk[]): void {
    let own = this.turns.get(execution);
    if (own === undefined) this.turns.set(execution, (own = new Map()));
    for (const ask of asks) own.set(ask.ask, ask);
    this.length += asks.length;
  }

  has(execution: string, ask: number): boolean {
    return this.turns.get(execution)?.has(ask) ?? false;
  }

  get(execution: string, ask: number): GateAsk | undefined {
    return this.turns.get(execution)?.get(ask);
  }

  /** Who comes next. */
  get first(): GateAsk | undefined {
    for (const asks of this.turns.values()) for (const ask of asks.values()) return ask;
    return undefined;
  }

  /** Who comes next, and who after that, as if nobody were added. */
  *inTurn(): Generator<{ readonly execution: string; readonly ask: GateAsk }, void> {
    let rounds = Array.from(this.turns, ([execution, asks]) => ({ execution, asks: asks.values() }));
    while (rounds.length > 0) {
      const left: typeof rounds = [];
      for (const round of rounds) {
        const { value, done } = round.asks.next();
        if (done === true) continue;
        yield { execution: round.execution, ask: value };
        left.push(round);
      }
      rounds = left;
    }
  }

  /** Takes one out whose turn it was: its execution goes behind all others. */
  take(execution: string, ask: number): void {
    const own = this.turns.get(execution);
    if (own === undefined || !own.delete(ask)) return;
    this.length--;
    this.turns.delete(execution);
    if (own.size > 0) this.turns.set(execution, own);
  }

  /** Takes one out that does not wait any more. */
  remove(execution: string, ask: number): void {
    const own = this.turns.get(execution);
    if (own === undefined || !own.delete(ask)) return;
    this.length--;
    if (own.size === 0) this.turns.delete(execution);
  }

  toJSON(): readonly (readonly [string, readonly GateAsk[]])[] {
    return Array.from(this.turns, ([execution, asks]) => [execution, [...asks.values()]] as const);
  }
}
