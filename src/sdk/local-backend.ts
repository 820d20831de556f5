import { type Caller, LOCAL } from "../api/service/caller.ts";
import type { Service } from "../api/service/service.ts";
import type { Json, JsonObject } from "../json/json.ts";
import type { Backend, Command, Decided, EventView, ExecutionView, NodeView } from "./backend.ts";

/** An engine in this process. */
export class LocalBackend implements Backend {
  readonly #service: Service;
  readonly #close: () => Promise<void>;

  constructor(service: Service, close: () => Promise<void>) {
    this.#service = service;
    this.#close = close;
  }

  submit(definition: JsonObject, input: Json, key: string): Promise<{ readonly execution_id: string }> {
    const source = { definition, input_params: input };
    return this.#service.submissions.submit(caller(key), source, { start: true, allowMissing: true });
  }

  async publish(definition: JsonObject): Promise<string> {
    const { workflow_definition_id: hash } = await this.#service.submissions.publish({ definition }, true);
    return hash;
  }

  start(
    name: string,
    { input, version }: { readonly input: Json; readonly version?: number | string },
    key: string,
  ): Promise<{ readonly execution_id: string }> {
    return this.#service.submissions.start(caller(key), name, { input, version });
  }

  async execution(id: string): Promise<ExecutionView> {
    return JSON.parse(await this.#service.executions.get(id)) as ExecutionView;
  }

  async output(id: string): Promise<Json> {
    return JSON.parse(await this.#service.executions.output(id)) as Json;
  }

  async node(id: string, node: string): Promise<NodeView> {
    return JSON.parse(await this.#service.executions.node(id, node)) as NodeView;
  }

  async *events(id: string, after: number, signal: AbortSignal): AsyncGenerator<EventView, void> {
    for await (const { events, isEnd } of this.#service.histories.follow(id, after, signal)) {
      yield* events;
      if (isEnd) return;
    }
  }

  async command(id: string, command: Command, body: JsonObject, key: string): Promise<void> {
    const { commands } = this.#service;
    if (command === "signal") await commands.signal(caller(key), id, body["name"] as string, body["data"] ?? null);
    else if (command === "retry") await commands.retry(caller(key), id, body);
    else await commands[command](caller(key), id);
  }

  async decide(review: string, decided: Decided, key: string): Promise<void> {
    await this.#service.reviews.decide(caller(key), review, decided);
  }

  close(): Promise<void> {
    return this.#close();
  }
}

function caller(key: string): Caller {
  return { ...LOCAL, key };
}
