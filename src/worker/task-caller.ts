import type { TaskText } from "../core/execution/prepare.ts";
import type { ErrorValue } from "../core/message.ts";
import { INLINE_BYTES, type Value } from "../core/value.ts";
import { fillHoles, HoleUnfilled } from "../expression/fill-holes.ts";
import type { Hole } from "../expression/scope.ts";
import type { Host } from "../host/host.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import type { LeasedTask, Store } from "../store/contract.ts";
import type { Delivery, Given, LogEntry } from "./delivery.ts";
import { errorStack } from "./error-stack.ts";
import { errorValue, retryAfter } from "./error-value.ts";
import type { Handler } from "./handler.ts";
import { COUNTED_BYTES, smallOutput, type StorableOutput, storableOutput } from "./output.ts";
import { type Ending, underTimeLimit } from "./time-limit.ts";

export type Outcome = { readonly output: Value } | { readonly error: ErrorValue; readonly retryAfterMs?: number };

/** What came of a call. `deaf`: its handler still runs, until then. */
export interface Called {
  readonly outcome: Outcome;
  readonly deaf?: Promise<void>;
}

export interface CallerOptions {
  readonly store: Store;
  readonly host: Host;
  readonly secret: ((name: string) => string | undefined) | undefined;
  /** How long after being asked to stop a handler is given up. */
  readonly hardMs: number;
  /** How long the store may keep a call waiting. */
  readonly patienceMs: number;
  readonly retryMs: number;
  readonly started: (task: TaskText) => void;
  readonly ended: (task: TaskText, output: Json | undefined) => void;
  readonly logged: (task: TaskText, entry: LogEntry) => void;
}

/** What a handler is given, before its holes are filled. */
interface Body {
  readonly config: Json;
  readonly holes: readonly Hole[];
  readonly inputs: Json | undefined;
}

const NO_BLOBS: ReadonlyMap<string, Json> = new Map();

/**
 * Calls the handlers of tasks: makes what they are given, and of what they do a result. One that returns at once is
 * answered at once, without a promise: there may be a thousand of them in one turn of the event loop.
 */
export class TaskCaller {
  private readonly options: CallerOptions;

  constructor(options: CallerOptions) {
    this.options = options;
  }

  call(handler: Handler, task: TaskText, delivery: Delivery): Called | Promise<Called> {
    const { config = null, holes = [], inputs } = task;
    try {
      if (task.body !== undefined || holes.some(({ kind }) => kind === "blob")) {
        return this.callWithBlobs(handler, task, { config, holes, inputs }, delivery);
      }
      return this.start(handler, task, this.given({ config, holes, inputs }, NO_BLOBS, delivery), delivery);
    } catch (error) {
      return notCalled(error, delivery);
    }
  }

  /** Config and inputs that were too large for the task are fetched first. */
  private async callWithBlobs(handler: Handler, task: TaskText, small: Body, delivery: Delivery): Promise<Called> {
    try {
      const { leased } = delivery;
      const body = task.body === undefined ? small : ((await this.blob(leased, task.body.hash)) as unknown as Body);
      const blobs = new Map<string, Json>();
      for (const hole of body.holes) {
        if (hole.kind === "blob") blobs.set(hole.ref.hash, await this.blob(leased, hole.ref.hash));
      }
      const given = this.given(body, blobs, delivery);
      if (delivery.gone !== null) throw new Error("Nobody waits for it any more");
      return await this.start(handler, task, given, delivery);
    } catch (error) {
      return notCalled(error, delivery);
    }
  }

  /** Config and inputs with every hole filled. */
  private given(body: Body, blobs: ReadonlyMap<string, Json>, delivery: Delivery): Given {
    if (body.holes.length === 0) return body;
    const secret = (name: string): string | undefined => {
      const value = this.options.secret?.(name);
      if (value !== undefined) delivery.concealment.add(value);
      return value;
    };
    const config = fillHoles(body.config, body.holes, { secret, blob: (hash) => blobs.get(hash) });
    return { config, inputs: body.inputs };
  }

  private async blob(leased: LeasedTask, hash: string): Promise<Json> {
    const [text] = await this.patiently(() => this.options.store.records.get([{ scope: leased.entity, hash }]));
    if (text === null || text === undefined)
      throw new HoleUnfilled("VALUE_MISSING", `The value ${hash} is not in the store`);
    return JSON.parse(text) as Json;
  }

  /** The store's trouble is not the handler's: it is tried again for as long as the lease may hold. */
  private async patiently<T>(call: () => Promise<T>): Promise<T> {
    const { host, patienceMs, retryMs } = this.options;
    const untilMs = host.monotonicMs() + patienceMs;
    for (;;) {
      try {
        return await call();
      } catch (error) {
        if (host.monotonicMs() >= untilMs) throw error;
        await host.sleep(retryMs);
      }
    }
  }

  private start(handler: Handler, task: TaskText, given: Given, delivery: Delivery): Called | Promise<Called> {
    const { host, hardMs, started, logged } = this.options;
    delivery.hasBegun = true;
    started(task);
    const call = delivery.call(task, given, logged);
    const ending = underTimeLimit(() => handler(call), {
      host,
      softMs: task.timeoutMs,
      hardMs,
      abort: delivery.abort,
    });
    if (!(ending instanceof Promise)) return this.judge(ending, task, delivery);
    return ending.then((one) => this.judge(one, task, delivery));
  }

  private judge(ending: Ending<Json>, task: TaskText, delivery: Delivery): Called | Promise<Called> {
    const { concealment, leased } = delivery;
    switch (ending.kind) {
      case "returned": {
        const small = smallOutput(ending.value, concealment);
        if (small !== undefined) {
          this.options.ended(task, small);
          return { outcome: { output: { json: small } } };
        }
        const output = storableOutput(ending.value, concealment);
        this.options.ended(task, "error" in output ? undefined : output.json);
        if ("error" in output) return { outcome: output };
        if (output.bytes > INLINE_BYTES) return this.keep(leased, output);
        const { json, bytes } = output;
        return { outcome: { output: bytes >= COUNTED_BYTES ? { json, bytes } : { json } } };
      }
      case "threw":
        this.logStack(ending.error, task, delivery);
        return { outcome: { error: errorValue(ending.error, concealment), ...retryAfter(ending.error) } };
      // A handler that minds the signal throws because of it; that is our doing, not its failure.
      case "late":
        return { outcome: { error: timeOut(task) } };
      case "deaf":
        return { outcome: { error: timeOut(task) }, deaf: ending.over };
    }
  }

  /** One that throws because nobody waits for it any more has done what it was asked. */
  private logStack(thrown: unknown, task: TaskText, { concealment, gone }: Delivery): void {
    const message = gone === null ? errorStack(thrown, concealment) : undefined;
    if (message !== undefined) this.options.logged(task, { level: "error", message });
  }

  /** A large output is a record of its own, there before its result is. */
  private async keep(leased: LeasedTask, { text, bytes }: StorableOutput): Promise<Called> {
    const hash = contentHash(text);
    await this.patiently(() => this.options.store.records.put([{ scope: leased.entity, hash, text }]));
    return { outcome: { output: { blob: { hash, bytes } } } };
  }
}

/** What it is given could not be made, or it is a bug of ours. */
function notCalled(error: unknown, { concealment }: Delivery): Called {
  if (!(error instanceof HoleUnfilled)) return { outcome: { error: errorValue(error, concealment) } };
  return { outcome: { error: { code: error.code, message: error.message, retryable: false } } };
}

function timeOut(task: TaskText): ErrorValue {
  return { code: "TIMEOUT", message: `The handler did not end within ${task.timeoutMs} ms`, retryable: true };
}
