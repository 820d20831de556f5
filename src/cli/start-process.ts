import { KafkaError } from "../bus/kafka.ts";
import { HandlerModuleInvalid, loadHandlerModules } from "./project/handler-modules.ts";
import type { UserHandlers } from "../process/user-handlers.ts";
import { briefError, type Log, openLog } from "../process/log.ts";
import { MillraceProcess, type ProcessOptions } from "../process/process.ts";
import type { Role } from "../settings/declarations.ts";
import type { ReadSettings } from "../settings/read-settings.ts";
import { storeAddress } from "../settings/store-address.ts";
import { StoreError } from "../store/store-error.ts";
import type { Call } from "./call.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { version } from "./version.ts";

/** Something that serves until it is stopped. */
interface Running {
  stop(): Promise<void>;
  /** Resolves if it cannot go on, with the reason. */
  readonly lost?: Promise<StoreError> | undefined;
}

export interface Started<Process extends Running = Running> {
  readonly process: Process;
  readonly log: Log;
}

/** Starts what a command is to be, and says in its user's words what stands in the way. */
export async function startProcess(
  call: Call,
  read: ReadSettings,
  options: {
    readonly roles: readonly Role[];
    /** Where log lines go: stdout, if the command has nothing else to say. */
    readonly logTo: 1 | 2;
    readonly loopback: boolean;
    readonly pages?: ProcessOptions["pages"];
    readonly user?: UserHandlers;
    /** It may run beside others for long: whoever keeps it going wants to know how it is. */
    readonly tellsHealth?: boolean;
  },
): Promise<Started<MillraceProcess>> {
  const { settings, env } = read;
  const address = storeAddress(settings);
  if ("fault" in address) throw new Failure(EXIT.usage, address.fault);
  const log = openLog(settings, options.logTo);
  try {
    const user = options.user ?? (await loadHandlerModules(settings.handlers, call.terminal.directory));
    const { roles, loopback, pages } = options;
    const parts = {
      settings,
      address,
      env,
      roles,
      user,
      log,
      loopback,
      version: version(),
      ...(pages !== undefined && { pages }),
      tellsHealth: options.tellsHealth ?? false,
    };
    return { process: await MillraceProcess.start(parts), log };
  } catch (error) {
    throw startFailure(error, settings.port, call.command, options.roles.includes("api") ? "port" : "health-port");
  }
}

const KEYS_HINT = "stop that process first; a key of its environment needs no store: MILLRACE_API_KEYS=role:key,…";

/** What somebody can do whose store another process has. */
const LOCKED_HINTS: Readonly<Record<string, string>> = {
  dev: "talk to that process instead: millrace ls   (or use --ephemeral)",
  "keys add": KEYS_HINT,
  "keys ls": KEYS_HINT,
  "keys revoke": KEYS_HINT,
  "batch run": "let that process run it: --server   (or name another store with --store)",
};

const NO_KEYS_HINT = "name the store you mean: --store …   (the first keys add, dev or serve makes one)";

/** What somebody can do whose command does not make a store. */
const MISSING_HINTS: Readonly<Record<string, string>> = { "keys ls": NO_KEYS_HINT, "keys revoke": NO_KEYS_HINT };

const LOST_HINT = "if the data cannot be had back, an archive rebuilds it: millrace recover --from … --store …";

export function startFailure(error: unknown, port: number, command = "", flag = "port"): unknown {
  if (error instanceof StoreError) {
    const hint = storeHint(error, command);
    return new Failure(EXIT.unreachable, `${error.message} (${error.code})`, { code: error.code, hint });
  }
  if (error instanceof KafkaError) {
    const hint = error.fix ?? "name brokers that answer: --bus kafka://HOST:PORT,…";
    const told = `the bus cannot be used: ${error.message}`;
    return new Failure(EXIT.unreachable, told, { code: "BUS_UNAVAILABLE", hint });
  }
  if (error instanceof HandlerModuleInvalid) return new Failure(EXIT.usage, error.message);
  if (!(error instanceof Error)) return error;
  const { code, message, port: wanted = port } = error as NodeJS.ErrnoException & { readonly port?: number };
  if (code === "EADDRINUSE") {
    return new Failure(EXIT.unreachable, `port ${wanted} is in use.`, {
      code: "PORT_IN_USE",
      hint: `choose another: --${flag} 0 takes any that is free`,
    });
  }
  if (code === "EACCES" || code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    return new Failure(EXIT.unreachable, `cannot listen: ${message}`);
  }
  if (code === "ECONNREFUSED" || code === "ETIMEDOUT" || code === "EHOSTUNREACH") {
    return new Failure(EXIT.unreachable, `the store cannot be reached: ${message || code}`, {
      code: "STORE_UNAVAILABLE",
    });
  }
  if (/^(refusing to listen|MILLRACE_API_KEYS|MILLRACE_BUS|"[^"]*" is not a host)/.test(message))
    return new Failure(EXIT.usage, message);
  return error;
}

function storeHint({ code, message }: StoreError, command: string): string | undefined {
  if (code === "STORE_LOCKED") return LOCKED_HINTS[command] ?? "talk to that process instead: millrace ls";
  if (code === "STORE_MISSING") return MISSING_HINTS[command];
  // An archive that belongs to another store says so itself.
  return code === "STORE_LOST" && !message.includes("millrace recover") ? LOST_HINT : undefined;
}

/** Starts what a command is to be, and lets it serve until it is interrupted. */
export async function startAndServe(call: Call, start: () => Promise<Started>): Promise<void> {
  // Before it says that it has started: whoever waits for that may ask it to stop at once.
  const interrupts = call.terminal.interrupts();
  const leave = (): never => process.exit(EXIT.interrupted);
  interrupts.addEventListener("abort", leave);
  const started = await start();
  interrupts.removeEventListener("abort", leave);
  await serveUntilInterrupted(call, started);
}

/**
 * A promise that a handler's module forgot must not end everybody else's work; an exception that nobody caught may have
 * left anything behind, so the process ends, and what it was doing is taken up again from the store. Answers how to stop it.
 */
export function outliveForgottenPromises(log: Log): () => void {
  const rejected = (error: unknown): void => log.error({ error: briefError(error) }, "unhandled rejection");
  const thrown = (error: unknown): never => {
    log.fatal({ error: briefError(error) }, "uncaught exception");
    process.exit(EXIT.failed);
  };
  process.on("unhandledRejection", rejected);
  process.on("uncaughtException", thrown);
  return () => {
    process.off("unhandledRejection", rejected);
    process.off("uncaughtException", thrown);
  };
}

/**
 * Serves until somebody wants it to end: the first signal stops it in order, the second ends it at once. Without its store
 * it ends too, and says so.
 */
export async function serveUntilInterrupted(call: Call, { process: running, log }: Started): Promise<void> {
  outliveForgottenPromises(log);
  const interrupts = call.terminal.interrupts();
  const interrupted = new Promise<void>((resolve) => {
    if (interrupts.aborted) resolve();
    interrupts.addEventListener("abort", () => resolve(), { once: true });
  });
  const lost = await Promise.race([interrupted, ...(running.lost === undefined ? [] : [running.lost])]);
  if (lost === undefined) log.info({ signal: String(interrupts.reason) }, "asked to stop");
  await running.stop();
  if (lost !== undefined) throw startFailure(lost, 0);
}
