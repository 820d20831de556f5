import { BUILTIN_HANDLERS, HANDLER_ALIASES } from "../definition/builtin-handlers.ts";
import { type HandlerEntry, KnownHandlers } from "../definition/handlers.ts";
import { quote } from "../errors/registry.ts";
import type { Host } from "../host/host.ts";
import { nodeHost } from "../host/node-host.ts";
import { checkJson } from "../json/check-json.ts";
import type { Json } from "../json/json.ts";
import type { Handler, HandlerCall } from "../worker/handler.ts";
import { loadHandler } from "../worker/load-handler.ts";
import { ProcessHandler } from "../worker/process-handler.ts";
import { configInvalid, outputInvalid, preparedHandler } from "./prepared-handler.ts";
import { type Given, type ReadySchema, readySchema, type Returned, type SchemaSource } from "./schema-source.ts";

/** A handler that cannot be registered as it is written. */
export class HandlerInvalid extends Error {
  override readonly name = "HandlerInvalid";
}

interface Described<Config extends SchemaSource, Output extends SchemaSource> {
  /** What nodes say as their `handler`; also the queue of their tasks, unless they name another. */
  readonly name: string;
  /** Of the resolved config. Checked at submit with templates taken as any value, and again before each call. */
  readonly config?: Config;
  /** Of what it returns. Templates that read a field it does not have are refused at submit. */
  readonly output?: Output;
  /** For nodes that set none; 30 otherwise. */
  readonly timeoutSeconds?: number;
  /** What a node with `mock: true` gives instead. */
  readonly mock?: Run<Config, Output>;
}

/** What a handler does: its config, checked, and everything else about the call. */
export type Run<Config, Output> = (
  config: Given<Config>,
  call: HandlerCall<Given<Config>>,
) => Promise<Returned<Output>> | Returned<Output>;

/** A handler is a function, or the URL of a module whose default export is one. */
export type HandlerSpec<Config extends SchemaSource, Output extends SchemaSource> = Described<Config, Output> &
  (
    | { readonly run: Run<Config, Output> }
    | {
        /** A function of one argument, the call: `(call: HandlerCall) => output`. */
        readonly module: string | URL;
        /**
         * `process`: in a process of its own, which is killed when it does not stop. Without it the module is loaded
         * into the worker at the first call.
         */
        readonly isolate?: "process";
        /** How much heap each process may have. */
        readonly memoryMb?: number;
      }
  );

const BRAND = Symbol.for("millrace.handler");

/** A handler ready to be registered; made by `defineHandler`. */
export interface DefinedHandler {
  readonly [BRAND]: true;
  readonly name: string;
  /** What a catalogue tells of it. */
  readonly entry: HandlerEntry;
  /** As a worker calls it. */
  readonly handler: Handler;
  /** Ends the processes it has, if it has any. */
  close(): void;
}

/** Of this copy of the package or of another. */
export function isDefinedHandler(value: unknown): value is DefinedHandler {
  return typeof value === "object" && value !== null && BRAND in value;
}

/** Describes a handler, so that definitions are checked against it and what it does has types. */
export function defineHandler<const Config extends SchemaSource = true, const Output extends SchemaSource = true>(
  spec: HandlerSpec<Config, Output>,
): DefinedHandler {
  const { name, timeoutSeconds, mock } = spec;
  checkName(name);
  const config = ready(name, "config", spec.config, "input");
  const output = ready(name, "output", spec.output, "output");
  const entry: HandlerEntry = {
    engine: false,
    ...(config !== undefined && { configSchema: config.json }),
    ...(output !== undefined && { outputSchema: output.json }),
    ...(timeoutSeconds !== undefined && { defaultTimeoutSeconds: timeoutSeconds }),
  };
  const runner = runnerOf(spec, nodeHost);
  const known = new KnownHandlers({ get: () => entry, names: () => [name], allowMissing: false }).get(name)!;
  const checked = (work: Run<unknown, unknown>): Handler => checkedHandler(work, config, output);
  const handler = preparedHandler({
    name,
    known,
    run: checked(runner.run),
    ...(mock !== undefined && { mock: checked(mock) }),
  });
  return { [BRAND]: true, name, entry, handler, close: () => runner.close() };
}

function checkName(name: string): void {
  if (name === "" || name.length > 128 || !name.isWellFormed()) {
    throw new HandlerInvalid(`${quote(name)} cannot be the name of a handler: it needs 1 to 128 characters`);
  }
  if (BUILTIN_HANDLERS.has(name) || HANDLER_ALIASES.has(name)) {
    throw new HandlerInvalid(`${quote(name)} is built in and cannot be registered again; choose another name`);
  }
}

function ready(
  name: string,
  what: "config" | "output",
  source: SchemaSource | undefined,
  io: "input" | "output",
): ReadySchema | undefined {
  if (source === undefined) return undefined;
  const schema = readySchema(source, io);
  if (typeof schema !== "string") return schema;
  throw new HandlerInvalid(`The ${what} schema of ${quote(name)} cannot be used: ${schema}`);
}

/** Between the worker and the handler: what its schemas say holds on both sides. */
function checkedHandler(
  run: Run<unknown, unknown>,
  config: ReadySchema | undefined,
  output: ReadySchema | undefined,
): Handler {
  return async (call) => {
    const read = config?.read(call.config) ?? { value: call.config };
    if ("faults" in read) throw configInvalid(call.nodeId, read.faults);
    const given = read.value as Json;
    const returned = await run(given, { ...call, config: given });
    // Data that is none is found by the worker, who says so better than a schema would.
    if (output === undefined || !isData(returned)) return returned;
    const result = output.read(returned ?? null);
    if ("faults" in result) throw outputInvalid(result.faults);
    return result.value as Json;
  };
}

function isData(value: unknown): boolean {
  try {
    return checkJson(value ?? null) === undefined;
  } catch {
    return false;
  }
}

type AnySpec = Described<SchemaSource, SchemaSource> & {
  readonly run?: Run<unknown, unknown>;
  readonly module?: string | URL;
  readonly isolate?: "process";
  readonly memoryMb?: number;
};

function runnerOf(spec: AnySpec, host: Host): { readonly run: Run<unknown, unknown>; close(): void } {
  const { name, run, isolate, memoryMb } = spec;
  if (run !== undefined) return { run, close: () => {} };
  if (spec.module === undefined) throw new HandlerInvalid(`${quote(name)} has neither "run" nor "module"`);
  const module = String(spec.module);
  if (isolate === "process") {
    const isolated = new ProcessHandler({ module, host, memoryMb });
    return { run: (_, call) => isolated.handle(call), close: () => isolated.close() };
  }
  let loaded: Promise<Handler> | undefined;
  return { run: async (_, call) => (await (loaded ??= loadHandler(module)))(call), close: () => {} };
}
