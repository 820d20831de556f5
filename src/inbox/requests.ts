import type { Answer } from "../core/machine.ts";
import { type Message, type MessageBody, messageText } from "../core/message.ts";
import { partitionOf } from "../core/entity.ts";
import type { Host } from "../host/host.ts";
import type { Store } from "../store/contract.ts";

/** How a request came out. */
export type RequestOutcome =
  | { readonly kind: "answered"; readonly answer: Answer }
  /** Refused before it was taken: nothing has happened. */
  | { readonly kind: "overloaded" }
  /** No decision came in time; it may still be applied. Sending it again with the same id is safe. */
  | { readonly kind: "unknown" };

export interface Request {
  readonly to: string;
  readonly by: string;
  readonly tenant?: string;
  readonly trace?: string;
  /** The same for every try of the same request. */
  readonly id: string;
  readonly body: MessageBody;
}

const ANSWERED = "answered";

/** How long a caller waits for the owner's decision. */
export const DECISION_TIMEOUT_MS = 10_000;

/**
 * The way from a process that owns nothing to the owner and back: posts a message, waits for the reply, and when none
 * comes looks into the journal, which is the truth.
 */
export class Requests {
  private readonly store: Store;
  private readonly host: Host;
  private readonly process: string;
  private readonly waiting = new Map<string, (answer: Answer) => void>();
  private readonly stopping = new AbortController();

  constructor(store: Store, host: Host) {
    this.store = store;
    this.host = host;
    this.process = `api-${host.id()}`;
  }

  start(): void {
    void this.listen();
  }

  stop(): void {
    this.stopping.abort();
  }

  async send(request: Request, timeoutMs: number = DECISION_TIMEOUT_MS): Promise<RequestOutcome> {
    const name = this.host.id();
    const message: Message = {
      id: request.id,
      to: request.to,
      by: request.by,
      trace: request.trace ?? "",
      tenant: request.tenant ?? "default",
      reply: { process: this.process, request: name },
      body: request.body,
    };
    const answered = new AbortController();
    let answer: Answer | undefined;
    this.waiting.set(name, (given) => {
      answer = given;
      // With a reason of our own: making up an exception with its stack for every answer is dear.
      answered.abort(ANSWERED);
    });
    try {
      const partition = partitionOf(request.to, this.store.capabilities.partitionCount);
      const start = request.body.kind === "start";
      const [outcome] = await this.store.inbox.append([{ partition, start, text: messageText(message) }]);
      if (outcome === "overloaded") return { kind: "overloaded" };
      await this.host.sleep(timeoutMs, answered.signal);
    } catch {
      // The append may have arrived all the same.
    } finally {
      this.waiting.delete(name);
    }
    if (answer !== undefined) return { kind: "answered", answer };
    return this.lookUp(request);
  }

  /** Replies are best effort. What was decided stands in the journal, under the id of the request. */
  private async lookUp(request: Request): Promise<RequestOutcome> {
    try {
      const partition = partitionOf(request.to, this.store.capabilities.partitionCount);
      const [loaded] = await this.store.journal.load([{ partition, entity: request.to, aboveVersion: 0 }]);
      for (const record of loaded!.records) {
        for (const event of JSON.parse(record.text) as DecidedEvent[]) {
          const answer = answerIn(event, request);
          if (answer !== undefined) return { kind: "answered", answer };
        }
      }
    } catch {
      // Then nobody knows.
    }
    return { kind: "unknown" };
  }

  private async listen(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        const replies = await this.store.inbox.replies(this.process, 1000);
        for (const reply of replies) this.waiting.get(reply.request)?.(JSON.parse(reply.text) as Answer);
      } catch {
        await this.host.sleep(200, this.stopping.signal);
      }
    }
  }
}

/** The part of an event that tells how a request was decided. */
interface DecidedEvent {
  readonly kind: string;
  readonly request?: string;
  readonly code?: string;
  readonly bodyHash?: string;
  readonly generation?: number;
}

function answerIn(event: DecidedEvent, request: Request): Answer | undefined {
  if (request.body.kind === "start" && event.kind === "accepted") {
    if (event.bodyHash !== request.body.bodyHash) return { refused: "IDEMPOTENCY_KEY_REUSED" };
    return { ok: { execution_id: request.to.slice(request.to.indexOf("/") + 1), status: "RUNNING" } };
  }
  const asked = "request" in request.body ? request.body.request : undefined;
  if (asked === undefined || event.request !== asked) return undefined;
  const execution = request.to.slice(request.to.indexOf("/") + 1);
  // An event that does not name its generation is of the first.
  const generation = event.generation ?? 1;
  if (event.kind === "commandApplied") return { ok: { execution_id: execution, status: "CANCELLED", generation } };
  if (event.kind === "released") return { ok: { released: true } };
  if (event.kind === "commandRefused") return { refused: event.code ?? "REFUSED" };
  return undefined;
}
