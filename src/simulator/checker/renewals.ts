import { added, type Amounts, settled } from "../../core/gate/amounts.ts";
import type { GateEvent, GateRenewed } from "../../core/gate/events.ts";
import type { GateRule } from "../../core/gate/rule.ts";
import type { Commit } from "./evidence.ts";
import type { Found, Invariant } from "./invariant.ts";

/** What may be missing only because numbers are rounded. */
const ROUNDING = 1e-3;

/** What of a gate must not be lost, as its events tell of it from the first to the last. */
class Ledger {
  version = 0;
  private rule: GateRule | null = null;
  private override: GateRule | null = null;
  private closedUntilMs = 0;
  private isTripped = false;
  private isForsaken = false;
  private spent: Amounts = {};
  /** Of a rate: what was left when somebody was last let through, by which rule. */
  private left: { readonly level: number; readonly atMs: number; readonly rule: GateRule } | null = null;
  private readonly waiting = new Map<string, Amounts>();
  private readonly held = new Map<string, Amounts>();

  see(event: GateEvent): void {
    this.version++;
    if (event.kind === "gateRuled") this.rule = event.rule;
    if (event.kind === "gateForsaken") {
      this.isForsaken = true;
      this.isTripped = false;
      this.override = null;
      this.spent = {};
    }
    if (event.kind === "asksQueued") {
      this.isForsaken = false;
      for (const { ask, estimate = {} } of event.asks) this.waiting.set(`${event.execution} ${ask}`, estimate);
    }
    if (event.kind === "asksGranted") {
      const { level, atMs } = event;
      this.left = level === undefined || this.rule === null ? null : { level, atMs, rule: this.rule };
      for (const { execution, ask } of event.grants) this.grant(`${execution} ${ask}`);
    }
    if (event.kind === "asksRefused") {
      for (const ask of event.asks) this.waiting.delete(`${event.execution} ${ask}`);
    }
    if (event.kind === "asksLapsed") {
      for (const { execution, ask } of event.asks) this.held.delete(`${execution} ${ask}`);
    }
    if (event.kind === "asksSuperseded") {
      for (const { execution, ask } of event.asks) this.waiting.delete(`${execution} ${ask}`);
    }
    if (event.kind === "asksReturned") {
      const used = new Map(event.used?.map((one) => [one.ask, one.used]));
      for (const ask of event.asks) this.giveBack(`${event.execution} ${ask}`, used.get(ask));
    }
    if (event.kind === "gateClosed") this.closedUntilMs = Math.max(this.closedUntilMs, event.untilMs);
    if (event.kind === "breakerOpened") this.closedUntilMs = event.untilMs;
    if (event.kind !== "commandApplied") return;
    if (event.command === "override") this.override = event.rule ?? null;
    else this.isTripped = event.command === "trip";
    if (event.command !== "reset") return;
    this.spent = {};
    this.closedUntilMs = 0;
  }

  /** What a renewal has to say. */
  toJSON(): unknown {
    const { version, rule, override, closedUntilMs, isTripped, spent, held, waiting } = this;
    const names = { held: [...held.keys()].toSorted(), waiting: [...waiting.keys()].toSorted() };
    return { version, rule, override, closedUntilMs, isTripped, spent, ...names };
  }

  /** Why it may not be removed at this moment. What comes after is judged by the rate itself, and by the budget. */
  needAt(nowMs: number): string | undefined {
    const { rule, override, held, waiting, isTripped, isForsaken } = this;
    if (held.size > 0 || waiting.size > 0) return "is in use";
    if (override !== null || isTripped) return "is as somebody has set it";
    if (rule?.kind === "rate" && this.left?.rule === rule) {
      const { level, atMs } = this.left;
      const isFull = level + ((nowMs - atMs) / 1000) * rule.perSecond >= rule.burst - ROUNDING;
      if (!isFull) return "has a bucket that is not full";
    }
    return rule?.kind === "budget" && !isForsaken ? "knows what was spent" : undefined;
  }

  private grant(name: string): void {
    this.held.set(name, this.waiting.get(name) ?? {});
    this.waiting.delete(name);
  }

  private giveBack(name: string, used: Amounts | undefined): void {
    const reserved = this.held.get(name);
    this.held.delete(name);
    this.waiting.delete(name);
    const isBudget = (this.override ?? this.rule)?.kind === "budget";
    if (reserved !== undefined && isBudget) this.spent = added(this.spent, settled(reserved, used));
  }
}

/** The same of what a renewal says. */
function said({ state }: GateRenewed): unknown {
  const { version, rule, override, times, isTripped, budget } = state;
  const held = state.held.map(({ execution, ask }) => `${execution} ${ask}`);
  const waiting = state.line.flatMap(([, execution, asks]) => asks.map(({ ask }) => `${execution} ${ask}`));
  const rest = { closedUntilMs: times[3], isTripped, spent: budget?.spent ?? {} };
  return { version, rule, override, ...rest, held: held.toSorted(), waiting: waiting.toSorted() };
}

/** A record of a journal that has not been cut off. */
interface Kept {
  readonly last: number;
  readonly isRenewal: boolean;
}

/**
 * What says all that a gate is says all of it; no journal is cut that does not hold such an event; and no gate is removed
 * that has something to say.
 */
const nothingIsForgotten: Invariant = {
  id: "I49",
  name: "what is cut off is not forgotten",
  world(evidence, _stories, found) {
    const ledgers = new Map<string, Ledger>();
    const journals = new Map<string, Kept[]>();
    for (const commit of evidence.surviving) {
      for (const { entity, version, events } of commit.entry.records) {
        if (!entity.startsWith("gate/")) continue;
        const ledger = ledgers.get(entity) ?? new Ledger();
        ledgers.set(entity, ledger);
        let isRenewal = false;
        for (const event of events as unknown as readonly GateEvent[]) {
          if (event.kind === "gateRenewed") compare(entity, ledger, event, commit, found);
          isRenewal ||= event.kind === "gateRenewed";
          ledger.see(event);
        }
        const kept = { last: version + events.length - 1, isRenewal };
        journals.set(entity, [...(journals.get(entity) ?? []), kept]);
      }
      for (const entity of commit.entry.purge ?? []) {
        const need = ledgers.get(entity)?.needAt(commit.entry.timeMs);
        if (need !== undefined) found(`${entity} was removed, and ${need}`, { commit });
        ledgers.delete(entity);
        journals.delete(entity);
      }
      for (const { entity, belowVersion } of commit.entry.cut ?? []) {
        const left = (journals.get(entity) ?? []).filter(({ last }) => last >= belowVersion);
        journals.set(entity, left);
        if (!left.some(({ isRenewal }) => isRenewal)) {
          found(`${entity} was cut below ${belowVersion}, and nothing that is left says what it is`, { commit });
        }
      }
    }
  },
};

function compare(entity: string, ledger: Ledger, event: GateRenewed, commit: Commit, found: Found): void {
  const [is, says] = [JSON.stringify(ledger), JSON.stringify(said(event))];
  if (is !== says) found(`${entity} says it is ${says}, and is ${is}`, { commit });
}

export const RENEWALS: readonly Invariant[] = [nothingIsForgotten];
