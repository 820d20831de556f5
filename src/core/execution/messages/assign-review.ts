import type { Context } from "../../machine.ts";
import type { AssignReview, Message } from "../../message.ts";
import { command, type Verdict } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import type { ExecutionState } from "../state.ts";
import { openReviewOf } from "./decide-review.ts";

/** Others are to decide a review. It stays open, and due when it was. */
export function assignReview(
  state: ExecutionState,
  message: Message,
  body: AssignReview,
  context: Context,
): ExecutionDecision {
  return command(state, { ...message, body }, context, (): Verdict => {
    const open = openReviewOf(state, body);
    if (open === undefined) return { refused: "REVIEW_CLOSED" };
    const { name } = open;
    return { events: [{ kind: "reviewChanged", atMs: context.nowMs, node: name, assignees: body.assignees }] };
  });
}
