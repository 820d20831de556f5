import type { Context, Decision } from "../machine.ts";
import { entityKey } from "../entity.ts";
import type { GateAnswered, Message } from "../message.ts";
import { type Chosen, budgetStep } from "./budget.ts";
import type { AsksGranted, GateEvent, Place } from "./events.ts";
import { type BudgetRule, isBucket } from "./rule.ts";
import {
  costOf,
  freePlaces,
  type GateState,
  type Held,
  heldByIdle,
  heldKey,
  isWaitingForBeginnings,
  lapsing,
  levelAt,
  mostAtOnce,
  mustOpen,
  passedBy,
  ROUNDING,
  supersedable,
} from "./state.ts";

export type GateDecision = Decision<GateEvent>;

export const NOTHING: GateDecision = { events: [] };

/** Lets through who may go now, in turn. Who is next is not passed by, or something large would wait for ever. */
export function grant(state: GateState, context: Context): GateDecision {
  const rule = state.ruling;
  if (rule?.kind === "budget") return spend(state, rule, context);
  if (rule?.kind === "breaker" && mustOpen(state)) {
    return { events: [{ kind: "breakerOpened", atMs: context.nowMs, untilMs: context.nowMs + rule.openMs }] };
  }
  const forced = supersede(state, context) ?? lapse(state, context);
  if (forced !== undefined) return forced;
  if (rule === null || state.line.length === 0 || state.isTripped || context.nowMs < state.closedUntilMs)
    return NOTHING;
  const room = Math.min(freePlaces(state, rule), context.maxEvents);
  let level = levelAt(state, context.nowMs);
  const grants: Answer[] = [];
  const idle = new Map(heldByIdle(state));
  for (const { execution, ask } of state.line.inTurn(state.lastAtMs, passedBy(state))) {
    const cost = costOf(rule, ask);
    if (grants.length >= room || (isBucket(rule) && level + ROUNDING < cost)) break;
    // Who comes behind it has its turn in the next decision, which passes it by.
    const workflow = state.line.groupOf(execution) ?? "";
    const own = idle.get(workflow);
    if (own !== undefined && rule.kind === "rate" && own > mostAtOnce(rule) - 1) break;
    if (own !== undefined) idle.set(workflow, own + cost);
    level = Math.max(0, level - cost);
    grants.push({ execution, ask: ask.ask, node: ask.node });
  }
  if (grants.length === 0) return NOTHING;
  const event: AsksGranted = {
    kind: "asksGranted",
    atMs: context.nowMs,
    grants: grants.map(({ execution, ask }) => ({ execution, ask })),
    ...(isBucket(rule) && { level }),
  };
  return { events: [event], mail: answers(state, grants) };
}

/** Others wait for nothing but that they begin, and they do not. */
function lapse(state: GateState, context: Context): GateDecision | undefined {
  if (!isWaitingForBeginnings(state)) return undefined;
  const asks = lapsing(state, context.nowMs).slice(0, context.maxEvents);
  if (asks.length === 0) return undefined;
  const places = asks.map(({ execution, ask }) => ({ execution, ask }));
  return { events: [{ kind: "asksLapsed", atMs: context.nowMs, asks: places }] };
}

/** The oldest make room: those who run first, then those who wait. */
function supersede(state: GateState, context: Context): GateDecision | undefined {
  const count = Math.min(supersedable(state), context.maxEvents);
  if (count === 0) return undefined;
  const running = [...state.held.values()].filter((held) => !state.superseded.has(heldKey(held.execution, held.ask)));
  const waiting = [...state.line.inTurn(state.lastAtMs)].map(({ execution, ask: { ask } }) => ({ execution, ask }));
  const asks = [...running, ...waiting].slice(0, count).map(({ execution, ask }) => ({ execution, ask }));
  const gate = entityKey("gate", state.id);
  const mail = asks.map(({ execution, ask }): Message => {
    const request = `superseded:${gate}:${ask}`;
    const tenant = state.name?.tenant ?? "default";
    return {
      id: `${request}:${execution}`,
      to: execution,
      by: gate,
      trace: "",
      tenant,
      body: { kind: "cancel", request, entry: { gate, ask } },
    };
  });
  return { events: [{ kind: "asksSuperseded", atMs: context.nowMs, asks }], mail };
}

/** Of a budget: lets through whom there is enough for, and tells the others. */
function spend(state: GateState, rule: BudgetRule, context: Context): GateDecision {
  const { granted, over } = budgetStep(state, rule, context.maxEvents);
  const atMs = context.nowMs;
  const places = (chosen: readonly Chosen[]): Place[] => chosen.map(({ execution, ask }) => ({ execution, ask }));
  const events: GateEvent[] = [];
  if (granted.length > 0) events.push({ kind: "asksGranted", atMs, grants: places(granted) });
  const what = rule.onLimit === "pause" ? "stalled" : "refused";
  if (over.length > 0 && what === "stalled") events.push({ kind: "asksStalled", atMs, asks: places(over) });
  if (what === "refused") {
    for (const [execution, own] of Map.groupBy(over, (each) => each.execution)) {
      events.push({ kind: "asksRefused", atMs, execution, asks: own.map(({ ask }) => ask) });
    }
  }
  if (events.length === 0) return NOTHING;
  const budget = { limits: rule.limits, spent: state.spent };
  const byExecution = Map.groupBy([...granted, ...over], (each) => each.execution);
  const mail = Array.from(byExecution.keys(), (execution) => {
    const own = (chosen: readonly Chosen[]): Pick<Chosen, "ask" | "node">[] =>
      chosen.filter((each) => each.execution === execution).map(({ ask, node }) => ({ ask, node }));
    const [passed, told] = [own(granted), own(over)];
    return answer(state, execution, {
      ...(passed.length > 0 && { granted: passed }),
      ...(told.length > 0 && { [what]: told, budget }),
    });
  });
  return { events, mail };
}

type Answer = Pick<Held, "execution" | "ask" | "node">;

/** One message for each execution, whatever it is told of. */
export function answers(state: GateState, grants: readonly Answer[]): Message[] {
  const byExecution = new Map<string, Omit<Answer, "execution">[]>();
  for (const { execution, ask, node } of grants) {
    const own = byExecution.get(execution);
    if (own === undefined) byExecution.set(execution, [{ ask, node }]);
    else own.push({ ask, node });
  }
  return Array.from(byExecution, ([execution, granted]) => answer(state, execution, { granted }));
}

export function answer(state: GateState, execution: string, what: Omit<GateAnswered, "kind" | "gate">): Message {
  const gate = entityKey("gate", state.id);
  return {
    id: `gateAnswered:${gate}:${state.version}:${execution}`,
    to: execution,
    by: gate,
    trace: "",
    tenant: state.name?.tenant ?? "default",
    body: { kind: "gateAnswered", gate, ...what },
  };
}
