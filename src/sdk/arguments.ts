import type { Join } from "../definition/workflow.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { type Dependency, nodePlace } from "./dependency.ts";
import { parseOrFail, type StandardSchema } from "./standard-schema.ts";

/** What a node comes after, under the name that its function uses. */
export interface NamedDependency {
  readonly name: string;
  readonly dependency: Dependency;
}

/**
 * The config by which a function is given its arguments. It says itself how to be read, because a task of an older
 * version of a workflow may reach a worker that has the newer one.
 *
 * Values that are surely there are templates of their own, so that a large one passes by reference; one that may be
 * missing is a list of one or none: null is a value, and JSON has no undefined.
 */
export function writeArguments(dependencies: readonly NamedDependency[], join: Join): JsonObject {
  const given: Record<string, Json> = {};
  const perhaps: Record<string, Json> = {};
  for (const { name, dependency } of dependencies) {
    if (dependency.gives === "route") given[name] = true;
    else if (isSure(dependency, join)) given[name] = sureTemplate(dependency);
    else perhaps[name] = perhapsTemplate(dependency);
  }
  return {
    input: "{{ input }}",
    ...(Object.keys(given).length > 0 && { given }),
    ...(Object.keys(perhaps).length > 0 && { perhaps }),
  };
}

/** Whether it is there whenever what comes after it runs under this join. */
function isSure({ mayLack, on }: Dependency, join: Join): boolean {
  if (join === "all_success") return !mayLack || on !== "done";
  return join === "none_failed" && !mayLack;
}

/** As `writeArguments`, of one value in the result of a run: what is missing is null. */
export function resultTemplate(dependency: Dependency): Json {
  if (dependency.gives === "route") return true;
  if (!dependency.mayLack) return sureTemplate(dependency);
  const { has, value } = cases(dependency);
  return `{{ ${has} ? ${value} : null }}`;
}

function sureTemplate(dependency: Dependency): string {
  const { place, gives } = dependency;
  if (gives === "value" || gives === "error") return `{{ ${place} }}`;
  const { has, value } = cases(dependency);
  return gives === "outcome" ? `{{ ${has} ? ${value} : {"status": "SKIPPED"} }}` : `{{ ${value} }}`;
}

function perhapsTemplate(dependency: Dependency): string {
  const { has, value } = cases(dependency);
  return `{{ ${has} ? [${value}] : [] }}`;
}

/** When there is a value, and what it is then. */
function cases(dependency: Dependency): { readonly has: string; readonly value: string } {
  const { id, place, gives } = dependency;
  const output = hasOutput(dependency);
  const error = hasError(dependency);
  if (gives === "error") return { has: `!${output} && ${error}`, value: place };
  if (gives === "value") return { has: output, value: place };
  const failed = `{"status": "FAILED", "error": ${nodePlace(id)}.error}`;
  return { has: `(${output} || ${error})`, value: `(${output} ? ${completed(place)} : ${failed})` };
}

function completed(place: string): string {
  return `{"status": "COMPLETED", "output": ${place}}`;
}

function hasOutput({ id }: Dependency): string {
  return `has(${nodePlace(id)}.output)`;
}

function hasError({ id }: Dependency): string {
  return `has(${nodePlace(id)}.error)`;
}

export interface Arguments {
  readonly input: unknown;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Reads what `writeArguments` wrote, once its templates are resolved. */
export async function readArguments(
  config: Json,
  dependencies: readonly NamedDependency[],
  inputSchema: StandardSchema | undefined,
): Promise<Arguments> {
  const { input = null, given, perhaps } = isJsonObject(config) ? config : {};
  const known = new Map(dependencies.map(({ name, dependency }) => [name, dependency]));
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(isJsonObject(given) ? given : {})) {
    values[name] = await decoded(value, known.get(name));
  }
  for (const [name, list] of Object.entries(isJsonObject(perhaps) ? perhaps : {})) {
    const value = Array.isArray(list) ? (list[0] as Json | undefined) : undefined;
    values[name] = value === undefined ? undefined : await decoded(value, known.get(name));
  }
  return { input: inputSchema === undefined ? input : await parseOrFail(inputSchema, input, "The input"), values };
}

/** A stored value as its type promises it. */
export async function decoded(value: Json, dependency: Dependency | undefined): Promise<unknown> {
  if (dependency?.decode === undefined) return value;
  switch (dependency.gives) {
    case "value":
      return dependency.decode(value);
    case "result":
    case "outcome":
      if (!isJsonObject(value) || value["status"] !== "COMPLETED") return value;
      return { ...value, output: await dependency.decode(value["output"]!) };
    case "error":
    case "route":
      return value;
  }
}
