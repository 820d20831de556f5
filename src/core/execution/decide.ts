import type { Context } from "../machine.ts";
import type { Message } from "../message.ts";
import { type ExecutionDecision, NOTHING } from "./decision.ts";
import { assignReview } from "./messages/assign-review.ts";
import { cacheAnswered } from "./messages/cache-answered.ts";
import { cancel } from "./messages/cancel.ts";
import { childEnded } from "./messages/child-ended.ts";
import { decideReview } from "./messages/decide-review.ts";
import { deliveryLost } from "./messages/delivery-lost.ts";
import { discardLetter } from "./messages/discard-letter.ts";
import { gateAnswered } from "./messages/gate-answered.ts";
import { pause, resume } from "./messages/pause.ts";
import { retry } from "./messages/retry.ts";
import { signal } from "./messages/signal.ts";
import { start } from "./messages/start.ts";
import { taskCompleted } from "./messages/task-completed.ts";
import { taskFailed } from "./messages/task-failed.ts";
import { taskStarted } from "./messages/task-started.ts";
import { trigger } from "./messages/trigger.ts";
import type { ExecutionState } from "./state.ts";

/** What a message means for an execution: one file per message. Changes nothing; `evolve` applies what it says. */
export function decide(state: ExecutionState, message: Message, context: Context): ExecutionDecision {
  const { body } = message;
  const begins = body.kind === "start" || (body.kind === "cancel" && body.start !== undefined);
  if (!begins && state.status === "new") return { ...NOTHING, reply: { refused: "NOT_FOUND" } };
  switch (body.kind) {
    case "start":
      return start(state, message, body, context);
    case "trigger":
      return trigger(state, message, body, context);
    case "cancel":
      return cancel(state, message, body, context);
    case "pause":
      return pause(state, message, body, context);
    case "resume":
      return resume(state, message, body, context);
    case "retry":
      return retry(state, message, body, context);
    case "signal":
      return signal(state, message, body, context);
    case "decideReview":
      return decideReview(state, message, body, context);
    case "assignReview":
      return assignReview(state, message, body, context);
    case "discardLetter":
      return discardLetter(state, message, body, context);
    case "taskStarted":
      return taskStarted(state, body, context);
    case "taskCompleted":
      return taskCompleted(state, body, context);
    case "taskFailed":
      return taskFailed(state, body, context);
    case "taskHandedBack":
    case "deliveryLost":
      return deliveryLost(state, body, context);
    case "childEnded":
      return childEnded(state, body, context);
    case "gateAnswered":
      return gateAnswered(state, body, context);
    case "cacheAnswered":
      return cacheAnswered(state, body, context);
    case "gateAcquire":
    case "gateReturn":
    case "gateForsaken":
    case "gateCommand":
    case "cacheLookup":
    case "cacheReturn":
      return { ...NOTHING, reply: { refused: "NOT_FOUND" } };
    case "release":
      return { ...NOTHING, reply: { refused: "NOT_QUARANTINED" } };
  }
}
