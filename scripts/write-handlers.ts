import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUILTIN_HANDLERS, HANDLER_ALIASES } from "../src/definition/builtin-handlers.ts";
import type { Json, JsonObject } from "../src/json/json.ts";

/** What each does, in a few words; where more is said about it. */
const ABOUT: Readonly<Record<string, string>> = {
  input: "The input of the execution over the config as defaults.",
  output: "Its config, resolved; without one the outputs of its parents.",
  http: "One call of a URL.",
  llm: "One completion by a model; with `output_schema` the object itself.",
  transform: "A value made of templates or expressions.",
  router: "Chooses which of its dependants run.",
  map: "Runs a handler, or nodes, for every item of a list.",
  workflow: "Runs another workflow as a child.",
  wait: "Waits for a time or a signal.",
  delay: "Waits for some seconds.",
  review: "Asks a person. See [reviews.md](reviews.md).",
  end: "Ends the execution.",
  "file.read": "What a file is, and its content. See [documents.md](documents.md), as for all that follow.",
  "pdf.text": "The text of a PDF.",
  ocr: "The text in a picture.",
  "llm.extract": "The fields of a schema, with confidence and evidence.",
  validate: "Everything that is wrong with a value.",
  merge: "One value for each field out of several sources, under locks.",
  "output.json": "Writes a value as a file, once.",
  "output.parquet": "Writes rows as a Parquet file, once.",
  notify: "Tells somebody by a signed webhook.",
  audit: "Adds a line to a log with a chain of hashes.",
};

/** The text of docs/handlers.md. */
export function handlersPage(): string {
  const sections = [...BUILTIN_HANDLERS].map(([name, { engine, defaultTimeoutSeconds = 30, config, output }]) => {
    const place = engine
      ? "Runs in the engine."
      : `Runs on a worker, for at most ${defaultTimeoutSeconds} s by default.`;
    const fields = Object.keys(propertiesOf(output?.({}) ?? null)).map((field) => `\`${field}\``);
    const gives = fields.length === 0 ? "" : `\n\nGives ${fields.join(", ")}.`;
    return `## ${name}\n\n${ABOUT[name] ?? ""} ${place}\n\n${table(config)}${gives}\n`;
  });
  const aliases = [...HANDLER_ALIASES].map(([alias, name]) => `\`${alias}\` is \`${name}\``).join(", ");
  return `# Built-in handlers

Made by \`npm run docs\` from what configs are checked by. Any value may be a template. Handlers on workers, \`workflow\` and \`review\` also
take \`mock\`. How nodes, templates and the rest of a workflow are written: [workflows.md](workflows.md).

Some have a second name, for definitions that come from elsewhere: ${aliases}. So a handler of
your own cannot have one of these names, nor that of a node that runs in the engine. One with the name of any other built-in takes its
place on the worker that brings it.

${sections.join("\n")}`;
}

function table(config: JsonObject): string {
  const properties = Object.entries(propertiesOf(config));
  if (properties.length === 0) return "Any config.";
  const required = new Set((config["required"] ?? []) as readonly string[]);
  const rows = properties.map(([name, schema]) => {
    const { default: standing } = schema as JsonObject;
    const otherwise =
      standing === undefined ? (required.has(name) ? "required" : "") : `\`${JSON.stringify(standing)}\``;
    return `| \`${name}\` | ${typeOf(schema)} | ${otherwise} |`;
  });
  return `| Config | Is | By default |\n|---|---|---|\n${rows.join("\n")}`;
}

function propertiesOf(schema: Json): JsonObject {
  const { properties = {} } = (schema ?? {}) as { readonly properties?: JsonObject };
  return properties;
}

function typeOf(schema: Json): string {
  const {
    type,
    enum: choices,
    anyOf,
    items,
    minimum,
    maximum,
  } = schema as JsonObject & { readonly anyOf?: readonly Json[] };
  if (Array.isArray(choices)) return choices.map((choice) => `\`${String(choice)}\``).join(", ");
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(" or ");
  if (type === "array" && items !== undefined) return `list of ${typeOf(items)}`;
  if (type === undefined) return "anything";
  const bounds = [
    minimum === undefined ? "" : ` from ${minimum as number}`,
    maximum === undefined ? "" : ` to ${maximum as number}`,
  ];
  return `${[type as string | readonly string[]].flat().join(" or ")}${bounds.join("")}`;
}

if (process.argv[1] === import.meta.filename) {
  writeFileSync(join(import.meta.dirname, "..", "docs", "handlers.md"), handlersPage());
}
