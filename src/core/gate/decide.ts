import type { Context, ListingDraft } from "../machine.ts";
import type { GateAcquire, GateCommand, GateReturn, Message } from "../message.ts";
import { AMOUNT_UNITS, type Amounts, type AmountUnit } from "./amounts.ts";
import type { GateEvent } from "./events.ts";
import { answer, type GateDecision, NOTHING } from "./grant.ts";
import { type GateName, type GateRule, sameRule } from "./rule.ts";
import { freePlaces, type GateState, heldKey, isOut } from "./state.ts";

/** What a message means for a gate. Who may go is decided afterwards, by `grant`. */
export function decide(state: GateState, message: Message, context: Context): GateDecision {
  const { body } = message;
  if (body.kind === "gateAcquire") return acquire(state, body, context);
  if (body.kind === "gateReturn") return giveBack(state, body, context);
  if (body.kind === "gateForsaken") return forsake(state, context);
  if (body.kind === "gateCommand") return command(state, message, body, context);
  return { ...NOTHING, reply: { refused: body.kind === "release" ? "NOT_QUARANTINED" : "NOT_FOUND" } };
}

/** The same ask twice is one: it stands in line already, or its answer is on its way. */
function acquire(state: GateState, body: GateAcquire, context: Context): GateDecision {
  const { execution, rule, name, workflow } = body;
  const atMs = context.nowMs;
  const events: GateEvent[] = [];
  if (!sameRule(state.rule, rule)) events.push({ kind: "gateRuled", atMs, name, rule });
  const asks = body.asks.filter(({ ask }) => !isOut(state, heldKey(execution, ask)) && !state.line.has(execution, ask));
  if (asks.length === 0) return { events };
  const ruling = state.override ?? rule;
  const isPatient = ruling.kind !== "concurrency" || ruling.onConflict !== "reject";
  const room = isPatient ? asks.length : Math.max(0, freePlaces(state, ruling) - state.line.length);
  const queued = asks.slice(0, room);
  const refused = asks.slice(room).map(({ ask, node }) => ({ ask, node }));
  const turn = { execution, ...(workflow !== undefined && { workflow }) };
  if (queued.length > 0) events.push({ kind: "asksQueued", atMs, ...turn, asks: queued });
  if (refused.length === 0) return { events, ...listing(state, body) };
  events.push({ kind: "asksRefused", atMs, execution, asks: refused.map(({ ask }) => ask) });
  return { events, mail: [answer(state, execution, { refused })], ...listing(state, body) };
}

/** People find a gate in a list, without knowing what it is called. */
export const LIMITS = "limits";

export function listed(id: string, name: GateName): ListingDraft {
  return { list: LIMITS, id, text: JSON.stringify(name) };
}

function listing(state: GateState, { name }: GateAcquire): Pick<GateDecision, "listings"> {
  return state.rule === null ? { listings: [listed(state.id, name)] } : {};
}

/** Something that is not known was given back before, or never asked for: then it means nothing. */
function giveBack(state: GateState, body: GateReturn, context: Context): GateDecision {
  const { execution, closeForMs } = body;
  const atMs = context.nowMs;
  const isHeld = (ask: number): boolean =>
    isOut(state, heldKey(execution, ask)) && body.ifWaiting?.includes(ask) !== true;
  const asks = body.asks.filter((ask) => isHeld(ask) || state.line.has(execution, ask));
  const events: GateEvent[] = [];
  const known = (those: readonly number[] = []): number[] => those.filter((ask) => asks.includes(ask));
  const good = known(body.good);
  const bad = known(body.bad);
  const used = (body.used ?? []).filter(({ ask }) => state.held.has(heldKey(execution, ask)));
  const ends = { ...(good.length > 0 && { good }), ...(bad.length > 0 && { bad }), ...(used.length > 0 && { used }) };
  if (asks.length > 0) events.push({ kind: "asksReturned", atMs, execution, asks, ...ends });
  const untilMs = atMs + (closeForMs ?? 0);
  if (closeForMs !== undefined && untilMs > state.closedUntilMs) events.push({ kind: "gateClosed", atMs, untilMs });
  return { events };
}

/** Of a budget: its execution is gone, and with it what was spent, and what somebody has allowed. */
function forsake({ ruling, isForsaken }: GateState, context: Context): GateDecision {
  if (ruling?.kind !== "budget" || isForsaken) return NOTHING;
  return { events: [{ kind: "gateForsaken", atMs: context.nowMs }] };
}

/** A person closes it, opens it, or sets another rule. */
function command(state: GateState, message: Message, body: GateCommand, context: Context): GateDecision {
  const { request, action, bodyHash } = body;
  const reply = { ok: {} };
  if (state.requests.includes(request)) return { ...NOTHING, reply };
  const rule = body.amounts === undefined ? body.rule : allowing(state, body.amounts, body.atLeast === true);
  const event: GateEvent = {
    kind: "commandApplied",
    atMs: context.nowMs,
    command: action,
    request,
    by: message.by,
    ...(bodyHash !== undefined && { bodyHash }),
    ...(rule !== undefined && { rule }),
  };
  return { events: [event], reply };
}

/** The rule that lets a budget allow these amounts. Several may command at once, so it is made here, of what counts now. */
function allowing({ ruling, override }: GateState, amounts: Amounts, atLeast: boolean): GateRule | null {
  if (ruling?.kind !== "budget") return override;
  const { limits } = ruling;
  const isKept = (unit: AmountUnit): boolean => atLeast && (limits[unit] ?? Infinity) >= amounts[unit]!;
  const changed = AMOUNT_UNITS.filter((unit) => amounts[unit] !== undefined && !isKept(unit));
  if (changed.length === 0) return override;
  return { ...ruling, limits: { ...limits, ...Object.fromEntries(changed.map((unit) => [unit, amounts[unit]])) } };
}
