import type { Json } from "../../../json/json.ts";
import { Schema } from "../../../json/schema.ts";
import type { Context } from "../../machine.ts";
import type { DecideReview, Message } from "../../message.ts";
import { toValue } from "../../value.ts";
import { command, type Verdict } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import { reviewOutput } from "../nodes/review.ts";
import type { ExecutionState } from "../state.ts";

/**
 * A person has decided. The first decision counts; to reject completes the node too.
 *
 * Moves the node `waiting → completed`.
 */
export function decideReview(
  state: ExecutionState,
  message: Message,
  body: DecideReview,
  context: Context,
): ExecutionDecision {
  return command(state, { ...message, body }, context, () => judge(state, message, body, context));
}

function judge(state: ExecutionState, { by }: Message, body: DecideReview, context: Context): Verdict {
  const unit = state.unitOf(body.instance);
  const wait = unit === undefined ? null : state.runs[unit]?.wait;
  const isOpen =
    unit !== undefined && !state.isEnded && body.generation === state.generation && state.reviews.has(unit);
  if (!isOpen || wait?.for !== "review") return { refused: "REVIEW_CLOSED" };
  // Who says no need not fill in the form.
  const isBareNo = body.decision === "reject" && body.data === null;
  const errors = isBareNo ? [] : formErrors(wait.review.form, body.data);
  if (errors.length > 0) return { refused: "REVIEW_INVALID", errors };
  const { value, blob } = toValue(reviewOutput(body.decision, body.data, by, context, body.comment));
  return {
    events: [{ kind: "nodeCompleted", atMs: context.nowMs, node: state.nameOf(unit), output: value }],
    ...(blob !== undefined && { extras: { blobs: [blob] } }),
  };
}

/** What is wrong with the data, by the form of the review. A form that is no schema asks for nothing. */
function formErrors(form: Json | undefined, data: Json): Json[] {
  if (form === undefined) return [];
  const schema = Schema.compile(form);
  if (!(schema instanceof Schema)) return [];
  return schema.check(data).map(({ pointer, reason }) => ({ path: pointer, message: reason }));
}
