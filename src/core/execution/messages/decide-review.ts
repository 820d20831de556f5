import type { Json } from "../../../json/json.ts";
import type { Context } from "../../machine.ts";
import type { DecideReview, Message } from "../../message.ts";
import { isLarge, toValue } from "../../value.ts";
import { command, type Verdict } from "../command.ts";
import type { ExecutionDecision } from "../decision.ts";
import type { FirstDecision, Wait } from "../events.ts";
import { reviewOutput } from "../nodes/review.ts";
import { decidedData, formRefusal, locksOf } from "../review-data.ts";
import { reviewedExample } from "../review-listing.ts";
import type { ExecutionState } from "../state.ts";
import { judgeBudget } from "./decide-budget.ts";

/**
 * A person has decided. The first decision counts, or, where two people are needed, the second, of another person; to
 * reject completes the node too.
 *
 * Moves the node `waiting → completed`, or leaves it waiting for the second person.
 */
export function decideReview(
  state: ExecutionState,
  message: Message,
  body: DecideReview,
  context: Context,
): ExecutionDecision {
  return command(state, { ...message, body }, context, () => judge(state, message, body, context));
}

type ReviewWait = Extract<Wait, { readonly for: "review" }>;

/** The review that waits under this name, in this generation. */
export function openReviewOf(
  state: ExecutionState,
  { instance, generation }: { readonly instance: string; readonly generation: number },
): { readonly name: string; readonly wait: ReviewWait } | undefined {
  const unit = state.unitOf(instance);
  if (unit === undefined || state.isEnded || generation !== state.generation || !state.reviews.has(unit)) {
    return undefined;
  }
  const wait = state.runs[unit]?.wait;
  return wait?.for === "review" ? { name: state.nameOf(unit), wait } : undefined;
}

function judge(state: ExecutionState, message: Message, body: DecideReview, context: Context): Verdict {
  const { by } = message;
  const open = openReviewOf(state, body);
  if (open === undefined) return judgeBudget(state, message, body, context) ?? { refused: "REVIEW_CLOSED" };
  const { name, wait } = open;
  const { review, first } = wait;
  if (first?.by === by) return { refused: "REVIEW_SAME_PERSON" };
  const { decision, comment } = body;
  const data = decidedData(review, decision, body.data, first);
  if (data === undefined) return { refused: "REVIEW_INVALID", detail: TOO_LARGE_TO_REPEAT, errors: [] };
  // Who says no need not fill in the form.
  const isBareNo = decision === "reject" && data === null;
  const refusal = isBareNo ? undefined : formRefusal(review.form, data);
  if (refusal !== undefined) return refusal;
  const said = reviewOutput(decision, data, by, context, comment);
  const atMs = context.nowMs;
  if (review.fourEyes === true && first === undefined) {
    const { data: _, comment: __, ...shown } = said;
    const inFull = { ...(comment !== undefined && { comment }), ...(!isLarge(JSON.stringify(data)) && { data }) };
    const half = { ...shown, ...inFull } as unknown as FirstDecision;
    return { events: [{ kind: "reviewChanged", atMs, node: name, first: half }] };
  }
  const output = { ...said, ...locksOf(review, data), ...(first !== undefined && { first: confirmed(first) }) };
  const { value, blob } = toValue(output);
  return {
    events: [{ kind: "nodeCompleted", atMs, node: name, output: value }],
    extras: {
      ...(blob !== undefined && { blobs: [blob] }),
      ...(review.values !== undefined && { listings: [reviewedExample(state, name, review, output)] }),
    },
  };
}

const TOO_LARGE_TO_REPEAT =
  "No data was given, and what the first person approved was too large to be kept: say what you approve";

function confirmed({ decision, by, at, comment, data }: FirstDecision): Json {
  return { decision, by, at, comment: comment ?? null, ...(data !== undefined && { data }) };
}
