import { canonicalConfig } from "../definition/load-config.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import type { Change } from "./given-values.ts";
import type { Server } from "./server.ts";

/** Ways to say the same, of which a config has one: whoever sets one of them means it in place of the others. */
const ONE_OF: Readonly<Record<string, readonly string[]>> = {
  transform: ["value", "expression", "fields"],
  llm: ["prompt", "messages"],
  wait: ["seconds", "until", "signal"],
};

/** The config of a node with some places changed: people change a part, and a retry takes the whole. */
export async function changedConfig(
  server: Server,
  execution: string,
  node: string,
  changes: readonly Change[],
): Promise<JsonObject> {
  const { name, nodes } = await server.definition(execution);
  const found = nodes.find((one) => one.id === node);
  if (found === undefined) throw new Failure(EXIT.notFound, `there is no node ${JSON.stringify(node)} in ${name}.`);
  return changes.reduce<JsonObject>((config, change) => withChange(found.handler, config, change), found.config);
}

/** A config as it is stored, with one change as people write it. */
export function withChange(handler: string, config: JsonObject, { path, value }: Change): JsonObject {
  const [first, field, ...deeper] = path as [string, ...string[]];
  // Stored, the fields of a transform are its value: one of them is changed there, and the others stay.
  if (handler === "transform" && first === "fields" && field !== undefined && deeper.length === 0) {
    const made = canonicalConfig(handler, { fields: { [field]: value } }).config["value"] as JsonObject;
    if ("value" in config) return withValue(config, ["value", field], made[field]!) as JsonObject;
  }
  const others = ONE_OF[handler]?.includes(first) === true ? ONE_OF[handler].filter((name) => name !== first) : [];
  const kept = Object.fromEntries(Object.entries(config).filter(([name]) => !others.includes(name)));
  return withValue(kept, path, value) as JsonObject;
}

/** The same value with one place changed; places that are not there are made. */
function withValue(value: Json | undefined, [step, ...rest]: readonly string[], given: Json): Json {
  if (step === undefined) return given;
  if (Array.isArray(value) && /^\d+$/.test(step)) {
    return (value as readonly Json[]).map((item, i) => (i === Number(step) ? withValue(item, rest, given) : item));
  }
  const object = typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  return { ...object, [step]: withValue(Object.hasOwn(object, step) ? object[step] : undefined, rest, given) };
}
