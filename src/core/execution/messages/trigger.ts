import type { Context } from "../../machine.ts";
import type { Message, Trigger } from "../../message.ts";
import { command, type Verdict } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import type { ExecutionState } from "../state.ts";
import { openFailed } from "./retry.ts";
import { startedNow } from "./start.ts";

/**
 * Run what is held; on one that ended badly, run again what failed.
 *
 * Moves the execution `pending | failed | partial → running`.
 */
export function trigger(state: ExecutionState, message: Message, body: Trigger, context: Context): ExecutionDecision {
  return command(state, { ...message, body }, context, () => judge(state, body, context));
}

function judge(state: ExecutionState, { input, labels }: Trigger, context: Context): Verdict {
  switch (state.status) {
    case "pending": {
      const brought = {
        ...(input !== undefined && { input }),
        ...(labels !== undefined && { labels: { ...state.labels, ...labels } }),
      };
      return { events: [{ ...startedNow(state, context), ...brought }], status: "RUNNING" };
    }
    case "failed":
    case "partial": {
      if (input !== undefined || labels !== undefined) return { refused: "INPUT_FIXED" };
      const opened = openFailed(state, context);
      return { events: [opened], status: "RUNNING", generation: opened.generation };
    }
    case "completed":
    case "cancelled":
      return { refused: "ALREADY_TERMINAL" };
    case "new":
    case "running":
    case "paused":
      return { refused: "ALREADY_RUNNING" };
  }
}
