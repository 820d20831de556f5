import { MAX_SECONDS } from "../../../definition/fields.ts";
import { isJsonObject, type Json } from "../../../json/json.ts";
import { Schema } from "../../../json/schema.ts";
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
  if (!isLimit(dueSeconds)) return invalid("/due_seconds", LIMIT);
  if (onDue !== undefined && !isOnDue(onDue)) {
    return invalid("/on_due", 'must be "fail", or {decision: "approve" | "reject", data}');
  }
  if (assignees !== undefined && !areTexts(assignees)) return invalid("/assignees", TEXTS);
  if (fourEyes !== undefined && typeof fourEyes !== "boolean") return invalid("/four_eyes", "must be true or false");
  if (values !== undefined && !isJsonObject(values)) return invalid("/values", "must be an object of fields");
  const misfit = formMisfit(form, onDue);
  if (misfit !== undefined) return misfit;
  if (escalate !== undefined && !isJsonObject(escalate)) return invalid("/escalate", "must be an object");
  const sooner = escalate;
  const afterSeconds = sooner === undefined ? dueSeconds : sooner["after_seconds"];
  if (!isLimit(afterSeconds)) return invalid("/escalate/after_seconds", LIMIT);
  if (sooner !== undefined && !areTexts(sooner["assignees"])) return invalid("/escalate/assignees", TEXTS);
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
    ...(assignees !== undefined && { assignees }),
    onDue: (onDue ?? "fail") as ReviewSpec["onDue"],
    ...shown,
    ...(fourEyes === true && { fourEyes }),
    ...(sooner !== undefined && { escalate: { assignees: sooner["assignees"] as string[], dueAtMs } }),
  };
  const calendarAtMs = context.calendarMs + afterSeconds * 1000;
  return { kind: "waits", wait: { for: "review", review, calendarAtMs }, dueAtMs: null };
};

function isOnDue(onDue: Json): boolean {
  if (!isJsonObject(onDue)) return onDue === "fail";
  return onDue["decision"] === "approve" || onDue["decision"] === "reject";
}

/** The form has to be a schema, and what is decided when nobody does has to fit it as if a person had written it. */
function formMisfit(form: Json | undefined, onDue: Json | undefined): ReturnType<typeof invalid> | undefined {
  if (form === undefined) return undefined;
  const schema = isJsonObject(form) || typeof form === "boolean" ? Schema.compile(form) : [];
  if (!(schema instanceof Schema)) {
    return invalid("/form", `must be a JSON Schema${schema[0] === undefined ? "" : `: ${schema[0].reason}`}`);
  }
  const data = isJsonObject(onDue) ? onDue["data"] : undefined;
  const fault = data === undefined ? undefined : schema.check(data)[0];
  return fault && invalid("/on_due/data", `does not fit the form${at(fault.pointer)}: it ${fault.reason}`);
}

function at(pointer: string): string {
  return pointer === "" ? "" : ` at ${pointer}`;
}

const LIMIT = `must be above 0, and at most ${MAX_SECONDS}`;
const TEXTS = "must be a list of texts";

function isLimit(seconds: Json | undefined): seconds is number {
  return typeof seconds === "number" && seconds > 0 && seconds <= MAX_SECONDS;
}

function areTexts(list: Json | undefined): list is string[] {
  return Array.isArray(list) && list.every((text) => typeof text === "string");
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
