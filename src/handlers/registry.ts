import type { HandlerCatalogue } from "../definition/handlers.ts";
import { quote } from "../errors/registry.ts";
import type { Handler } from "../worker/handler.ts";
import type { SchemaSource } from "./schema-source.ts";
import { type DefinedHandler, defineHandler, HandlerInvalid, isDefinedHandler, type Run } from "./define-handler.ts";

/**
 * The handlers of one process: what a program registers, and what its modules export. It is the catalogue that
 * definitions are read with, and what a worker calls.
 */
export class HandlerRegistry implements HandlerCatalogue {
  readonly allowMissing: boolean;
  readonly #handlers = new Map<string, DefinedHandler>();

  constructor({ allowMissing = false }: { readonly allowMissing?: boolean } = {}) {
    this.allowMissing = allowMissing;
  }

  add(...handlers: readonly DefinedHandler[]): this {
    for (const defined of handlers) {
      if (this.#handlers.has(defined.name)) {
        throw new HandlerInvalid(`${quote(defined.name)} is registered twice; each name has one handler`);
      }
      this.#handlers.set(defined.name, defined);
    }
    return this;
  }

  /**
   * Adds what a module exports: anything made by `defineHandler`, alone, in a list or in an object. In an object that is
   * called `handlers`, or is the default export, also plain functions `(config, call) => output` by name, or
   * `{ run, config_schema?, output_schema?, timeout_seconds? }`.
   */
  async load(module: string | URL): Promise<this> {
    const found = (await import(String(module))) as Readonly<Record<string, unknown>>;
    const isList = (name: string): boolean => name === "handlers" || (name === "default" && !("handlers" in found));
    const defined = Object.entries(found).flatMap(([name, value]) => definedIn(value, isList(name)));
    // The same one may be exported by its own name and within a list.
    const handlers = new Set(defined);
    if (handlers.size === 0) throw new HandlerInvalid(`${String(module)} exports no handler`);
    return this.add(...handlers);
  }

  get(name: string): DefinedHandler["entry"] | undefined {
    return this.#handlers.get(name)?.entry;
  }

  names(): Iterable<string> {
    return this.#handlers.keys();
  }

  /** By name, for a worker. */
  handlers(): ReadonlyMap<string, Handler> {
    return new Map([...this.#handlers.values()].map(({ name, handler }) => [name, handler]));
  }

  close(): void {
    for (const defined of this.#handlers.values()) defined.close();
  }
}

function definedIn(value: unknown, isByName: boolean): readonly DefinedHandler[] {
  if (isDefinedHandler(value)) return [value];
  if (Array.isArray(value)) return value.filter((item) => isDefinedHandler(item));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]: [string, unknown]) => {
    if (isDefinedHandler(member)) return [member];
    return isByName ? [writtenHandler(name, member)] : [];
  });
}

interface Written {
  readonly run?: unknown;
  readonly config_schema?: SchemaSource;
  readonly output_schema?: SchemaSource;
  readonly timeout_seconds?: number;
}

function writtenHandler(name: string, value: unknown): DefinedHandler {
  const written: Written = typeof value === "object" && value !== null ? value : { run: value };
  const { run, config_schema: config, output_schema: output, timeout_seconds: timeoutSeconds } = written;
  if (typeof run !== "function") throw new HandlerInvalid(`The handler ${quote(name)} is not a function`);
  return defineHandler({
    name,
    run: run as Run<SchemaSource, SchemaSource>,
    ...(config !== undefined && { config }),
    ...(output !== undefined && { output }),
    ...(timeoutSeconds !== undefined && { timeoutSeconds }),
  });
}
