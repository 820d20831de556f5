import type { Context } from "../../machine.ts";
import type { DiscardLetter, Message } from "../../message.ts";
import { command } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import type { ExecutionState } from "../state.ts";

/** A dead letter is thrown away. Changes nothing else. */
export function discardLetter(
  state: ExecutionState,
  message: Message,
  body: DiscardLetter,
  context: Context,
): ExecutionDecision {
  return command(state, { ...message, body }, context, () => {
    if (!state.letters.has(body.letter)) return { refused: "NOT_FOUND" };
    const event = { kind: "letterDiscarded", atMs: context.nowMs, letter: body.letter } as const;
    return { events: [event], extras: { discard: [body.letter] } };
  });
}
