import type { CompiledValue } from "../../expression/scope.ts";
import type { Json } from "../../json/json.ts";
import { CACHE_KIND, cacheEntity } from "../cache/state.ts";
import { entityKey, entityKind } from "../entity.ts";
import { AMOUNT_UNITS, type Amounts, type AmountUnit } from "../gate/amounts.ts";
import { gateEntity, type GateName, type GateRule } from "../gate/rule.ts";
import { type BlobDraft, type Context, type Need, needKey } from "../machine.ts";
import type { BudgetStanding, CacheLookup, CacheReturn, ErrorValue, GateAsk, GateReturn, Message } from "../message.ts";
import { toValue, type Value } from "../value.ts";
import { accountOf } from "./asks.ts";
import { decided, type ExecutionDecision } from "./decision.ts";
import type { ExecutionEvent, GateAsked, GateReturned } from "./events.ts";
import type { PlanGate } from "./plan-gates.ts";
import { type Prepared, templateError } from "./prepare.ts";
import { estimateOf } from "./spending.ts";
import { scopeOf } from "./scope.ts";
import type { ExecutionState } from "./state.ts";

/** One ask, before those of one gate are put into one message. */
export type AskDraft = GateDraft | CacheDraft;

interface GateDraft {
  readonly gate: string;
  readonly name: GateName;
  readonly rule: GateRule;
  readonly ask: GateAsk;
}

interface CacheDraft {
  readonly gate: string;
  readonly lookup: CacheLookup;
}

const CROWDED: ErrorValue = {
  code: "CONCURRENCY_LIMIT",
  message: "As many as may run at a time do, and it was not to wait",
  retryable: false,
};

/**
 * Why a unit fails that its gate has sent away. Of a budget, what it may use; and how the budget stands, where that is
 * known: else the definition tells what it allows.
 */
export function refusal(
  { rule, name }: Pick<PlanGate, "rule" | "name">,
  { needs, standing }: { readonly needs?: Amounts; readonly standing?: BudgetStanding } = {},
): ErrorValue {
  if (rule.kind !== "budget") return CROWDED;
  const limits = standing?.limits ?? rule.limits;
  const spent = standing && only(limits, { ...NOTHING_USED, ...standing.spent });
  const mayUse = needs && only(limits, needs);
  const allows = `${standing === undefined ? "its definition" : "it"} allows ${amountsText(limits)} in all`;
  const used = spent === undefined ? "" : `, ${amountsText(spent)} were used`;
  const asks =
    mayUse === undefined || Object.keys(mayUse).length === 0 ? "" : `, the task may use ${amountsText(mayUse)}`;
  const message =
    `What is left of the budget "${name}" is not enough for it: ${allows}${used}${asks}. ` +
    '"millrace budgets" shows what was used; raise it with "millrace budgets raise", and retry';
  const details = { budget: name, limits: { ...limits }, ...(spent && { spent }), ...(mayUse && { needs: mayUse }) };
  return { code: "BUDGET_EXCEEDED", message, retryable: false, details };
}

const NOTHING_USED: Amounts = { tokens: 0, usd: 0, calls: 0, seconds: 0 };

/** What a budget counts of these. */
function only(limits: Amounts, amounts: Amounts): { [Unit in AmountUnit]?: number } {
  const units = AMOUNT_UNITS.filter((unit) => limits[unit] !== undefined && amounts[unit] !== undefined);
  // Sums of fractions have a tail that says nothing.
  return Object.fromEntries(units.map((unit) => [unit, Number(amounts[unit]!.toPrecision(6))]));
}

function amountsText(amounts: Amounts): string {
  const units = AMOUNT_UNITS.filter((unit) => amounts[unit] !== undefined);
  return units.map((unit) => `${amounts[unit]} ${amounts[unit] === 1 ? unit.replace(/s$/, "") : unit}`).join(" and ");
}

type Next =
  /** It has passed all its gates. */
  | { readonly kind: "passed" }
  | { readonly kind: "asks"; readonly event: GateAsked; readonly draft: AskDraft }
  | { readonly kind: "needs"; readonly needs: readonly Need[] }
  | { readonly kind: "failed"; readonly error: ErrorValue };

/**
 * The next gate that a unit has to pass before its task goes out. Every delivery passes them anew: a lost worker may have
 * called whoever is behind the gate, and the next one calls again.
 *
 * @param before asks of this decision that the state does not know of yet
 */
export function askNext(
  state: ExecutionState,
  unit: number,
  before: number,
  prepared: Prepared,
  context: Context,
): Next {
  const asked = state.asks.get(unit) ?? [];
  const { gates, cache } = state.planOf(unit);
  // Whoever has a delivery behind it that was lost does not know whether the work is done: it goes on with its own.
  if (cache !== null && asked.length === 0 && state.statusOf(unit) !== "queued")
    return askCache(state, unit, before, prepared, context);
  const passed = asked.filter(({ status, wait: at }) => status !== "refused" && at !== "cache").length;
  const gate = gates[passed];
  if (gate === undefined) return { kind: "passed" };
  const last = asked.at(-1);
  const isRefused = last?.status === "refused" && last.wait === gate.wait;
  const fallback = isRefused && last.fallback === undefined ? gate.fallback : undefined;
  if (isRefused && fallback === undefined) {
    const needs = gate.estimate === null ? {} : { needs: estimateOf(gate, prepared, last.fallback) };
    const stood = last.standing && { standing: last.standing };
    return { kind: "failed", error: refusal(gate, { ...needs, ...stood }) };
  }
  const resolved = resolveKey(state, unit, gate.key, gate.rule.kind, context);
  if (resolved.kind !== "resolved") return resolved;
  const { rule, wait, until, cost } = gate;
  const key = resolved.key ?? (gate.isOfExecution === true ? accountOf(state) : undefined);
  const name: GateName = {
    kind: rule.kind,
    tenant: state.tenant,
    name: gate.name,
    ...(key !== undefined && { key }),
  };
  const entity = gateEntity(name);
  const ask = state.askCount + before + 1;
  const node = state.nameOf(unit);
  const { priority } = state.planOf(unit).spec;
  const estimate = gate.estimate === null ? undefined : estimateOf(gate, prepared, fallback);
  return {
    kind: "asks",
    event: {
      kind: "gateAsked",
      atMs: context.nowMs,
      node,
      gate: entity,
      ask,
      wait,
      until,
      ...(fallback !== undefined && { fallback }),
    },
    draft: {
      gate: entity,
      name,
      rule,
      ask: {
        ask,
        node,
        ...(cost !== 1 && { cost }),
        ...(estimate && { estimate }),
        ...(priority !== 0 && { priority }),
      },
    },
  };
}

/** What is kept is asked for before any gate: a result that is there takes nothing of a rate. */
function askCache(state: ExecutionState, unit: number, before: number, prepared: Prepared, context: Context): Next {
  const { cache } = state.planOf(unit);
  const resolved = resolveKey(state, unit, cache!.key, "cache", context);
  if (resolved.kind !== "resolved") return resolved;
  const { key } = resolved;
  const gate =
    key === undefined
      ? cacheOfInput(state, unit, prepared.inputHash)
      : cacheEntity(state.tenant, "key", cache!.name, key);
  const ask = state.askCount + before + 1;
  const node = state.nameOf(unit);
  const named = state.isItem(unit) ? state.mapOf(unit).node : unit;
  const isAnew = state.runs[named]?.anew === true;
  const execution = entityKey("execution", state.id);
  return {
    kind: "asks",
    event: { kind: "gateAsked", atMs: context.nowMs, node, gate, ask, wait: "cache", until: "end" },
    draft: { gate, lookup: { kind: "cacheLookup", execution, ask, node, ...(isAnew && { anew: true }) } },
  };
}

function cacheOfInput(state: ExecutionState, unit: number, inputHash: string): string {
  return cacheEntity(state.tenant, "input", state.planOf(unit).spec.handler, inputHash);
}

function resolveKey(
  state: ExecutionState,
  unit: number,
  key: CompiledValue | null,
  of: GateRule["kind"] | "cache",
  context: Context,
): { readonly kind: "resolved"; readonly key?: string } | Extract<Next, { kind: "needs" | "failed" }> {
  if (key === null) return { kind: "resolved" };
  const resolution = key.resolve(scopeOf(state, unit, context));
  if (resolution.kind === "failed") return { kind: "failed", error: templateError(resolution.failure) };
  if (resolution.kind === "needs") return { kind: "needs", needs: resolution.blobs.map((blob) => ({ blob })) };
  if (resolution.holes.length > 0) {
    const message = `The "key" of a ${of} can be neither a secret nor a large value`;
    return { kind: "failed", error: { code: "CONFIG_INVALID", message, retryable: false } };
  }
  return { kind: "resolved", key: keyText(resolution.value) };
}

function keyText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function askMail(state: ExecutionState, drafts: readonly AskDraft[]): Message[] {
  const execution = entityKey("execution", state.id);
  const lookups = drafts.flatMap((draft) => ("lookup" in draft ? [draft] : []));
  const byGate = Map.groupBy(
    drafts.flatMap((draft) => ("lookup" in draft ? [] : [draft])),
    ({ gate }) => gate,
  );
  const mail = Array.from(byGate, ([gate, own]) => {
    const { name, rule } = own[0]!;
    const asks = own.map(({ ask }) => ask);
    return gateMail(state, gate, `gateAcquire:${execution}:${asks[0]!.ask}`, {
      kind: "gateAcquire",
      name,
      rule,
      execution,
      workflow: state.plan.workflow.name,
      asks,
    });
  });
  for (const { gate, lookup } of lookups) {
    mail.push(gateMail(state, gate, `cacheLookup:${execution}:${lookup.ask}`, lookup));
  }
  return mail;
}

/** Gives back what is not needed any more, so much at a time; to a cache with the result, if there is one. */
export function returnToGates(state: ExecutionState, context: Context): ExecutionDecision | undefined {
  if (state.returns.length === 0) return undefined;
  const returns = state.returns.slice(0, context.maxEvents);
  const blobs: BlobDraft[] = [];
  const needs: Need[] = [];
  const stored = new Map<number, CacheReturn["stored"]>();
  for (const { gate, ask, keeps } of returns) {
    const kept = keeps === undefined ? undefined : keptOutput(state, gate, keeps, context);
    if (kept === undefined) continue;
    if (kept.kind === "needs") needs.push(kept.need);
    else {
      stored.set(ask, { output: kept.output, ttlMs: kept.ttlMs });
      if (kept.blob !== undefined) blobs.push({ ...kept.blob, scope: gate });
    }
  }
  if (needs.length > 0) return { events: [], needs };
  const mail = giveBackMail(state, returns, stored);
  return decided(state, context, [{ kind: "gatesReturned", atMs: context.nowMs, returns }], { mail, blobs });
}

type KeptOutput =
  | { readonly kind: "needs"; readonly need: Need }
  | { readonly kind: "kept"; readonly output: Value; readonly ttlMs: number; readonly blob?: BlobDraft };

/**
 * The output that a cache is to keep, as a value of its own; undefined if the node has begun anew since, or if it was given
 * something else than it had asked for: what it reads may have changed between its leave and its dispatch.
 */
function keptOutput(state: ExecutionState, gate: string, node: string, context: Context): KeptOutput | undefined {
  const unit = state.unitOf(node);
  const output = unit === undefined || state.statusOf(unit) !== "completed" ? null : state.runs[unit]!.output;
  const cache = unit === undefined ? null : state.planOf(unit).cache;
  if (output === null || cache === null) return undefined;
  const { ttlMs, key } = cache;
  if (key === null && cacheOfInput(state, unit!, state.runs[unit!]!.inputHash!) !== gate) return undefined;
  if ("json" in output) return { kind: "kept", output, ttlMs };
  const json = context.fetched(needKey(output));
  if (json === undefined) return { kind: "needs", need: output };
  const { value, blob } = toValue(json);
  return { kind: "kept", output: value, ttlMs, ...(blob !== undefined && { blob }) };
}

/** What a journal says was given back to a gate, said again; not for how long that was to be left alone. */
export function gaveBack(
  id: string,
  events: readonly ExecutionEvent[],
  gate: string,
  asks: readonly number[],
): readonly Message[] {
  const wanted = new Set(asks);
  const returns = events.flatMap((event) => (event.kind === "gatesReturned" ? event.returns : []));
  const own = returns.filter((one) => one.gate === gate && wanted.has(one.ask));
  const [first] = events;
  const tenant = first?.kind === "accepted" ? first.tenant : "default";
  return giveBackMail({ id, version: events.length, trace: "", tenant }, own.map(withoutClosing));
}

function withoutClosing(returned: GateReturned): GateReturned {
  const { closeForMs: _closeForMs, ...rest } = returned;
  return rest;
}

export function giveBackMail(
  state: Sender,
  returns: readonly GateReturned[],
  stored: ReadonlyMap<number, CacheReturn["stored"]> = new Map(),
): Message[] {
  const execution = entityKey("execution", state.id);
  const byGate = Map.groupBy(returns, ({ gate }) => gate);
  return Array.from(byGate).flatMap(([gate, own]) => {
    const asks = [...new Set(own.map(({ ask }) => ask))];
    if (entityKind(gate) === CACHE_KIND) {
      return own.map(({ ask, outcome }) => {
        const kept = stored.get(ask);
        const end = kept === undefined ? outcome === "bad" && { failed: true as const } : { stored: kept };
        const body = { kind: "cacheReturn", execution, ask, ...end } as const;
        return gateMail(state, gate, `cacheReturn:${execution}:${state.version}:${ask}`, body);
      });
    }
    const closeForMs = Math.max(0, ...own.map((one) => one.closeForMs ?? 0));
    return gateMail(state, gate, `gateReturn:${execution}:${state.version}:${asks[0]}`, {
      kind: "gateReturn",
      execution,
      asks,
      ...endedSo(own, "good"),
      ...endedSo(own, "bad"),
      ...usedBy(own),
      ...onlyWaiting(own),
      ...(closeForMs > 0 && { closeForMs }),
    });
  });
}

function endedSo(returns: readonly GateReturned[], outcome: "good" | "bad"): { readonly [outcome: string]: number[] } {
  const asks = returns.filter((one) => one.outcome === outcome).map(({ ask }) => ask);
  return asks.length === 0 ? {} : { [outcome]: asks };
}

function usedBy(returns: readonly GateReturned[]): Pick<GateReturn, "used"> {
  const used = returns.flatMap((one) => (one.used === undefined ? [] : [{ ask: one.ask, used: one.used }]));
  return used.length === 0 ? {} : { used };
}

function onlyWaiting(returns: readonly GateReturned[]): Pick<GateReturn, "ifWaiting"> {
  const ifWaiting = returns.filter((one) => one.ifWaiting === true).map(({ ask }) => ask);
  return ifWaiting.length === 0 ? {} : { ifWaiting };
}

type Sender = Pick<ExecutionState, "id" | "version" | "trace" | "tenant">;

function gateMail(state: Sender, to: string, id: string, body: Message["body"]): Message {
  return { id, to, by: entityKey("execution", state.id), trace: state.trace, tenant: state.tenant, body };
}
