import { isJsonObject, type Json } from "../../../json/json.ts";
import type { Context } from "../../machine.ts";
import { INLINE_BYTES } from "../../value.ts";
import type { ReviewSpec } from "../events.ts";
import { configOf, type EngineNode, invalid, mockOf } from "./engine-node.ts";

/** Waits for a person to decide. Rejecting completes the node too: what follows is a matter of routes. */
export const reviewNode: EngineNode = (state, unit, context) => {
  const resolved = configOf(state, unit, context);
  if (resolved.kind !== "config") return resolved;
  const { form, title, assignees, due_seconds: dueSeconds, on_due: onDue } = resolved.config;
  const { values, confidence, source, four_eyes: fourEyes, escalate } = resolved.config;
  const mock = mockOf(resolved.config);
  if (mock !== undefined) {
    return { kind: "completed", output: mock === true ? reviewOutput("approve", null, "mock", context) : mock };
  }
  if (typeof dueSeconds !== "number" || !(dueSeconds > 0)) return invalid("/due_seconds", "must be above 0");
  if (onDue !== undefined && !isOnDue(onDue)) {
    return invalid("/on_due", 'must be "fail", or {decision: "approve" | "reject", data}');
  }
  if (values !== undefined && !isJsonObject(values)) return invalid("/values", "must be an object of fields");
  const sooner = isJsonObject(escalate) ? escalate : undefined;
  const afterSeconds = sooner === undefined ? dueSeconds : sooner["after_seconds"];
  if (typeof afterSeconds !== "number" || !(afterSeconds > 0)) {
    return invalid("/escalate/after_seconds", "must be above 0");
  }
  if (sooner !== undefined && afterSeconds >= dueSeconds) {
    return invalid("/escalate/after_seconds", 'must be less than "due_seconds"');
  }
  const dueAtMs = context.calendarMs + dueSeconds * 1000;
  const shown = {
    ...(values !== undefined && { values }),
    ...(confidence !== undefined && { confidence }),
    ...(source !== undefined && { source }),
  };
  // It stands in the list of open reviews, and people have to read it.
  if (JSON.stringify(shown).length > INLINE_BYTES) {
    return invalid("/values", `must be less than ${INLINE_BYTES} bytes together with "confidence" and "source"`);
  }
  const review: ReviewSpec = {
    ...(form !== undefined && { form }),
    ...(title !== undefined && { title: typeof title === "string" ? title : JSON.stringify(title) }),
    ...(Array.isArray(assignees) && { assignees: textsOf(assignees) }),
    onDue: (onDue ?? "fail") as ReviewSpec["onDue"],
    ...shown,
    ...(fourEyes === true && { fourEyes }),
    ...(sooner !== undefined && { escalate: { assignees: textsOf(sooner["assignees"]), dueAtMs } }),
  };
  const calendarAtMs = context.calendarMs + afterSeconds * 1000;
  return { kind: "waits", wait: { for: "review", review, calendarAtMs }, dueAtMs: null };
};

function isOnDue(onDue: Json): boolean {
  if (!isJsonObject(onDue)) return onDue === "fail";
  return onDue["decision"] === "approve" || onDue["decision"] === "reject";
}

function textsOf(list: Json | undefined): readonly string[] {
  return Array.isArray(list) ? list.map(String) : [];
}

export function reviewOutput(
  decision: string,
  data: Json,
  by: string,
  context: Context,
  comment?: string,
): { readonly [name: string]: Json } {
  return { decision, data, by, at: new Date(context.calendarMs).toISOString(), comment: comment ?? null };
}
