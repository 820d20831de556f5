import { RULE_NAMES } from "../definition/document-handlers.ts";
import { compileCondition } from "../expression/condition.ts";
import type { CompiledCondition, NodeView, Scope } from "../expression/scope.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerTo } from "../json/pointer.ts";
import { Schema } from "../json/schema.ts";
import type { Handler, HandlerCall } from "../worker/handler.ts";
import { configInvalid } from "./prepared-handler.ts";

interface Rule {
  readonly assert: string;
  readonly each?: string;
  readonly name?: string;
  readonly message?: string;
  readonly fields?: readonly string[];
}

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface ValidateConfig {
  readonly value: Json;
  readonly schema?: Json;
  readonly rules?: readonly Rule[];
}

/** A document with more has one problem: whoever has to look at it looks at all of it. */
const MAX_PROBLEMS = 1_000;

/**
 * `validate`: everything that is wrong with a value, by a JSON Schema and by rules. The node completes whatever it finds:
 * what happens to what is not valid is for a router to say, and mostly a person.
 */
export const validate: Handler = (call) => {
  const { value, schema, rules = [] } = call.config as unknown as ValidateConfig;
  const problems: JsonObject[] = schema === undefined ? [] : [...schemaProblems(call, schema, value)];
  let checked = schema === undefined ? 0 : 1;
  for (const rule of rules) {
    const condition = compileCondition(rule.assert, { nodeIds: RULE_NAMES });
    const [fault] = condition.problems;
    if (fault !== undefined) throw configInvalid(call.nodeId, [{ path: "/rules", message: `it ${fault.message}` }]);
    for (const place of placesOf(rule, value)) {
      checked++;
      const problem = ruleProblem(rule, condition, place, value);
      if (problem !== undefined && problems.length < MAX_PROBLEMS) problems.push(problem);
    }
  }
  return { valid: problems.length === 0, problems, checked };
};

function schemaProblems(call: HandlerCall, json: Json, value: Json): readonly JsonObject[] {
  const schema = Schema.compile(json);
  if (schema instanceof Schema) {
    return schema.check(value).map(({ pointer, reason }) => ({
      rule: "schema",
      path: pointer,
      message: pointer === "" ? `it ${reason}` : `${JSON.stringify(pointer.slice(1))} ${reason}`,
      fields: pointer === "" ? [] : [pointer.slice(1).split("/")[0]!],
    }));
  }
  const faults = schema.map(({ pointer, reason }) => ({ path: `/schema${pointer}`, message: reason }));
  throw configInvalid(call.nodeId, faults);
}

/** Where a rule is asked: once, or for every entry of a list. */
interface Place {
  readonly path: string;
  readonly item?: Json;
  readonly index?: number;
  readonly previous: Json;
  /** The list is none. */
  readonly fault?: string;
}

function placesOf({ each }: Rule, value: Json): readonly Place[] {
  if (each === undefined) return [{ path: "", previous: null }];
  const steps = each.split(".");
  const list = steps.reduce<Json | undefined>((at, step) => (isJsonObject(at) ? at[step] : undefined), value);
  const path = pointerTo(steps);
  if (!Array.isArray(list)) return [{ path, previous: null, fault: `${JSON.stringify(each)} is not a list` }];
  return (list as readonly Json[]).map((item, index, items) => ({
    path: `${path}/${index}`,
    item,
    index,
    previous: index === 0 ? null : items[index - 1]!,
  }));
}

function ruleProblem(rule: Rule, condition: CompiledCondition, place: Place, value: Json): JsonObject | undefined {
  const problem = (why: string): JsonObject => ({
    rule: rule.name ?? rule.assert,
    path: place.path,
    message: why,
    fields: rule.fields ?? (rule.each === undefined ? [] : [rule.each.split(".")[0]!]),
  });
  if (place.fault !== undefined) return problem(place.fault);
  const outcome = condition.evaluate(scopeOf(place, value));
  // What cannot be judged is not right: a field is missing, or is of another kind.
  if (outcome.kind === "failed") return problem(`could not be checked: ${outcome.failure.message}`);
  if (outcome.kind === "resolved" && outcome.value) return undefined;
  return problem(rule.message ?? `must be true: ${rule.assert}`);
}

function scopeOf({ item, index, previous }: Place, value: Json): Scope {
  const views: Readonly<Record<string, NodeView>> = {
    value: { kind: "output", value },
    previous: { kind: "output", value: previous },
  };
  return {
    node: (id) => (Object.hasOwn(views, id) ? views[id] : undefined),
    input: { kind: "none" },
    executionId: "",
    ...(item !== undefined && { item }),
    ...(index !== undefined && { index }),
  };
}
