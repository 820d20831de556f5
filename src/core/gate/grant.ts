import type { Context, Decision } from "../machine.ts";
import { entityKey } from "../entity.ts";
import type { GateAnswered, Message } from "../message.ts";
import type { AsksGranted, GateEvent } from "./events.ts";
import { isBucket } from "./rule.ts";
import { costOf, freePlaces, type GateState, heldKey, levelAt, mustOpen, supersedable } from "./state.ts";

export type GateDecision = Decision<GateEvent>;

export const NOTHING: GateDecision = { events: [] };

/** Less than this is missing only because numbers are rounded. */
const ROUNDING = 1e-6;

/** Lets through who may go now, in turn. Who is next is not passed by, or something large would wait for ever. */
export function grant(state: GateState, context: Context): GateDecision {
  const rule = state.ruling;
  if (rule?.kind === "breaker" && mustOpen(state)) {
    return { events: [{ kind: "breakerOpened", atMs: context.nowMs, untilMs: context.nowMs + rule.openMs }] };
  }
  const superseded = supersede(state, context);
  if (superseded !== undefined) return superseded;
  if (rule === null || state.line.length === 0 || state.isTripped || context.nowMs < state.closedUntilMs)
    return NOTHING;
  const room = Math.min(freePlaces(state, rule), context.maxEvents);
  let level = levelAt(state, context.nowMs);
  const grants: { execution: string; ask: number; node: string }[] = [];
  for (const { execution, ask } of state.line.inTurn(state.lastAtMs)) {
    const cost = costOf(rule, ask);
    if (grants.length >= room || (isBucket(rule) && level + ROUNDING < cost)) break;
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

/** One message for each execution, whatever it is told of. */
export function answers(
  state: GateState,
  grants: readonly { readonly execution: string; readonly ask: number; readonly node: string }[],
): Message[] {
  const byExecution = new Map<string, { ask: number; node: string }[]>();
  for (const { execution, ask, node } of grants) {
    const own = byExecution.get(execution);
    if (own === undefined) byExecution.set(execution, [{ ask, node }]);
    else own.push({ ask, node });
  }
  return Array.from(byExecution, ([execution, granted]) => answer(state, execution, { granted }));
}

export function answer(state: GateState, execution: string, what: Pick<GateAnswered, "granted" | "refused">): Message {
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
