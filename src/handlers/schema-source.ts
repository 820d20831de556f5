import * as z from "zod";
import { pointerTo } from "../json/pointer.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { Schema } from "../json/schema.ts";
import type { Fault } from "./prepared-handler.ts";

/** How the config or output of a handler can be described: by Zod 4, or as JSON Schema. */
export type SchemaSource = z.ZodType | JsonObject | boolean;

/** What a handler is given if its config is described so. */
export type Given<Source> = Source extends z.ZodType ? z.output<Source> : Json;
/** What it may return if its output is described so. */
export type Returned<Source> = Source extends z.ZodType ? z.input<Source> : Json;

/** A description made ready: to be told to others, and to check by. */
export interface ReadySchema {
  readonly json: Json;
  /** What is wrong with a value, or the value as its schema makes it: with defaults, for instance. */
  read(value: unknown): { readonly value: unknown } | { readonly faults: readonly Fault[] };
}

/** Gives a sentence instead if it is no schema that we can check by. */
export function readySchema(source: SchemaSource, io: "input" | "output"): ReadySchema | string {
  if (!isZod(source)) return readyJsonSchema(source);
  let json: Json;
  try {
    // What JSON Schema has no words for, such as a refinement, counts as anything; Zod checks it when it runs.
    json = z.toJSONSchema(source, { io, unrepresentable: "any" }) as Json;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const ready = readyJsonSchema(json);
  if (typeof ready === "string") return ready;
  return {
    json,
    read: (value) => {
      const result = z.safeParse(source, value);
      return result.success ? { value: result.data } : { faults: result.error.issues.map(faultOf) };
    },
  };
}

function isZod(source: SchemaSource): source is z.ZodType {
  return typeof source === "object" && "_zod" in source;
}

function readyJsonSchema(json: Json): ReadySchema | string {
  const schema = Schema.compile(json);
  if (!(schema instanceof Schema)) {
    const { pointer, reason } = schema[0]!;
    return `${pointer === "" ? "it" : `"${pointer}"`} ${reason}`;
  }
  return {
    json,
    read: (value) => {
      const faults = schema.check(value as Json);
      if (faults.length === 0) return { value };
      return { faults: faults.map(({ pointer, reason }) => ({ path: pointer, message: reason })) };
    },
  };
}

function faultOf({ path, message }: { readonly path: readonly PropertyKey[]; readonly message: string }): Fault {
  const steps = path.map((step) => (typeof step === "symbol" ? String(step) : step));
  return { path: pointerTo(steps), message };
}
