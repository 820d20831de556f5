import { nearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { pointerStep, pointerSteps } from "../json/pointer.ts";
import { Schema, type SchemaFault } from "../json/schema.ts";
import { type UnknownField, unknownInSchema, unknownKey } from "./output-fields.ts";
import { BUILTIN_HANDLERS } from "./builtin-handlers.ts";
import type { LimitSpec, Prices, RetryPolicy } from "./workflow.ts";

/** What is known of a handler that is not built in. */
export interface HandlerEntry {
  /** Runs in the engine, without a worker. */
  readonly engine: boolean;
  /** JSON Schema of the resolved config. */
  readonly configSchema?: Json;
  /** JSON Schema of the output: references to fields it does not have are errors. */
  readonly outputSchema?: Json;
  readonly defaultTimeoutSeconds?: number;
}

/** The handlers somebody serves: registered in this process, or named by a worker seen lately. */
export interface HandlerCatalogue {
  get(name: string): HandlerEntry | undefined;
  /** For suggestions. */
  names(): Iterable<string>;
  /** Accept handlers that nobody serves yet. */
  readonly allowMissing: boolean;
  /** What nodes get that state none, where that is not what the format says. Written out with every definition. */
  readonly defaults?: NodeDefaults;
}

/** Plain data: a definition may be checked in a thread. */
export interface NodeDefaults {
  readonly retry?: RetryPolicy;
  /** Of nodes on a worker. */
  readonly timeoutSeconds?: number;
  /** The same by handler. */
  readonly timeoutSecondsOf?: Readonly<Record<string, number>>;
  /** The same by the name of the handler in capitals, with `_` for whatever is no letter or digit. */
  readonly timeoutSecondsOfCapitals?: Readonly<Record<string, number>>;
  /** One queue for all, instead of one for each handler. */
  readonly queue?: string;
  /** Limits that nodes may name, though the workflow does not define them. */
  readonly limits?: Readonly<Record<string, LimitSpec>>;
  /** The name of the limit of nodes that state none, by handler. */
  readonly limitOf?: Readonly<Record<string, string>>;
  /** The model of nodes that state none, by handler. Written out where results are kept: those of another are others. */
  readonly modelOf?: Readonly<Record<string, string>>;
  /** What tokens cost, by model. */
  readonly prices?: Prices;
}

/** Only the built-in nodes. */
export const NO_HANDLERS: HandlerCatalogue = { get: () => undefined, names: () => [], allowMissing: false };

/** Why a config does not fit its handler. */
export interface ConfigFault {
  /** Below the config. */
  readonly pointer: string;
  readonly reason: string;
  readonly hint?: string;
}

/** One handler, made ready to check many nodes. */
export interface KnownHandler {
  readonly engine: boolean;
  readonly timeoutSeconds: number | undefined;
  /** As it is written, with templates that may become anything; or resolved, when `{{` is text like any other. */
  check(config: JsonObject, isResolved?: boolean): readonly ConfigFault[];
  /** The first part of a path below the output that the output cannot have. */
  unknownField(config: JsonObject, path: readonly (string | number)[]): UnknownField | undefined;
}

const NO_FAULTS: readonly ConfigFault[] = [];

/** The handlers of one definition: each is looked up and compiled once, however many nodes use it. */
export class KnownHandlers {
  readonly catalogue: HandlerCatalogue;
  readonly #known = new Map<string, KnownHandler | undefined>();

  constructor(catalogue: HandlerCatalogue) {
    this.catalogue = catalogue;
  }

  get(name: string): KnownHandler | undefined {
    if (this.#known.has(name)) return this.#known.get(name);
    const handler = builtinHandler(name) ?? registeredHandler(this.catalogue.get(name));
    this.#known.set(name, handler);
    return handler;
  }

  nearest(name: string): string | undefined {
    return nearestName(name, [...BUILTIN_HANDLERS.keys(), ...this.catalogue.names()]);
  }
}

/** A string with a template in it may become anything. */
export function isTemplate(value: Json): boolean {
  return typeof value === "string" && value.includes("{{");
}

const builtins = new Map<string, KnownHandler>();

function builtinHandler(name: string): KnownHandler | undefined {
  const builtin = BUILTIN_HANDLERS.get(name);
  if (builtin === undefined) return undefined;
  let known = builtins.get(name);
  if (known === undefined) {
    const schema = compiled(builtin.config);
    known = {
      engine: builtin.engine,
      timeoutSeconds: builtin.defaultTimeoutSeconds,
      check: (config, isResolved) => checkConfig(config, schema, builtin.mockable, isResolved, builtin.also),
      unknownField: (config, path) => {
        if (path.length === 0 || isMocked(config)) return undefined;
        const fields = builtin.outputFields?.(config);
        if (fields !== undefined) return unknownKey(fields, path[0]!);
        const output = builtin.output?.(config);
        return output === undefined ? undefined : unknownInSchema(output, path);
      },
    };
    builtins.set(name, known);
  }
  return known;
}

function registeredHandler(entry: HandlerEntry | undefined): KnownHandler | undefined {
  if (entry === undefined) return undefined;
  // A schema that we cannot check by is its worker's problem, told when it registers; it must not block all submits.
  const schema = entry.configSchema === undefined ? undefined : compiled(entry.configSchema);
  return {
    engine: entry.engine,
    timeoutSeconds: entry.defaultTimeoutSeconds,
    check: (config, isResolved) =>
      schema === undefined ? NO_FAULTS : checkConfig(config, schema, !entry.engine, isResolved),
    unknownField: (config, path) =>
      entry.outputSchema === undefined || isMocked(config) ? undefined : unknownInSchema(entry.outputSchema, path),
  };
}

function compiled(json: Json): Schema | undefined {
  const schema = Schema.compile(json);
  return schema instanceof Schema ? schema : undefined;
}

/** Whether a config says that its handler is not to be called. */
export function isMocked({ mock }: JsonObject): boolean {
  return mock !== undefined && mock !== false;
}

function checkConfig(
  config: JsonObject,
  schema: Schema | undefined,
  mockable: boolean,
  isResolved = false,
  also?: (config: JsonObject) => string | undefined,
): readonly ConfigFault[] {
  const mocked = mockable && isMocked(config);
  let checked = config;
  if (mockable && config["mock"] !== undefined) {
    const { mock: _, ...rest } = config;
    checked = rest;
  }
  const faults = schema?.check(checked, isResolved ? undefined : isTemplate) ?? [];
  const reason = also?.(checked);
  if (faults.length === 0 && reason === undefined) return NO_FAULTS;
  // With a mock the handler is never called: what is there must fit, what is missing does not matter.
  const found = faults.filter((fault) => !(mocked && fault.keyword === "required")).map(configFault);
  if (reason !== undefined && !mocked) found.push({ pointer: "", reason: `it ${reason}` });
  return found;
}

function configFault({ pointer, reason, property, known }: SchemaFault): ConfigFault {
  const name = pointerSteps(pointer).at(-1);
  const nearest = known === undefined || property === undefined ? undefined : nearestName(property, known);
  return {
    pointer: known === undefined || property === undefined ? pointer : pointer + pointerStep(property),
    reason: name === undefined ? `it ${reason}` : `${quote(name)} ${reason}`,
    ...(nearest === undefined ? {} : { hint: `Did you mean ${quote(nearest)}?` }),
  };
}
