import { checkDefinition, type DefinitionReport, readDefinition, type TextAround } from "../../definition/read.ts";
import type { HandlerEntry, NodeDefaults } from "../../definition/handlers.ts";
import type { Problem } from "../../definition/problems.ts";
import { ENGINE_HANDLERS, type Workflow } from "../../definition/workflow.ts";
import { type ErrorCode, errorMessage } from "../../errors/registry.ts";
import type { ReadFault } from "../../json/document.ts";
import { isJsonObject, type Json, type JsonObject } from "../../json/json.ts";
import { locateJson } from "../../json/locate.ts";
import { readJson } from "../../json/read-json.ts";
import { readYaml } from "../../json/read-yaml.ts";
import type { GoodDefinition } from "./definitions.ts";

/** A text to check, and all that the check depends on. Travels to a thread, so it is plain data. */
export interface CheckOrder {
  readonly source: Uint8Array | string;
  readonly format: "json" | "yaml";
  /** Somebody wrote the text, and can find a place in it. */
  readonly isWritten: boolean;
  readonly handlers: readonly (readonly [string, HandlerEntry])[];
  readonly allowMissing: boolean;
  readonly defaults: NodeDefaults;
}

export interface Checked<Good = GoodDefinition> {
  /** There only if there are no errors. */
  readonly good?: Good;
  /** Handlers of its nodes that a worker has to serve. */
  readonly served?: readonly string[];
  /** The input that came with it, in the form `{definition, input_params}`. */
  readonly input?: Json;
  /** The labels that came with it. */
  readonly labels?: Json;
  /** Fields beside the definition that nobody knows. */
  readonly unknown?: readonly string[];
  readonly failure?: ErrorCode;
  readonly errors: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly omitted: number;
}

const ENVELOPE: ReadonlySet<string> = new Set(["definition", "input_params", "labels"]);

/** Reads and checks a definition, by itself or in the form `{definition, input_params}`. Never throws because of it. */
export function checkSource(order: CheckOrder): Checked {
  const { source, format } = order;
  const entries = new Map(order.handlers);
  const handlers = {
    get: (name: string) => entries.get(name),
    names: () => entries.keys(),
    allowMissing: order.allowMissing,
    defaults: order.defaults,
  };
  const found = envelopeOf(source, format);
  if (found === undefined) return summary(readDefinition(source, { format, handlers }));
  const { envelope, unfit, around } = found;
  if (unfit.length > 0) return { failure: "INVALID_JSON", errors: unfit, warnings: [], omitted: 0 };
  const unknown = Object.keys(envelope).filter((name) => !ENVELOPE.has(name));
  const { definition = null, input_params: input, labels } = envelope;
  const checked = summary(checkDefinition(definition, { handlers }, order.isWritten ? around : undefined));
  // Nothing and null are the same: clients that have no input send either.
  const beside = { ...(input !== undefined && input !== null && { input }), ...(labels !== undefined && { labels }) };
  return { ...checked, ...beside, ...(unknown.length > 0 && { unknown }) };
}

/**
 * The object around a definition, if there is one. Only a text with that word in it is read a second time; what is wrong
 * with the text itself is told by whoever reads it as a definition.
 */
function envelopeOf(
  source: Uint8Array | string,
  format: "json" | "yaml",
): { readonly envelope: JsonObject; readonly unfit: readonly Problem[]; readonly around: TextAround } | undefined {
  const text = typeof source === "string" ? source : Buffer.from(source.buffer, source.byteOffset, source.byteLength);
  if (!text.includes("definition")) return undefined;
  let decoded: string;
  try {
    decoded = typeof text === "string" ? text : new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
  } catch {
    return undefined;
  }
  const document = format === "yaml" ? readYaml(decoded) : readJson(decoded);
  const { value, faults } = document;
  const root = value ?? (format === "json" ? lenient(decoded, faults) : undefined);
  if (!isJsonObject(root) || !Object.hasOwn(root, "definition")) return undefined;
  return {
    envelope: root,
    unfit: faults.flatMap((fault) => lostNumber(fault, format)),
    around: {
      text: decoded,
      locate: (pointers) => {
        const inside = [...pointers].map((pointer) => `${INSIDE}${pointer}`);
        const places = format === "yaml" ? document.locate(inside) : locateJson(decoded, inside);
        return new Map([...places].map(([pointer, place]) => [pointer.slice(INSIDE.length), place]));
      },
    },
  };
}

const INSIDE = "/definition";

/** A number of an input that would come out as another one. Those of the definition are found when it is checked. */
function lostNumber(fault: ReadFault, format: "json" | "yaml"): Problem[] {
  if (fault.code !== "NUMBER_OUT_OF_RANGE" || !/^\/input_params(\/|$)/.test(fault.pointer)) return [];
  const { field, reason } = fault.details;
  const told = {
    format: format === "json" ? "JSON" : "YAML",
    reason: `the number ${field.slice(0, 40)} ${reason}`,
  } as const;
  return [{ code: "INVALID_JSON", path: fault.pointer, message: errorMessage("INVALID_JSON", told) }];
}

/**
 * Keys that a definition may not have are fine in an input; those in the definition are found when it is checked. In
 * YAML, which people write, they stay refused: its reader leaves them out.
 */
function lenient(
  text: string,
  faults: readonly { readonly code: string; readonly pointer: string }[],
): Json | undefined {
  const isInput = ({ code, pointer }: { code: string; pointer: string }): boolean =>
    code === "NUMBER_OUT_OF_RANGE" || (code === "FORBIDDEN_KEY" && pointer.startsWith("/input_params/"));
  return faults.every(isInput) ? (JSON.parse(text) as Json) : undefined;
}

function summary({ workflow, hash, failure, errors, warnings, omitted }: DefinitionReport): Checked {
  const told = { errors, warnings, omitted, ...(failure !== undefined && { failure }) };
  if (workflow === undefined || hash === undefined) return told;
  const { name, input_schema: inputSchema } = workflow;
  const good: GoodDefinition = { hash, text: JSON.stringify(workflow), name, inputSchema };
  return { ...told, good, served: servedHandlers(workflow.nodes) };
}

/** What a worker has to serve, also for the items of maps. */
function servedHandlers(nodes: Workflow["nodes"]): readonly string[] {
  const served = new Set<string>();
  const left = [nodes];
  for (let list = left.pop(); list !== undefined; list = left.pop()) {
    for (const { handler, config } of list) {
      const runs = handler === "map" && typeof config["handler"] === "string" ? config["handler"] : handler;
      if (!ENGINE_HANDLERS.has(runs)) served.add(runs);
      if (handler === "map" && Array.isArray(config["nodes"])) left.push(config["nodes"]);
    }
  }
  return [...served];
}
