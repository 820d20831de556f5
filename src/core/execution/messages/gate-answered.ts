import type { Context } from "../../machine.ts";
import type { GateAnswered } from "../../message.ts";
import { decided, type ExecutionDecision, NOTHING } from "../decision.ts";
import { refusedEntry, WHOLE } from "../entry.ts";
import type { ExecutionEvent, GateReturned } from "../events.ts";
import { giveBackMail } from "../gates.ts";
import type { ExecutionState, UnitAsk } from "../state.ts";

/**
 * A gate has let something through, or has sent it away. What is granted and not wanted any more is given back: the return
 * that we sent when we gave it up may have come before the ask. What waits for a person and is not wanted any more leaves
 * the line for the same reason, and no more than that: such an answer may come after the grant that followed it, and what
 * was used since is told by another return.
 */
export function gateAnswered(state: ExecutionState, body: GateAnswered, context: Context): ExecutionDecision {
  const events: ExecutionEvent[] = [];
  const stale: GateReturned[] = [];
  const atMs = context.nowMs;
  for (const { ask, node } of body.granted ?? []) {
    if (node === WHOLE && isEntry(state, body.gate, ask)) {
      if (state.entry!.status === "asked") events.push({ kind: "entryGranted", atMs, gate: body.gate, ask });
      continue;
    }
    const asked = askOf(state, body.gate, ask, node);
    if (asked === undefined) stale.push({ gate: body.gate, ask });
    else if (asked.status === "asked") events.push({ kind: "gateGranted", atMs, node, gate: body.gate, ask });
  }
  for (const { ask, node } of body.refused ?? []) {
    if (node === WHOLE && isEntry(state, body.gate, ask)) return decided(state, context, [refusedEntry(context)]);
    if (askOf(state, body.gate, ask, node)?.status !== "asked") continue;
    const stood = body.budget && { budget: body.budget };
    events.push({ kind: "gateRefused", atMs, node, gate: body.gate, ask, ...stood });
  }
  for (const { ask, node } of body.stalled ?? []) {
    const asked = askOf(state, body.gate, ask, node);
    if (asked === undefined) stale.push({ gate: body.gate, ask, ifWaiting: true });
    if (asked?.status !== "asked" || body.budget === undefined) continue;
    events.push({ kind: "gateStalled", atMs, node, gate: body.gate, ask, budget: body.budget });
  }
  if (stale.length > 0) events.push({ kind: "gatesReturned", atMs, returns: stale });
  return events.length === 0 ? NOTHING : decided(state, context, events, { mail: giveBackMail(state, stale) });
}

function isEntry({ entry }: ExecutionState, gate: string, ask: number): boolean {
  return entry?.gate === gate && entry.ask === ask;
}

export function askOf(state: ExecutionState, gate: string, ask: number, node: string): UnitAsk | undefined {
  const unit = state.unitOf(node);
  const asks = unit === undefined ? undefined : state.asks.get(unit);
  return asks?.find((one) => one.ask === ask && one.gate === gate);
}
