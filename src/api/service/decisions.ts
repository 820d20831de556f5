import { MillraceError } from "../../errors/millrace-error.ts";
import { canonicalHash } from "../../json/canonical.ts";
import type { Json } from "../../json/json.ts";
import type { Answer } from "../../core/machine.ts";
import type { MessageBody } from "../../core/message.ts";
import type { Host } from "../../host/host.ts";
import type { Request, RequestOutcome, Requests } from "../../inbox/requests.ts";
import type { Caller } from "./caller.ts";
import { type ExecutionReader, standing } from "./execution-reader.ts";
import { storeTrouble } from "./guarded-store.ts";
import { executionKey, isExecutionId, keyedId } from "./ids.ts";
import { type Fault, Refusal, notFound, refusedByOwner } from "./refusal.ts";

/** What a command carries besides its own fields. */
export interface CommandId {
  readonly request: string;
  readonly bodyHash?: string;
}

/** Asks the owner of an execution, and turns its decision into an answer, or an error its asker can act on. */
export class Decisions {
  readonly #requests: Requests;
  readonly #host: Host;
  readonly #reader: ExecutionReader;

  constructor(requests: Requests, host: Host, reader: ExecutionReader) {
    this.#requests = requests;
    this.#host = host;
    this.#reader = reader;
  }

  /**
   * Has a command decided. With an Idempotency-Key its request id follows from route and key, and the owner compares the
   * bodies: the same request again gets the same answer.
   */
  async command(
    caller: Caller,
    id: string,
    route: string,
    body: Json,
    make: (command: CommandId) => MessageBody,
  ): Promise<Json> {
    if (!isExecutionId(id)) throw notFound("execution", id);
    const { key, tenant } = caller;
    const command =
      key === undefined
        ? { request: this.#host.id() }
        : { request: keyedId(tenant, route, key), bodyHash: canonicalHash(body) };
    const outcome = await this.#requests.send(this.request(caller, id, command.request, make(command)));
    if (outcome.kind !== "answered") throw undecided(outcome);
    const { answer } = outcome;
    // A refusal that was found in the journal, because its reply was lost, does not tell how things stand.
    const isBare = "refused" in answer && answer.execution === undefined && answer.refused !== "NOT_FOUND";
    if (!isBare) return accepted(id, answer);
    const execution = await this.#reader.read(id, ({ state }) => standing(state));
    return accepted(id, { ...answer, execution });
  }

  /** Has a command decided that no state remembers: the same again may find that there is nothing left to do. */
  async about(caller: Caller, entity: string, make: (command: CommandId) => MessageBody): Promise<void> {
    const request = this.#host.id();
    const outcome = await this.#requests.send({ ...this.request(caller, "", request, make({ request })), to: entity });
    if (outcome.kind !== "answered") throw undecided(outcome);
    accepted(entity, outcome.answer);
  }

  request(caller: Caller, id: string, name: string, body: MessageBody): Request {
    const { by, tenant, trace } = caller;
    return { to: executionKey(id), by, tenant, trace, id: name, body };
  }

  send(request: Request): Promise<RequestOutcome> {
    return this.#requests.send(request);
  }

  sendAll(requests: readonly Request[], timeoutMs?: number): Promise<readonly RequestOutcome[]> {
    return this.#requests.sendAll(requests, timeoutMs);
  }
}

/** Why there is no decision. */
export function undecided(outcome: Exclude<RequestOutcome, { kind: "answered" }>): MillraceError {
  if (outcome.kind === "overloaded") {
    return new Refusal(outcome.isFull === true ? "STORE_FULL" : "OVERLOADED", {}, { retryAfterSeconds: 1 });
  }
  const { trouble } = outcome;
  if (trouble === undefined) return new Refusal("NO_OWNER", {}, { retryAfterSeconds: 1 });
  return storeTrouble(trouble);
}

/** The owner's yes; its no is an error. */
export function accepted(id: string, answer: Answer): Json {
  if ("ok" in answer) return answer.ok;
  const { refused, execution, errors, detail } = answer;
  throw refusedByOwner(refused, id, { execution, detail, errors: errors as unknown as readonly Fault[] | undefined });
}
