import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Service } from "../api/service/service.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { ThrownErrors } from "./thrown-errors.ts";
import type { Backend, Command, Decided, EventView, ExecutionView, NodeView, StartSettings } from "./backend.ts";

/** An engine in this process. */
export class LocalBackend implements Backend {
  readonly #service: Service;
  readonly #thrown: ThrownErrors | undefined;
  readonly #close: () => Promise<void>;
  readonly #closing = new AbortController();

  constructor(service: Service, close: () => Promise<void>, thrown?: ThrownErrors) {
    this.#service = service;
    this.#thrown = thrown;
    this.#close = close;
  }

  async publish(definition: JsonObject): Promise<string> {
    const published = await this.#ask(({ submissions }) => submissions.publish({ definition }, true));
    return published.workflow_definition_id;
  }

  start(
    name: string,
    request: { readonly input: Json } & StartSettings,
    key: string,
  ): Promise<{ readonly execution_id: string }> {
    return this.#ask(({ submissions }) => submissions.start(caller(key), name, request));
  }

  async execution(id: string): Promise<ExecutionView> {
    return JSON.parse(await this.#ask(({ executions }) => executions.get(id))) as ExecutionView;
  }

  async output(id: string): Promise<Json> {
    return JSON.parse(await this.#ask(({ executions }) => executions.output(id))) as Json;
  }

  async node(id: string, node: string): Promise<NodeView> {
    return JSON.parse(await this.#ask(({ executions }) => executions.node(id, node))) as NodeView;
  }

  async *events(id: string, after: number, signal: AbortSignal): AsyncGenerator<EventView, void> {
    const { histories } = this.#service;
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    if (await this.#ask(() => histories.isOver(id, after))) return;
    for await (const { events, isEnd } of untilAborted(histories.follow(id, after, stop), stop)) {
      yield* events;
      if (isEnd) return;
    }
  }

  untilOver(id: string, after: number, signal: AbortSignal): Promise<void> {
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    return this.#ask(({ histories }) => orAborted(() => histories.untilOver(id, after), stop));
  }

  async command(id: string, command: Command, body: JsonObject, key: string): Promise<void> {
    await this.#ask(async ({ commands }) => {
      if (command === "signal") await commands.signal(caller(key), id, body["name"] as string, body["data"] ?? null);
      else if (command === "retry") await commands.retry(caller(key), id, body);
      else await commands[command](caller(key), id);
    });
  }

  async decide(review: string, decided: Decided, key: string): Promise<void> {
    await this.#ask(({ reviews }) => reviews.decide(caller(key), review, decided));
  }

  causeOf(ended: Pick<ExecutionView, "execution_id" | "error">): unknown {
    return this.#thrown?.causeOf(ended);
  }

  /** Whoever waits for a run is told that the engine is closed; the run goes on when it is opened again. */
  close(): Promise<void> {
    return this.closeBecause(new Error("The engine is closed"));
  }

  /** Whoever waits for a run, or asks for one from now on, is told why. */
  closeBecause(reason: Error): Promise<void> {
    this.#closing.abort(reason);
    return this.#close();
  }

  /** Whatever fails because it was closed meanwhile failed for the reason that it was closed for. */
  async #ask<Answer>(ask: (service: Service) => Promise<Answer>): Promise<Answer> {
    const { signal } = this.#closing;
    signal.throwIfAborted();
    try {
      return await ask(this.#service);
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }
}

/** The same, but at once when nobody waits for it any more. */
async function orAborted(wait: () => Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const stop = (): void => resolve();
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (!signal.aborted) await Promise.race([wait(), aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** The same, but over as soon as nobody listens any more, instead of when there would have been something to hear. */
async function* untilAborted<T>(values: AsyncGenerator<T, void>, signal: AbortSignal): AsyncGenerator<T, void> {
  let end = (): void => undefined;
  const stop = (): void => end();
  signal.addEventListener("abort", stop, { once: true });
  try {
    while (!signal.aborted) {
      // One for each value: on one for all of them every value would hang until the last.
      const { promise: aborted, resolve } = Promise.withResolvers<{ readonly done: true }>();
      end = () => resolve({ done: true });
      const next = await Promise.race([values.next(), aborted]);
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", stop);
    // It ends when its wait is over; nobody has to wait for that.
    void values.return();
  }
}

function caller(key: string): Caller {
  return { ...LOCAL, key };
}
