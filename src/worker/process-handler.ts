import { type ChildProcess, fork } from "node:child_process";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { ErrorValue } from "../core/message.ts";
import type { Host } from "../host/host.ts";
import type { Json, JsonObject } from "../json/json.ts";
import { type Handler, type HandlerCall, HandlerError } from "./handler.ts";
import { withoutSecrets } from "./secrets.ts";
import type { Usage } from "./usage.ts";

export interface ProcessHandlerOptions {
  /** As for `import()`: the URL of a file whose default export is the handler. */
  readonly module: string;
  readonly host: Host;
  /** How long a handler may take to stop when asked; less than what its worker waits. */
  readonly killAfterMs?: number;
  /** How much each process may keep in its heap; one that wants more ends. As much as Node allows by default. */
  readonly memoryMb?: number | undefined;
}

/** What a call is, apart from what it can do: that crosses as messages. */
export type CallData = Omit<HandlerCall, "signal" | "addUsage" | "closeLimit" | "conceal" | "log" | "inputs"> & {
  readonly inputs?: Json;
};

export type ToProcess =
  | { readonly kind: "call"; readonly number: number; readonly call: CallData }
  | { readonly kind: "abort" };

/** With the number of the call: what an earlier one has left behind may still have something to say. */
export type FromProcess = Said & { readonly of: number };

export type Said =
  | { readonly kind: "usage"; readonly usage: Usage }
  | { readonly kind: "closeLimit"; readonly forMs: number }
  | { readonly kind: "conceal"; readonly text: string }
  | { readonly kind: "log"; readonly message: string; readonly fields?: JsonObject }
  | { readonly kind: "returned"; readonly text: string }
  | { readonly kind: "threw"; readonly error: ErrorValue; readonly retryAfterMs?: number; readonly stack?: string };

const KILL_AFTER_MS = 2_000;
/** Starting one takes a tenth of a second and more; each that waits for its next call keeps its memory. */
const MAX_IDLE = 4;

/**
 * A handler in processes of its own, one call each at a time. What it does to its event loop or its memory it does to
 * itself, and when it does not stop it is killed, together with what it has started: its slot is free again. It is not
 * a prison: the process may do whatever the worker's user may.
 */
export class ProcessHandler {
  readonly #options: ProcessHandlerOptions;
  readonly #idle: ChildProcess[] = [];
  readonly #all = new Set<ChildProcess>();
  /** They were killed, and the machine has not said so yet. */
  readonly #doomed = new WeakSet<ChildProcess>();
  #calls = 0;
  #isClosed = false;

  constructor(options: ProcessHandlerOptions) {
    this.#options = options;
  }

  readonly handle: Handler = async (call) => {
    call.signal.throwIfAborted();
    const child = this.#rested() ?? this.#start();
    child.ref();
    child.channel?.ref();
    try {
      const output = await this.#converse(child, call);
      this.#rest(child);
      return output;
    } catch (error) {
      // One that threw is well; one that was killed or crashed is gone.
      this.#rest(child);
      throw error;
    }
  };

  /** Ends all processes, at once. */
  close(): void {
    this.#isClosed = true;
    for (const child of this.#all) kill(child);
  }

  #start(): ChildProcess {
    // Built, this file and the process's are .js; from the sources both are .ts.
    const main = fileURLToPath(new URL(`./process-main${extname(import.meta.url)}`, import.meta.url));
    const { module, memoryMb } = this.#options;
    const child = fork(main, [module], {
      execArgv: memoryMb === undefined ? [] : [`--max-old-space-size=${memoryMb}`],
      env: withoutSecrets(process.env),
      // Our own output is for data: what a handler prints is for people.
      stdio: ["ignore", 2, 2, "ipc"],
      // A group of its own, so that it can be killed with its children, and is not told of a Ctrl-C that is ours.
      detached: true,
    });
    this.#all.add(child);
    child.on("exit", () => this.#all.delete(child));
    return child;
  }

  /** One that waits for its next call. What a handler has left behind may have ended its process since, or does so now. */
  #rested(): ChildProcess | undefined {
    for (let child = this.#idle.pop(); child !== undefined; child = this.#idle.pop()) {
      if (isAlive(child)) return child;
      kill(child);
    }
    return undefined;
  }

  #rest(child: ChildProcess): void {
    const isUsable = !this.#isClosed && !this.#doomed.has(child) && isAlive(child);
    if (!isUsable || this.#idle.length >= MAX_IDLE) return kill(child);
    child.unref();
    child.channel?.unref();
    this.#idle.push(child);
  }

  #end(child: ChildProcess): void {
    this.#doomed.add(child);
    kill(child);
  }

  #converse(child: ChildProcess, call: HandlerCall): Promise<Json> {
    const { host, killAfterMs = KILL_AFTER_MS } = this.#options;
    const { signal } = call;
    const number = ++this.#calls;
    const over = new AbortController();
    return new Promise<Json>((resolve, reject) => {
      const abort = (): void => {
        tell(child, { kind: "abort" });
        void host.sleep(killAfterMs, over.signal).then(() => over.signal.aborted || this.#end(child));
      };
      const take = (message: FromProcess): void => {
        if (message.kind === "usage") call.addUsage(message.usage);
        else if (message.kind === "closeLimit") call.closeLimit(message.forMs);
        else if (message.kind === "conceal") call.conceal(message.text);
        else if (message.kind === "log") call.log(message.message, message.fields);
        else if (message.kind === "returned") resolve(JSON.parse(message.text) as Json);
        else reject(handlerError(message));
      };
      const hear = (message: FromProcess | null): void => {
        // It is about another execution, and what it must not show is not known here. Or the handler itself has sent it.
        if (message?.of !== number) return;
        try {
          take(message);
        } catch (error) {
          // What would have thrown in the handler, were it in this process, must not end this one. Nobody knows what it does next.
          this.#end(child);
          reject(error);
        }
      };
      const crash = (code: number | null, by: NodeJS.Signals | null): void => {
        const how = by === null ? `with code ${code}` : `by ${by}`;
        const message = `The handler's process ended ${how}`;
        reject(withStack(new HandlerError("HANDLER_CRASHED", message, { retryable: true }), undefined));
      };
      child.on("message", hear).on("exit", crash).on("error", reject);
      signal.addEventListener("abort", abort, { once: true });
      over.signal.addEventListener("abort", () => {
        child.off("message", hear).off("exit", crash).off("error", reject);
        signal.removeEventListener("abort", abort);
      });
      tell(child, { kind: "call", number, call: dataOf(call) });
    }).finally(() => over.abort());
  }
}

function dataOf(call: HandlerCall): CallData {
  const { signal: _, addUsage: __, closeLimit: ___, conceal: ____, log: _____, inputs, ...data } = call;
  return inputs === undefined ? data : { ...data, inputs };
}

/** Its exit and the end of its connection are told one after the other, in either order. Nothing is told twice. */
function isAlive({ connected, exitCode, signalCode }: ChildProcess): boolean {
  return connected && exitCode === null && signalCode === null;
}

/** To a process that has just ended nothing can be told; its exit says enough. */
function tell(child: ChildProcess, message: ToProcess): void {
  if (child.connected) child.send(message, () => {});
}

function kill(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(process.platform === "win32" ? child.pid : -child.pid, "SIGKILL");
  } catch {
    // It ended by itself meanwhile.
  }
}

function handlerError({ error, retryAfterMs, stack }: FromProcess & { kind: "threw" }): HandlerError {
  const { code, message, retryable, details } = error;
  const thrown = new HandlerError(code, message, {
    retryable,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(details !== undefined && { details }),
  });
  return withStack(thrown, stack);
}

/** What was thrown in the process was thrown there: where it was heard of says nothing. */
function withStack(error: HandlerError, stack: string | undefined): HandlerError {
  return Object.defineProperty(error, "stack", { value: stack });
}
