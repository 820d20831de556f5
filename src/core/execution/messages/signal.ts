import type { Context } from "../../machine.ts";
import type { Message, Signal } from "../../message.ts";
import { command } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import type { ExecutionEvent } from "../events.ts";
import { type ExecutionState, MAX_SIGNALS, MAX_SIGNALS_IN_ALL } from "../state.ts";

/**
 * Somebody sends word. The oldest wait for that name takes it; if there is none yet, it is kept.
 *
 * Moves a node `waiting → completed`.
 */
export function signal(state: ExecutionState, message: Message, body: Signal, context: Context): ExecutionDecision {
  return command(state, { ...message, body }, context, () => {
    if (state.isEnded) return { refused: "ALREADY_TERMINAL" };
    const { name, data } = body;
    const kept = state.signals.get(name)?.length ?? 0;
    if (kept >= MAX_SIGNALS) {
      return { refused: "RATE_LIMITED", detail: `${kept} signals of this name wait to be taken; no more are kept` };
    }
    const waiting = state.signalWaits.get(name)?.[0];
    if (waiting === undefined && keptInAll(state) >= MAX_SIGNALS_IN_ALL) {
      const detail = `${MAX_SIGNALS_IN_ALL} signals wait to be taken by this execution; no more are kept`;
      return { refused: "RATE_LIMITED", detail };
    }
    const atMs = context.nowMs;
    const events: ExecutionEvent[] = [{ kind: "signalReceived", atMs, name, data, by: message.by }];
    if (waiting !== undefined) {
      events.push({ kind: "nodeCompleted", atMs, node: state.nameOf(waiting), output: data, signal: name });
    }
    return { events };
  });
}

function keptInAll({ signals }: ExecutionState): number {
  let count = 0;
  for (const kept of signals.values()) count += kept.length;
  return count;
}
