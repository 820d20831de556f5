import { added, AMOUNT_UNITS, type Amounts, settled } from "../../core/gate/amounts.ts";
import type { GateEvent } from "../../core/gate/events.ts";
import type { BudgetRule, GateRule, TokensRule } from "../../core/gate/rule.ts";
import { type Commit, type Evidence, executionOf, isExecution } from "./evidence.ts";
import type { Found, Invariant } from "./invariant.ts";

/** What may be missing only because numbers are rounded. */
const ROUNDING = 1e-3;

/** One gate that something is reserved at, as its journal tells of it. */
class Account {
  rule: GateRule | null = null;
  override: GateRule | null = null;
  readonly estimates = new Map<string, Amounts>();
  readonly held = new Map<string, Amounts>();
  readonly settled = new Set<string>();
  spent: Amounts = {};
  /** Of tokens: the bucket, filled by hand. */
  level = 0;
  levelAtMs = 0;

  see(event: GateEvent, found: Found, entity: string, commit: Commit): void {
    if (event.kind === "gateRuled") {
      // What has come together under the old rule stays, as far as the new bucket holds it.
      if (this.ruling?.kind === "tokens") this.fill(this.ruling, event.atMs);
      this.rule = event.rule;
      if (event.rule.kind === "tokens") this.level = Math.min(this.level, event.rule.burst);
    }
    if (event.kind === "commandApplied" && event.command === "override") {
      this.judgeRaise(event.rule ?? null, found, entity, commit);
      this.override = event.rule ?? null;
    }
    if (event.kind === "gateForsaken") this.spent = {};
    if (event.kind === "asksQueued") {
      for (const { ask, estimate = {} } of event.asks) this.estimates.set(`${event.execution} ${ask}`, estimate);
    }
    if (event.kind === "asksGranted") {
      for (const { execution, ask } of event.grants) this.grant(`${execution} ${ask}`, event.atMs);
      this.judge(found, entity, commit);
    }
    if (event.kind !== "asksReturned") return;
    const used = new Map(event.used?.map((one) => [one.ask, one.used]));
    for (const ask of event.asks) this.giveBack(`${event.execution} ${ask}`, used.get(ask), event.atMs);
  }

  /** A bucket begins full, so it goes only when it is. What was spent stays spent: who may spend more comes again. */
  remove(found: Found, entity: string, commit: Commit): void {
    const { ruling } = this;
    if (ruling?.kind !== "tokens") return;
    this.fill(ruling, commit.entry.timeMs);
    const missing = ruling.burst - this.level;
    if (missing > ROUNDING) found(`${entity} was removed, and ${missing} tokens were missing`, { commit });
    this.rule = null;
    this.level = 0;
    this.levelAtMs = 0;
  }

  private grant(name: string, atMs: number): void {
    const { ruling } = this;
    let reserved = this.estimates.get(name) ?? {};
    if (ruling?.kind === "tokens") {
      reserved = { tokens: Math.min(reserved.tokens ?? 0, ruling.burst) };
      this.fill(ruling, atMs);
      this.level -= reserved.tokens!;
    }
    this.held.set(name, reserved);
  }

  private giveBack(name: string, used: Amounts | undefined, atMs: number): void {
    const reserved = this.held.get(name);
    if (reserved === undefined) return;
    this.held.delete(name);
    if (used !== undefined) this.settled.add(name);
    const cost = settled(reserved, used);
    this.spent = added(this.spent, cost);
    const { ruling } = this;
    if (ruling?.kind !== "tokens") return;
    this.fill(ruling, atMs);
    this.level = Math.min(ruling.burst, this.level + (reserved.tokens ?? 0) - (cost.tokens ?? 0));
  }

  private fill({ perSecond, burst }: TokensRule, atMs: number): void {
    const isNew = this.levelAtMs === 0;
    this.level = isNew ? burst : Math.min(burst, this.level + ((atMs - this.levelAtMs) / 1000) * perSecond);
    this.levelAtMs = atMs;
  }

  private judge(found: Found, entity: string, commit: Commit): void {
    const { ruling } = this;
    if (ruling?.kind === "tokens" && this.level < -ROUNDING) {
      found(`${entity} let somebody through, and ${-this.level} tokens were missing`, { commit });
    }
    if (ruling?.kind === "budget") this.judgeBudget(ruling, found, entity, commit);
  }

  /** People only ever raise here, and do so at once: none may undo what another has allowed. */
  private judgeRaise(rule: GateRule | null, found: Found, entity: string, commit: Commit): void {
    const { ruling } = this;
    const after = rule ?? this.rule;
    if (ruling?.kind !== "budget" || after?.kind !== "budget") return;
    for (const unit of AMOUNT_UNITS) {
      const [before = Infinity, now = Infinity] = [ruling.limits[unit], after.limits[unit]];
      if (now < before) found(`${entity} was raised, from ${before} ${unit} to ${now}`, { commit });
    }
  }

  private judgeBudget({ limits }: BudgetRule, found: Found, entity: string, commit: Commit): void {
    let sum = this.spent;
    for (const reserved of this.held.values()) sum = added(sum, reserved);
    for (const unit of AMOUNT_UNITS) {
      const limit = limits[unit];
      if (limit === undefined || (sum[unit] ?? 0) <= limit + ROUNDING) continue;
      found(`${entity} has let ${sum[unit]} ${unit} through, and ${limit} may be spent`, { commit });
    }
  }

  private get ruling(): GateRule | null {
    return this.override ?? this.rule;
  }
}

function accounts(evidence: Evidence, found: Found): ReadonlyMap<string, Account> {
  const all = new Map<string, Account>();
  for (const commit of evidence.surviving) {
    for (const { entity, events } of commit.entry.records) {
      if (!/^gate\/(budget|tokens):/.test(entity)) continue;
      let account = all.get(entity);
      if (account === undefined) all.set(entity, (account = new Account()));
      for (const event of events as unknown as readonly GateEvent[]) account.see(event, found, entity, commit);
    }
    for (const entity of commit.entry.purge ?? []) all.get(entity)?.remove(found, entity, commit);
  }
  return all;
}

/** Whoever goes through, there was enough for it: beside what was spent, and what is kept for others. */
const neverOverspent: Invariant = {
  id: "I38a",
  name: "budget",
  world: (evidence, _stories, found) => void accounts(evidence, found),
};

/** In a world at peace everything that was out has been settled, and nothing else. */
const allIsSettled: Invariant = {
  id: "I38b",
  name: "what was out is counted",
  world(evidence, _stories, found) {
    const { world, poisoned } = evidence;
    if (!world.liveness) return;
    const out = dispatchedAsks(evidence);
    for (const [entity, { settled: counted }] of accounts(evidence, () => {})) {
      const expected = out.get(entity) ?? new Set();
      for (const ask of new Set([...expected, ...counted])) {
        if (expected.has(ask) === counted.has(ask) || poisoned.has(executionOf(ask.split(" ")[0]!))) continue;
        found(
          `${entity} has ${counted.has(ask) ? "" : "not "}counted ${ask}, which was ${expected.has(ask) ? "" : "not "}out`,
        );
      }
    }
  },
};

/** By gate: the asks for which a task went out that was not handed back. */
function dispatchedAsks(evidence: Evidence): ReadonlyMap<string, ReadonlySet<string>> {
  const out = new Map<string, Set<string>>();
  /** By task: what it has asked and not yet gone out with, and what it is out with. */
  const asked = new Map<string, { readonly gate: string; readonly ask: string }[]>();
  const live = new Map<string, { readonly gate: string; readonly ask: string }[]>();
  for (const { entry } of evidence.surviving) {
    for (const { entity, events } of entry.records) {
      if (!isExecution(entity)) continue;
      for (const event of events) {
        if (event.kind === "paused" || event.kind === "executionEnded") {
          for (const task of asked.keys()) if (task.startsWith(`${entity} `)) asked.delete(task);
        }
        if (!("node" in event)) continue;
        const task = `${entity} ${event.node}`;
        if (event.kind === "gateAsked") {
          asked.set(task, [...(asked.get(task) ?? []), { gate: event.gate, ask: `${entity} ${event.ask}` }]);
        } else if (event.kind === "gateRefused") {
          // It may go out all the same, with another model, for which it asks anew.
          const isOther = ({ ask }: { readonly ask: string }): boolean => ask !== `${entity} ${event.ask}`;
          asked.set(task, (asked.get(task) ?? []).filter(isOther));
        } else if (event.kind === "taskDispatched") {
          live.set(task, asked.get(task) ?? []);
          for (const { gate, ask } of asked.get(task) ?? []) {
            const own = out.get(gate);
            if (own === undefined) out.set(gate, new Set([ask]));
            else own.add(ask);
          }
          asked.delete(task);
        } else if (event.kind === "deliveryLost" && event.handedBack) {
          for (const { gate, ask } of live.get(task) ?? []) out.get(gate)?.delete(ask);
        } else if (GIVES_UP.has(event.kind)) {
          asked.delete(task);
        }
      }
    }
  }
  return out;
}

/** Whoever waited to go out, and does not any more. */
const GIVES_UP: ReadonlySet<string> = new Set(["repaired", "nodeSkipped", "nodeFailed", "taskCompleted", "taskFailed"]);

export const BUDGETS: readonly Invariant[] = [neverOverspent, allIsSettled];
