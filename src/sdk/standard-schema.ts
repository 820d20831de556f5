import { HandlerError } from "../worker/handler.ts";
import type { Json } from "../json/json.ts";
import { Schema, type SchemaFault } from "../json/schema.ts";

/**
 * What Zod, Valibot, ArkType and others have in common (standardschema.dev): a check that also gives the value as its
 * reader wants it, with defaults filled in and dates made of texts.
 */
export interface StandardSchema<In = unknown, Out = In> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Out> | Promise<SchemaResult<Out>>;
    readonly types?: { readonly input: In; readonly output: Out } | undefined;
    /** Of libraries that can write themselves down as JSON Schema. */
    readonly jsonSchema?: JsonSchemaWriter | undefined;
  };
}

export interface JsonSchemaWriter {
  readonly input: (options: {
    readonly target: "draft-2020-12";
    readonly libraryOptions?: Record<string, unknown>;
  }) => Record<string, unknown>;
}

export type SchemaResult<Out> =
  | { readonly value: Out; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What has to be sent. */
export type InputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];
/** What a function is given. */
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

/** A schema written as JSON Schema. The type is the author's word: `jsonSchema<{ path: string }>({ … })`. */
export function jsonSchema<T>(schema: Json): StandardSchema<T> {
  const compiled = Schema.compile(schema);
  if (!(compiled instanceof Schema)) throw new TypeError(`This JSON Schema cannot be checked by: ${told(compiled)}`);
  return {
    "~standard": {
      version: 1,
      vendor: "millrace",
      validate: (value) => {
        const faults = compiled.check(value as Json);
        return faults.length === 0 ? { value: value as T } : { issues: faults.map(issueOf) };
      },
      jsonSchema: { input: () => schema as Record<string, unknown> },
    },
  };
}

/** A type without a check, for what is known to fit: `type<{ status: number }>()`. */
export function type<T>(): StandardSchema<T> {
  return { "~standard": { version: 1, vendor: "millrace", validate: (value) => ({ value: value as T }) } };
}

/** The schema as JSON Schema of what has to be sent; undefined if its library cannot say, or there is no such schema. */
export function toJsonSchema(schema: StandardSchema): Json | undefined {
  try {
    const written = schema["~standard"].jsonSchema?.input({
      target: "draft-2020-12",
      // A date or a class has no JSON Schema. The rest of the schema is still worth checking by.
      libraryOptions: { unrepresentable: "any" },
    });
    if (written === undefined) return undefined;
    const { $schema: _, ...rest } = JSON.parse(JSON.stringify(written)) as { readonly [key: string]: Json };
    return Schema.compile(rest) instanceof Schema ? rest : undefined;
  } catch {
    return undefined;
  }
}

/** The value as its reader wants it, or what is wrong with it. */
export async function parse<Out>(
  schema: StandardSchema<unknown, Out>,
  value: unknown,
): Promise<{ readonly value: Out } | { readonly reason: string }> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { value: result.value };
  return { reason: result.issues.map(issueText).join("; ") };
}

/** As `parse`, inside a task: what does not fit now will not fit at the next attempt. */
export async function parseOrFail<Out>(schema: StandardSchema<unknown, Out>, value: Json, what: string): Promise<Out> {
  const result = await parse(schema, value);
  if ("value" in result) return result.value;
  throw new HandlerError("INPUT_INVALID", `${what} does not fit its schema: ${result.reason}`, { retryable: false });
}

function issueText({ message, path = [] }: SchemaIssue): string {
  const steps = path.map((step) => String(typeof step === "object" ? step.key : step));
  return steps.length === 0 ? message : `${steps.join(".")}: ${message}`;
}

function issueOf({ pointer, reason }: SchemaFault): SchemaIssue {
  return { message: reason, path: pointer.split("/").slice(1) };
}

function told(faults: readonly SchemaFault[]): string {
  return faults.map(({ pointer, reason }) => `"${pointer}" ${reason}`).join("; ");
}
