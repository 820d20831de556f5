import type { Client } from "./client.ts";
import type { StoreError } from "../store/store-error.ts";
import type { Handlers } from "./handlers.ts";
import { checkOptions, type Names } from "./known-options.ts";
import type { Workflow } from "./workflow.ts";

export interface EmbeddedOptions {
  /** Where runs are kept; `.millrace` by default. false: in memory, and gone with the process. */
  readonly dataDir?: string | false;
  /** How many functions run at a time; 4 by default. */
  readonly concurrency?: number;
  /**
   * Workflows whose runs may have been left unfinished by an earlier process: they go on at once. One that is started
   * need not be named here.
   */
  readonly workflows?: readonly Workflow<never, unknown>[];
  /** Handlers by name, for workflows that are written as JSON or YAML. */
  readonly handlers?: Handlers;
  /** Serves the HTTP API on this port of the loopback interface; 0 takes any that is free. */
  readonly port?: number;
}

const EMBEDDED_OPTIONS: Names<EmbeddedOptions> = {
  dataDir: true,
  concurrency: true,
  workflows: true,
  handlers: true,
  port: true,
};

/** An engine in this process. */
export interface EmbeddedEngine extends Client {
  /** Where it serves the HTTP API, if it does. */
  readonly url: string | undefined;
  /**
   * Resolves with the reason if it cannot go on and stops by itself, as when its archive (MILLRACE_ARCHIVE) belongs to
   * another store. Whoever waits for a run is told the same.
   */
  readonly lost: Promise<StoreError>;
}

/**
 * Starts engine, worker and store in this process: nothing else is needed. What was not finished when the last process
 * ended goes on. A second process in the same folder is told who has it.
 */
export async function embedded(options: EmbeddedOptions = {}): Promise<EmbeddedEngine> {
  checkOptions("embedded", EMBEDDED_OPTIONS, options);
  // Whoever only writes workflows down does not load an engine.
  const { startEmbedded } = await import("./start-embedded.ts");
  return startEmbedded(options);
}
