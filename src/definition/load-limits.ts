import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { compileValue } from "../expression/template.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import {
  BREAKER_FIELDS,
  CONCURRENCY_FIELDS,
  LIMIT_FIELDS,
  NODE_LIMIT_FIELDS,
  WORKFLOW_CONCURRENCY_FIELDS,
} from "./fields.ts";
import type { ProblemList } from "./problems.ts";
import { type FieldReader, fieldReader, readFields, reportIdle, wrongType } from "./read-fields.ts";
import type { BreakerSpec, ConcurrencySpec, LimitSpec, NodeLimit, WorkflowConcurrency } from "./workflow.ts";

const LIMIT = fieldReader("A limit", LIMIT_FIELDS);
const NODE_LIMIT = fieldReader("A limit", NODE_LIMIT_FIELDS);
const BREAKER = fieldReader("A breaker", BREAKER_FIELDS);
const CONCURRENCY = fieldReader("A concurrency", CONCURRENCY_FIELDS);
const WORKFLOW_CONCURRENCY = fieldReader("A concurrency", WORKFLOW_CONCURRENCY_FIELDS);

type Limits = Readonly<Record<string, LimitSpec>>;
type Rate = Required<Pick<LimitSpec, "rate" | "per" | "burst">>;

/** The limits that there are unless the settings say otherwise: no provider likes more of us than this. */
export const DEFAULT_LIMITS: Limits = { openai: rateLimit(50) };

/** What nodes may name: what the workflow defines, and what the settings do. */
export class KnownLimits {
  readonly #own: Limits;
  readonly #more: Limits;
  readonly #used: Record<string, LimitSpec> = {};

  constructor(own: Limits, more: Limits = DEFAULT_LIMITS) {
    this.#own = own;
    this.#more = more;
  }

  has(name: string): boolean {
    if (Object.hasOwn(this.#own, name)) return true;
    if (!Object.hasOwn(this.#more, name)) return false;
    this.#used[name] = this.#more[name]!;
    return true;
  }

  names(): string[] {
    return [...Object.keys(this.#own), ...Object.keys(this.#more)];
  }

  /** Those of the settings that were named: they are written out, so that a stored workflow keeps them. */
  get used(): Limits {
    return this.#used;
  }
}

/** The limits of a workflow, by name. */
export function loadLimits(raw: Json, pointer: string, problems: ProblemList): Limits {
  if (!isJsonObject(raw)) {
    wrongType("limits", "an object", raw, pointer, problems);
    return {};
  }
  const limits: Record<string, LimitSpec> = {};
  for (const [name, value] of Object.entries(raw)) {
    const at = pointer + pointerStep(name);
    if (!/^[\w][\w.#@-]{0,99}$/.test(name)) {
      const reason = "must consist of letters, digits and _ . # @ -, at most 100";
      problems.add("INVALID_NAME", at, { field: name, reason }, { atKey: true });
      continue;
    }
    if (!isJsonObject(value)) {
      wrongType(name, "an object", value, at, problems);
      continue;
    }
    limits[name] = withDefaults(
      readFields(LIMIT, value, () => at, problems),
      at,
      problems,
    );
  }
  return limits;
}

/** The limit of a node: a name as it is, an object with its defaults. Undefined if there is nothing to go by. */
export function loadNodeLimit(
  raw: Json,
  pointer: string,
  limits: KnownLimits,
  problems: ProblemList,
): string | NodeLimit | undefined {
  if (typeof raw === "string") {
    checkName(raw, pointer, limits, problems);
    return raw;
  }
  if (!isJsonObject(raw)) {
    wrongType("limit", "the name of a limit or an object", raw, pointer, problems);
    return undefined;
  }
  const given = readFields(NODE_LIMIT, raw, () => pointer, problems);
  const { name, cost = 1, tokens, ...own } = given as NodeLimit & JsonObject;
  const takes = { cost, ...(tokens !== undefined && { tokens }) };
  if (name === undefined) return { ...takes, ...withDefaults(own, pointer, problems) };
  checkName(name, pointer + pointerStep("name"), limits, problems);
  for (const field of Object.keys(own).filter((each) => LIMIT.properName.has(each))) {
    const reason = `stands beside a name; what ${quote(name)} allows is written under "limits"`;
    problems.add("CONFIG_INVALID", pointer + pointerStep(field), { id: "", reason: `${quote(field)} ${reason}` });
  }
  return { name, ...takes };
}

function checkName(name: string, pointer: string, limits: KnownLimits, problems: ProblemList): void {
  if (limits.has(name)) return;
  const nearest = nearestName(name, limits.names());
  const add = `Add it: "limits": {${quote(name)}: {"rate": 50}}.`;
  const hint = nearest === undefined ? add : `Did you mean ${quote(nearest)}?`;
  problems.add("CONFIG_INVALID", pointer, { id: "", reason: `there is no limit named ${quote(name)}` }, { hint });
}

function withDefaults(given: JsonObject, pointer: string, problems: ProblemList): LimitSpec {
  const { rate, per = "second", burst, concurrency, tokens_per_minute: perMinute } = given as LimitSpec;
  const breaker = loadBreaker(given["breaker"], pointer + pointerStep("breaker"), problems);
  if ([rate, perMinute, concurrency, breaker].every((each) => each === undefined)) {
    const reason = 'a limit needs a "rate", "tokens_per_minute", a "concurrency" or a "breaker"';
    problems.add(
      "CONFIG_INVALID",
      pointer,
      { id: "", reason },
      { hint: 'For instance {"rate": 50, "per": "second"}.' },
    );
  }
  if (rate === undefined) {
    for (const name of ["per", "burst"]) reportIdle(given, name, '"rate"', pointer, problems);
  }
  if (perMinute === undefined) reportIdle(given, "tokens_burst", '"tokens_per_minute"', pointer, problems);
  return {
    ...(rate !== undefined && rateLimit(rate, per, burst)),
    ...(perMinute !== undefined && tokenLimit(perMinute, (given as LimitSpec).tokens_burst)),
    ...(concurrency !== undefined && { concurrency }),
    ...(breaker !== undefined && { breaker }),
  };
}

/** A rate with its defaults. */
export function rateLimit(rate: number, per: Rate["per"] = "second", burst?: number): Rate {
  const perSecond = rate / { second: 1, minute: 60, hour: 3600 }[per];
  return { rate, per, burst: burst ?? Math.max(1, Math.ceil(perSecond)) };
}

/** LLM tokens a minute with their default: whoever sells them counts by the minute, too. */
export function tokenLimit(
  perMinute: number,
  burst = Math.max(1, Math.ceil(perMinute)),
): Required<Pick<LimitSpec, "tokens_per_minute" | "tokens_burst">> {
  return { tokens_per_minute: perMinute, tokens_burst: burst };
}

function loadBreaker(raw: Json | undefined, pointer: string, problems: ProblemList): BreakerSpec | undefined {
  if (raw === undefined || raw === false) return undefined;
  if (raw !== true && !isJsonObject(raw)) {
    wrongType("breaker", "true, false or an object", raw, pointer, problems);
    return undefined;
  }
  const given = raw === true ? {} : (readFields(BREAKER, raw, () => pointer, problems) as Partial<BreakerSpec>);
  const { failure_rate: rate = 0.5, window = 20, open_seconds: seconds = 30 } = given;
  const { min_calls: least = Math.min(10, window) } = given;
  if (least > window) {
    const reason = `must not be more than "window" (${window}), or it would never open`;
    problems.add("NUMBER_OUT_OF_RANGE", `${pointer}/min_calls`, { field: "min_calls", reason });
  }
  return { failure_rate: rate, window, min_calls: least, open_seconds: seconds };
}

export function loadConcurrency(raw: Json, pointer: string, problems: ProblemList): ConcurrencySpec | undefined {
  return readConcurrency(CONCURRENCY, raw, pointer, problems) as ConcurrencySpec | undefined;
}

/** How many executions may run at a time. Its key can read the input only: nothing else is there before they run. */
export function loadWorkflowConcurrency(
  raw: Json,
  pointer: string,
  problems: ProblemList,
): WorkflowConcurrency | undefined {
  const given = readConcurrency(WORKFLOW_CONCURRENCY, raw, pointer, problems);
  if (given?.key === undefined) return given;
  const { references, problems: faults } = compileValue(given.key, { nodeIds: new Set<string>() });
  const at = pointer + pointerStep("key");
  for (const { code, message, hint } of faults) problems.add(code, at, { reason: message }, { hint });
  if (references.some(({ kind }) => kind !== "input" && kind !== "execution")) {
    const reason = '"key" of the concurrency of a workflow can be made of the input only';
    problems.add("CONFIG_INVALID", at, { id: "", reason });
  }
  return given;
}

function readConcurrency(
  reader: FieldReader,
  raw: Json,
  pointer: string,
  problems: ProblemList,
): WorkflowConcurrency | undefined {
  if (!isJsonObject(raw)) {
    wrongType("concurrency", "an object", raw, pointer, problems);
    return undefined;
  }
  const given = readFields(reader, raw, () => pointer, problems) as Partial<WorkflowConcurrency>;
  if (given.limit === undefined) {
    const isMissing = raw["limit"] === undefined || raw["limit"] === null;
    const details = { field: "limit", expected: "a whole number", got: "missing" };
    if (isMissing) problems.add("INVALID_TYPE", pointer + pointerStep("limit"), details);
    return undefined;
  }
  const { limit, key, on_conflict: onConflict = "queue" } = given;
  return { limit, ...(key !== undefined && { key }), on_conflict: onConflict };
}
