import { RE2JS } from "re2js";
import * as z from "zod";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { type HandlerCall, HandlerError } from "../worker/handler.ts";
import type { Completion, LlmProvider, LlmRequest } from "./llm-client.ts";

const TYPE = z.enum(["text", "number", "date"]);
const FIELD = z.strictObject({
  /** The first group is the value, or the whole match without a group. */
  pattern: z.string().optional(),
  /** A list: one object of the named groups for each match. */
  each: z.string().optional(),
  types: z.record(z.string(), TYPE).default({}),
  type: TYPE.default("text"),
  /** Instead of a pattern. */
  value: z.json().optional(),
  evidence: z.string().optional(),
  confidence: z.number().min(0).max(1).default(0.99),
});
const FIXTURE = z.strictObject({
  name: z.string().optional(),
  /** All of these words are in the documents it is for. */
  match: z.array(z.string()),
  fields: z.record(z.string(), FIELD),
});

type Field = z.output<typeof FIELD>;

interface Read {
  readonly value: Json;
  readonly confidence: number;
  readonly evidence: string | null;
}

const UNKNOWN: Read = { value: null, confidence: 0, evidence: null };

/**
 * A model that is none: patterns that find the fields of known kinds of documents. The same text gives the same answer,
 * with the mistakes of whoever read the text before, so that what comes after a model can be tried without one.
 */
export class LlmFixtures implements LlmProvider {
  readonly #fixtures: readonly z.output<typeof FIXTURE>[];
  readonly #patterns = new Map<string, RE2JS>();

  /** What is wrong with them is said in one sentence. */
  constructor(json: unknown) {
    const read = z.array(FIXTURE).safeParse(json);
    if (!read.success) throw new Error(z.prettifyError(read.error).replaceAll(/\s+/g, " "));
    this.#fixtures = read.data;
    for (const { pattern, each } of read.data.flatMap(({ fields }) => Object.values(fields))) {
      for (const text of [pattern, each])
        if (text !== undefined) this.#patterns.set(text, RE2JS.compile(text, RE2JS.MULTILINE));
    }
  }

  /** The fields of these names, each as `llm.extract` asks a model for it. */
  read(text: string, names: readonly string[]): Readonly<Record<string, Read>> {
    const fixture = this.#fixtures.find(({ match }) => match.every((words) => text.includes(words)));
    return Object.fromEntries(
      names.map((name) => {
        const field = fixture !== undefined && Object.hasOwn(fixture.fields, name) ? fixture.fields[name]! : undefined;
        return [name, field === undefined ? UNKNOWN : this.#field(field, text)];
      }),
    );
  }

  complete(request: LlmRequest, call: Pick<HandlerCall, "addUsage">): Promise<Completion> {
    const text = JSON.stringify(this.read(documentOf(request), namesOf(request)));
    const [prompt, completion] = [tokens(JSON.stringify(request.messages)), tokens(text)];
    const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
    call.addUsage(usage);
    return Promise.resolve({ text, model: "fixtures", finishReason: "stop", usage });
  }

  #field({ pattern, each, types, type, value, evidence, confidence }: Field, text: string): Read {
    if (value !== undefined) return { value, confidence, evidence: evidence ?? null };
    if (each !== undefined) return this.#list(each, types, text, confidence);
    const matcher = this.#patterns.get(pattern ?? "")?.matcher(text);
    if (matcher === undefined || !matcher.find()) return UNKNOWN;
    const found = matcher.groupCount() > 0 ? matcher.group(1) : matcher.group();
    return found === null ? UNKNOWN : { value: typed(found, type), confidence, evidence: matcher.group()!.trim() };
  }

  #list(each: string, types: Field["types"], text: string, confidence: number): Read {
    const pattern = this.#patterns.get(each)!;
    const groups = Object.keys(pattern.namedGroups());
    const matcher = pattern.matcher(text);
    const items: JsonObject[] = [];
    let evidence: string | null = null;
    while (matcher.find()) {
      evidence ??= matcher.group()!.trim();
      const found = groups.flatMap((name) => {
        const part = matcher.group(name);
        return part === null || part === "" ? [] : [[name, typed(part, types[name] ?? "text")] as const];
      });
      items.push(Object.fromEntries(found));
    }
    return items.length === 0 ? UNKNOWN : { value: items, confidence, evidence };
  }
}

/** What a person has to say comes first; what is said later is about answers that did not fit. */
function documentOf({ messages }: LlmRequest): string {
  const content = messages.find(({ role }) => role === "user")?.["content"];
  return typeof content === "string" ? content : JSON.stringify(content ?? "");
}

function namesOf({ response_format: format }: LlmRequest): readonly string[] {
  const inner = isJsonObject(format?.["json_schema"]) ? format["json_schema"]["schema"] : undefined;
  const properties = isJsonObject(inner) ? inner["properties"] : undefined;
  if (isJsonObject(properties)) return Object.keys(properties);
  throw new HandlerError("LLM_RESPONSE_INVALID", "Fixtures answer only what asks for fields by a schema");
}

/** About four characters each, as a rule of thumb. */
function tokens(text: string): number {
  return Math.ceil(text.length / 4);
}

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");

function typed(text: string, type: "text" | "number" | "date"): Json {
  if (type === "number") {
    const number = Number(text.replaceAll(/[,$€£\s]/g, ""));
    return Number.isFinite(number) ? number : text;
  }
  return type === "date" ? isoDate(text) : text.trim();
}

/** `03/20/2023`, `Jan 1, 2022`, `01Aug2018`; anything else stays as it is. */
function isoDate(text: string): string {
  const numbers = /^(\d{1,2})\/(\d{1,2})\/(\d{4})$/.exec(text);
  if (numbers !== null) return iso(numbers[3]!, Number(numbers[1]), numbers[2]!);
  const monthFirst = /^([a-z]{3})[a-z]* (\d{1,2}), (\d{4})$/i.exec(text);
  if (monthFirst !== null) return iso(monthFirst[3]!, monthOf(monthFirst[1]!), monthFirst[2]!);
  const dayFirst = /^(\d{1,2}) ?([a-z]{3})[a-z]* ?(\d{4})$/i.exec(text);
  return dayFirst === null ? text : iso(dayFirst[3]!, monthOf(dayFirst[2]!), dayFirst[1]!);
}

function monthOf(name: string): number {
  return MONTHS.indexOf(name.toLowerCase()) + 1;
}

function iso(year: string, month: number, day: string): string {
  return `${year}-${String(month).padStart(2, "0")}-${day.padStart(2, "0")}`;
}
