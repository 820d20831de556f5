import { cutTemplates, hasTemplateOutsideQuotes } from "../expression/scan.ts";
import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { BUILTIN_HANDLERS, engineDefaults, HANDLER_ALIASES } from "./builtin-handlers.ts";
import { withZone } from "./dates.ts";
import type { ProblemList } from "./problems.ts";

/** A config in its canonical form, and where the parts that moved were written. */
export interface LoadedConfig {
  readonly config: JsonObject;
  /** A canonical pointer below `from` was written below `to`. */
  readonly moved?: { readonly from: string; readonly to: string };
}

/**
 * What the source documents' handlers are given, made into what ours take. Their external service and LLM are mocks that
 * need no address and no prompt, and whatever they answer is read as `result`; their data processor passes its config
 * through.
 */
export function adoptSeedConfig(
  writtenHandler: string,
  config: JsonObject,
  pointer: () => string,
  { problems, readsResult }: { readonly problems: ProblemList; readonly readsResult: () => boolean },
): LoadedConfig {
  const handler = HANDLER_ALIASES.get(writtenHandler);
  if (handler === undefined || config["mock"] !== undefined) return { config };
  if (handler === "transform") {
    const ours = ["value", "expression", "fields"].some((key) => config[key] !== undefined);
    return ours ? { config } : { config: { value: config }, moved: { from: "/value", to: "" } };
  }
  const needed = handler === "http" ? ["url"] : ["prompt", "messages"];
  if (needed.some((key) => config[key] !== undefined)) {
    const isRead = config["output_schema"] === undefined && readsResult();
    return { config: isRead ? { result: true, ...config } : config };
  }
  const known = BUILTIN_HANDLERS.get(handler)!.config["properties"] as JsonObject;
  const kept: Record<string, Json> = { mock: true };
  for (const [key, value] of Object.entries(config)) {
    if (Object.hasOwn(known, key)) kept[key] = value;
    else problems.add("IGNORED_FIELD", pointer() + pointerStep(key), { field: key }, { atKey: true });
  }
  return { config: kept };
}

/** Whether anything in these nodes looks like a read of a `result`, as templates and expressions write it. */
export function mayReadResult(nodes: Json | undefined): boolean {
  return nodes !== undefined && /\.result\b|\[\\?["']result\\?["']\]/.test(JSON.stringify(nodes));
}

/** One way to write each built-in config, with the defaults of the engine's nodes written out. */
export function canonicalConfig(handler: string, config: JsonObject): LoadedConfig {
  switch (handler) {
    case "transform":
      return canonicalTransform(config);
    case "router":
      return { config: { ...engineDefaults(handler, config), ...config, ...canonicalRoutes(config) } };
    case "wait": {
      const { until } = config;
      return {
        config: {
          ...engineDefaults(handler, config),
          ...config,
          ...(typeof until === "string" && { until: withZone(until) }),
        },
      };
    }
    default: {
      const defaults = engineDefaults(handler, config);
      return { config: defaults === undefined ? config : { ...defaults, ...config } };
    }
  }
}

/** Expressions become templates, which the engine resolves before dispatch: the worker only hands the value back. */
function canonicalTransform(config: JsonObject): LoadedConfig {
  const { expression, fields, ...rest } = config;
  if (typeof expression === "string") {
    return { config: { ...rest, value: asTemplate(expression) }, moved: { from: "/value", to: "/expression" } };
  }
  if (isJsonObject(fields)) {
    const value: Record<string, Json> = {};
    for (const [key, text] of Object.entries(fields)) value[key] = typeof text === "string" ? asTemplate(text) : text;
    return { config: { ...rest, value }, moved: { from: "/value", to: "/fields" } };
  }
  return { config };
}

function canonicalRoutes({ routes }: JsonObject): JsonObject {
  if (!Array.isArray(routes)) return {};
  const canonical = (routes as readonly Json[]).map((route): Json => {
    if (!isJsonObject(route)) return route;
    const { when } = route;
    return typeof when === "string" ? { ...route, when: withoutBraces(when) } : route;
  });
  return { routes: canonical };
}

/** A condition may be written with or without `{{ }}`. Text with several templates stays, and is a syntax error later. */
export function withoutBraces(text: string): string {
  const trimmed = text.trim();
  if (!trimmed.startsWith("{{")) return trimmed;
  const cut = cutTemplates(trimmed);
  return cut?.bodies.length === 1 && cut.texts[1] === "" ? cut.bodies[0]!.trim() : trimmed;
}

function asTemplate(expression: string): string {
  const inner = withoutBraces(expression);
  return hasTemplateOutsideQuotes(inner) ? expression : `{{ ${inner} }}`;
}
