import { hash } from "node:crypto";
import { type ResourceLimits, Worker } from "node:worker_threads";
import { BUILTIN_HANDLERS } from "../../definition/builtin-handlers.ts";
import { errorMessage } from "../../errors/registry.ts";
import type { Json } from "../../json/json.ts";
import { MAX_DEFINITION_CHARS, THREAD_BYTES } from "../limits.ts";
import { type Checked, type CheckOrder, checkSource } from "./check-definition.ts";
import type { HandlerDirectory, KnownEntries } from "./handler-directory.ts";
import { Definition } from "./definitions.ts";
import { Lru } from "./lru.ts";
import { RecentTexts } from "./recent-texts.ts";
import { type Soon, soon } from "./soon.ts";

/** A definition as it arrives: text, or a value that somebody has built. */
export type DefinitionSource =
  | { readonly source: Uint8Array | string; readonly format: "json" | "yaml" }
  | { readonly definition: Json; readonly input_params?: Json; readonly labels?: Json };

/** What was found, with the definition as others of this process have it. */
export type CheckedDefinition = Checked<Definition>;

type Text = Pick<CheckOrder, "source" | "format" | "isWritten">;

/**
 * Checks definitions. The same text again costs one hash, or less: whoever submits a workflow for every execution does not pay
 * for its check each time.
 */
export class DefinitionChecker {
  readonly #directory: HandlerDirectory;
  readonly #cache = new Lru<CheckedDefinition>(MAX_DEFINITION_CHARS);
  readonly #recent = new RecentTexts<CheckedDefinition>();

  constructor(directory: HandlerDirectory) {
    this.#directory = directory;
  }

  async check(given: DefinitionSource, allowMissing: boolean): Promise<CheckedDefinition> {
    return this.checkSoon(given, allowMissing);
  }

  /** The same, at once if all is known. */
  checkSoon(given: DefinitionSource, allowMissing: boolean): Soon<CheckedDefinition> {
    const text: Text =
      "source" in given
        ? { ...given, isWritten: true }
        : { source: JSON.stringify(given), format: "json", isWritten: false };
    return soon(this.#directory.fresh() ?? this.#directory.refresh(), (handlers) =>
      soon(this.#against(handlers, text, allowMissing), (checked) => {
        const isUnknown = checked.errors.some(({ code }) => code === "UNKNOWN_HANDLER");
        return isUnknown ? this.#again(handlers, checked, text, allowMissing) : withLiveWorkers(checked, handlers);
      }),
    );
  }

  /** The worker that serves a handler may have come a moment ago. */
  async #again(
    handlers: KnownEntries,
    checked: CheckedDefinition,
    text: Text,
    allowMissing: boolean,
  ): Promise<CheckedDefinition> {
    const now = await this.#directory.refresh();
    const isNews = now.revision !== handlers.revision;
    return withLiveWorkers(isNews ? await this.#against(now, text, allowMissing) : checked, now);
  }

  #against(
    handlers: KnownEntries,
    { source, format, isWritten }: Text,
    allowMissing: boolean,
  ): Soon<CheckedDefinition> {
    const about = `${format} ${isWritten} ${allowMissing} ${handlers.revision}`;
    const recent = this.#recent.get(source, about);
    if (recent !== undefined) return recent;
    const key = `${about} ${hash("sha256", source, "hex")}`;
    const cached = this.#cache.get(key);
    if (cached !== undefined) {
      // Not the first time already: what comes once need not be kept twice.
      this.#recent.set(source, about, cached);
      return cached;
    }
    const { defaults } = this.#directory;
    const order: CheckOrder = { source, format, isWritten, allowMissing, defaults, handlers: [...handlers.entries] };
    return soon(source.length > THREAD_BYTES ? inThread(order) : checkSource(order), (found) => {
      // As one that whoever runs it has as well: then its text leaves memory for both.
      const { good: written, ...told } = found;
      const good = written === undefined ? undefined : new Definition(written);
      const checked: CheckedDefinition = good === undefined ? told : { ...told, good };
      this.#cache.set(key, checked, source.length + (good?.chars ?? 0));
      return checked;
    });
  }
}

function withLiveWorkers(checked: CheckedDefinition, { alive }: KnownEntries): CheckedDefinition {
  const missing = checked.served?.filter((handler) => !alive.has(handler) && !BUILTIN_HANDLERS.has(handler)) ?? [];
  if (missing.length === 0) return checked;
  const warnings = missing.map((handler) => ({
    code: "NO_LIVE_WORKER" as const,
    path: "",
    message: errorMessage("NO_LIVE_WORKER", { handler }),
  }));
  return { ...checked, warnings: [...checked.warnings, ...warnings] };
}

/**
 * What a check makes is mostly thrown away at once. With a third of the usual room for that it is no slower, and the process
 * takes 100 MB less at the peak of the check of 100,000 nodes.
 */
const RESOURCE_LIMITS: ResourceLimits = { maxYoungGenerationSizeMb: 16 };

function inThread(order: CheckOrder): Promise<Checked> {
  const program = import.meta.url.endsWith(".ts") ? "./check-thread.ts" : "./check-thread.js";
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL(program, import.meta.url), {
      workerData: order,
      resourceLimits: RESOURCE_LIMITS,
    });
    thread.once("message", (checked: Checked) => {
      resolve(checked);
      void thread.terminate();
    });
    thread.once("error", reject);
    thread.once("exit", (code) => reject(new Error(`the check of a definition ended with ${code}`)));
  });
}
