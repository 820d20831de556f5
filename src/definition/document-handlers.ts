import { compileCondition } from "../expression/condition.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import {
  ANY,
  type BuiltinHandler,
  closed,
  exactlyOne,
  integer,
  JSON_SCHEMA,
  listOf,
  mapOf,
  object,
  OBJECT,
  oneOf,
  SCALAR,
  STRING,
  TEXT,
} from "./config-schema.ts";

/** What the rules of `validate` can read, besides `item` and `index` of the list they go through. */
export const RULE_NAMES: ReadonlySet<string> = new Set(["value", "previous"]);

/** A file of the folder that the operator names, or the bytes themselves. */
const SOURCE: JsonObject = { "path?": TEXT, "base64?": TEXT };
/** Where something is written: a file, or a folder in which the file is named after the work that writes it. */
const TARGET: JsonObject = { "path?": TEXT, "folder?": TEXT, "if_exists?": oneOf("replace", "fail") };
const SHARE: JsonObject = { type: "number", minimum: 0, maximum: 1 };
const COLUMN_TYPES = ["STRING", "DOUBLE", "INT32", "INT64", "BOOLEAN", "TIMESTAMP", "JSON"] as const;

const WRITTEN = ["path", "bytes", "sha256", "written"] as const;

/** The building blocks of document processing. All of them run on workers. */
export const DOCUMENT_HANDLERS: Readonly<Record<string, BuiltinHandler>> = {
  "file.read": {
    engine: false,
    mockable: true,
    config: object({ path: TEXT, "as?": oneOf("text", "base64", "none"), "max_bytes?": integer(1) }),
    output: () => closed("path", "name", "bytes", "sha256", "media_type", "content"),
  },
  "pdf.text": {
    engine: false,
    defaultTimeoutSeconds: 60,
    mockable: true,
    config: object({ ...SOURCE, "max_bytes?": integer(1), "max_pages?": integer(1, 10_000, 500) }),
    also: (config) => exactlyOne(config, "path", "base64"),
    output: () => closed("text", "page_count", "has_text", "info"),
  },
  ocr: {
    engine: false,
    defaultTimeoutSeconds: 120,
    mockable: true,
    config: object({ ...SOURCE, "max_bytes?": integer(1), "languages?": listOf(TEXT, 1) }),
    also: (config) => exactlyOne(config, "path", "base64"),
    output: () => closed("text", "confidence", "lines", "languages"),
  },
  "llm.extract": {
    engine: false,
    defaultTimeoutSeconds: 180,
    mockable: true,
    config: object({
      text: STRING,
      schema: { type: "object", properties: { properties: OBJECT }, required: ["properties"] },
      "instructions?": STRING,
      "model?": TEXT,
      "temperature?": { type: "number", minimum: 0, maximum: 2 },
      "max_tokens?": integer(1),
      "ungrounded_confidence?": { default: 0.5, ...SHARE },
    }),
    output: ({ schema }) => extractOutput(schema),
  },
  validate: {
    engine: false,
    mockable: true,
    config: object({
      value: ANY,
      "schema?": JSON_SCHEMA,
      "rules?": listOf(
        object({ assert: TEXT, "each?": TEXT, "name?": TEXT, "message?": STRING, "fields?": listOf(STRING) }),
        1,
      ),
    }),
    also: ({ schema, rules }) =>
      schema === undefined && rules === undefined ? 'must have "schema" or "rules"' : ruleFault(rules),
    output: () => closed("valid", "problems", "checked"),
  },
  merge: {
    engine: false,
    mockable: true,
    config: object({
      sources: listOf(
        object({ "name?": TEXT, "fields?": mapOf(OBJECT), "values?": OBJECT, "confidence?": { default: 1, ...SHARE } }),
        1,
      ),
      "locks?": { anyOf: [OBJECT, { type: "null" }, listOf({ anyOf: [OBJECT, { type: "null" }] })] },
      "reviews?": listOf({ anyOf: [OBJECT, { type: "null" }] }),
      "prefer?": oneOf("confidence", "first", "last"),
    }),
    output: () => closed("fields", "values", "confidences", "evidence", "locks", "confidence", "conflicts"),
  },
  "output.json": {
    engine: false,
    mockable: true,
    config: object({ value: ANY, ...TARGET }),
    also: onlyOnePlace,
    output: () => closed(...WRITTEN),
  },
  "output.parquet": {
    engine: false,
    defaultTimeoutSeconds: 600,
    mockable: true,
    config: object({
      "rows?": listOf(OBJECT),
      "jsonl?": TEXT,
      "columns?": mapOf({ type: "string", enum: COLUMN_TYPES }),
      ...TARGET,
    }),
    also: (config) => exactlyOne(config, "rows", "jsonl") ?? onlyOnePlace(config) ?? needsColumns(config),
    output: () => closed(...WRITTEN, "rows"),
  },
  notify: {
    engine: false,
    mockable: true,
    config: object({
      url: TEXT,
      "event?": TEXT,
      "data?": ANY,
      "secret?": TEXT,
      "headers?": mapOf(SCALAR),
    }),
    output: () => closed("id", "status"),
  },
  audit: {
    engine: false,
    mockable: true,
    config: object({ event: TEXT, "data?": ANY, "file?": TEXT }),
    output: () => closed("file", "seq", "hash", "written"),
  },
};

function onlyOnePlace({ path, folder }: JsonObject): string | undefined {
  return path !== undefined && folder !== undefined ? 'must have only one of "path" or "folder"' : undefined;
}

/** Of a file that is read line by line nobody knows the columns before its end. */
function needsColumns({ jsonl, columns }: JsonObject): string | undefined {
  return jsonl !== undefined && columns === undefined ? 'must have "columns" with "jsonl"' : undefined;
}

/** A rule that cannot be read is found at submit, like a condition. */
function ruleFault(rules: Json | undefined): string | undefined {
  if (!Array.isArray(rules)) return undefined;
  for (const rule of rules as readonly Json[]) {
    if (!isJsonObject(rule) || typeof rule["assert"] !== "string" || rule["assert"].includes("{{")) continue;
    const [problem] = compileCondition(rule["assert"], { nodeIds: RULE_NAMES }).problems;
    if (problem !== undefined)
      return `must have rules that can be read: ${JSON.stringify(rule["assert"])}: ${problem.message}`;
  }
  return undefined;
}

/** Each field of the schema, with how sure the model is of it and where it has read it. */
function extractOutput(schema: Json | undefined): Json {
  const properties = isJsonObject(schema) ? schema["properties"] : undefined;
  const output = closed("fields", "values", "confidence", "missing", "model");
  if (!isJsonObject(properties)) return output;
  const names = Object.keys(properties);
  const values = closed(...names);
  const field = closed("value", "confidence", "evidence", "grounded");
  const fields = { ...values, properties: Object.fromEntries(names.map((name) => [name, field])) };
  return { ...output, properties: { ...(output["properties"] as JsonObject), fields, values } };
}
