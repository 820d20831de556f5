import { type ResourceLimits, Worker } from "node:worker_threads";
import { errorOf } from "./file/failure.ts";
import type { Answer, FromThread, Role } from "./file/protocol.ts";
import type { FileReader } from "./file/reader.ts";
import type { FileWriter } from "./file/writer.ts";

/** The sources run as they are; a package may have them built. */
const THREAD = new URL(import.meta.url.endsWith(".ts") ? "./file/thread.ts" : "./file/thread.js", import.meta.url);

/** What a thread makes is over with its answer. With a third of the usual room for that it is as fast. */
const RESOURCE_LIMITS: ResourceLimits = { maxYoungGenerationSizeMb: 16 };

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

type Values<Method> = Method extends (...values: infer Given extends readonly unknown[]) => unknown ? Given : never;
type Result<Method> = Method extends (...values: never[]) => infer Given ? Given : never;

/**
 * A thread that has the file open, so that a sync of the disk never stops the event loop. It keeps the process alive only
 * while somebody waits for an answer.
 */
class FileThread<Target> {
  readonly #worker: Worker;
  readonly #exited: Promise<void>;
  readonly #died = Promise.withResolvers<Error>();
  readonly #waiting = new Map<number, Waiting>();
  #calls = 0;
  #end: Error | undefined;

  constructor(role: Role, onFull: (isFull: boolean) => void = () => {}) {
    this.#worker = new Worker(THREAD, {
      workerData: role,
      name: `millrace-${role}`,
      resourceLimits: RESOURCE_LIMITS,
    });
    this.#worker.unref();
    this.#worker.on("message", (message: FromThread) => {
      if ("isFull" in message) onFull(message.isFull);
      else for (const answer of message.answers) this.#answered(answer);
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#exited = promise;
    this.#worker.on("error", (error) => this.#ended(error as Error));
    this.#worker.on("exit", () => {
      this.#ended(new Error("it exited"));
      resolve();
    });
  }

  /** Resolves with the reason if it ends by itself: for want of memory, or by a bug. Nobody can open the file in its place. */
  get died(): Promise<Error> {
    return this.#died.promise;
  }

  /** Calls a method of the object that lives there. */
  call<Name extends keyof Target & string>(name: Name, ...values: Values<Target[Name]>): Promise<Result<Target[Name]>> {
    return this.#send(name, values) as Promise<Result<Target[Name]>>;
  }

  protected open(values: readonly unknown[]): Promise<unknown> {
    return this.#send("open", values);
  }

  /** After all that was called before it. Resolves when the thread is gone. */
  async close(): Promise<void> {
    // One that has died is closed.
    if (this.#end !== undefined) return this.#exited;
    const closing = this.#send("close", []);
    this.#end = new Error("the store is closed");
    try {
      await closing;
    } finally {
      this.#worker.ref();
      await this.#exited;
    }
  }

  #send(name: string, values: readonly unknown[]): Promise<unknown> {
    if (this.#end !== undefined) return Promise.reject(this.#end);
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const id = ++this.#calls;
    if (this.#waiting.size === 0) this.#worker.ref();
    this.#waiting.set(id, { resolve, reject });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    this.#worker.postMessage({ id, name, values });
    return promise;
  }

  #answered(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id)!;
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ("failure" in answer) waiting.reject(errorOf(answer.failure));
    else waiting.resolve(answer.value);
  }

  #ended(error: Error): void {
    if (this.#end === undefined) this.#died.resolve(error);
    this.#end ??= error;
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

/** The thread of the one connection that writes. */
export class WriterThread extends FileThread<FileWriter> {
  constructor(onFull: (isFull: boolean) => void) {
    super("writer", onFull);
  }

  async openFile(...values: ConstructorParameters<typeof FileWriter>): Promise<FileWriter["opened"]> {
    return (await this.open(values)) as FileWriter["opened"];
  }
}

/** The thread of the connection for everything else: a long list keeps no commit waiting, and a sync no reader. */
export class ReaderThread extends FileThread<FileReader> {
  constructor() {
    super("reader");
  }

  async openFile(...values: ConstructorParameters<typeof FileReader>): Promise<void> {
    await this.open(values);
  }
}
