import type { Answer } from "../core/machine.ts";
import { type Message, type MessageBody, messageText, type ReplyAddress } from "../core/message.ts";
import { partitionOf } from "../core/entity.ts";
import { SlotMap } from "../core/slot-map.ts";
import { copyInline } from "../core/value.ts";
import type { Host } from "../host/host.ts";
import type { AppendOutcome, Outgoing, Reply, Store } from "../store/contract.ts";
import { Deadlines } from "./deadlines.ts";

/** How a request came out. */
export type RequestOutcome =
  | { readonly kind: "answered"; readonly answer: Answer }
  /** Refused before it was taken: nothing has happened. The store has no room, or its owner is behind. */
  | { readonly kind: "overloaded"; readonly isFull?: boolean }
  /**
   * No decision came in time; it may still be applied. Sending it again with the same id is safe. `trouble` is what the
   * store said, if it was the store that failed.
   */
  | { readonly kind: "unknown"; readonly trouble?: unknown };

export interface Request {
  readonly to: string;
  readonly by: string;
  readonly tenant?: string;
  readonly trace?: string;
  /** The same for every try of the same request. */
  readonly id: string;
  readonly body: MessageBody;
}

/** A place for the answer to one message. */
export interface Expected {
  /** Goes into the message. */
  readonly address: ReplyAddress;
  /** undefined as long as it has not come. */
  readonly answer: Answer | undefined;
}

class Place implements Expected {
  readonly address: ReplyAddress;
  answer: Answer | undefined;
  heard: (() => void) | undefined;

  constructor(process: string, request: string) {
    this.address = { process, request };
  }
}

/** What became of the append of some messages. */
type Appended = { readonly outcomes: readonly AppendOutcome[] } | { readonly trouble: unknown };

const LATE: Appended = { trouble: "the store did not answer" };

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
  private readonly waiting = new SlotMap<string, Place>();
  private readonly stopping = new AbortController();
  private readonly deadlines: Deadlines;
  /** Those of a process are told apart by their number, as no two processes have the same name. */
  private places = 0;

  constructor(store: Store, host: Host) {
    this.store = store;
    this.host = host;
    this.deadlines = new Deadlines(
      () => host.monotonicMs(),
      (ms) => host.sleep(ms),
    );
    this.process = `api-${host.id()}`;
  }

  start(): void {
    void this.listen();
  }

  stop(): void {
    this.stopping.abort();
  }

  /** The same as `sendAll` for one, which nearly all are: without the lists. */
  send(request: Request, timeoutMs: number = DECISION_TIMEOUT_MS): Promise<RequestOutcome> {
    const place = this.place();
    return new Promise((resolve) => {
      let appended: Appended = LATE;
      const end = (): void => {
        // Once: what comes later is about a request that is over.
        if (!this.waiting.delete(place.address.request)) return;
        this.deadlines.delete(deadline);
        const { answer } = place;
        resolve(answer === undefined ? this.undecided(request, appended, 0) : { kind: "answered", answer });
      };
      const deadline = this.deadlines.add(timeoutMs, end);
      place.heard = end;
      this.append(
        [this.messageTo(request, place)],
        (outcomes) => {
          appended = { outcomes };
          if (outcomes[0] !== "appended") end();
        },
        (trouble) => {
          appended = { trouble };
          end();
        },
      );
    });
  }

  /** Posts several at once, and waits for all of them. */
  async sendAll(
    requests: readonly Request[],
    timeoutMs: number = DECISION_TIMEOUT_MS,
  ): Promise<readonly RequestOutcome[]> {
    if (requests.length === 0) return [];
    const places = requests.map(() => this.place());
    const messages = requests.map((request, i) => this.messageTo(request, places[i]!));
    const appended = await this.post(messages, places, timeoutMs);
    this.forget(places);
    const outcome = async (request: Request, i: number): Promise<RequestOutcome> => {
      const { answer } = places[i]!;
      return answer === undefined ? this.undecided(request, appended, i) : { kind: "answered", answer };
    };
    return Promise.all(requests.map(outcome));
  }

  /** A place for an answer to a message that is posted in another way, such as the settling of a task. */
  expect(): Expected {
    return this.place();
  }

  private place(): Place {
    const place = new Place(this.process, String(++this.places));
    this.waiting.set(place.address.request, place);
    return place;
  }

  /** Until all of them have come, or the time is up. */
  wait(expected: readonly Expected[], timeoutMs: number): Promise<void> {
    const open = (expected as readonly Place[]).filter(({ answer }) => answer === undefined);
    if (open.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const deadline = this.deadlines.add(Math.max(0, timeoutMs), resolve);
      let left = open.length;
      const heard = (): void => {
        if (--left > 0) return;
        this.deadlines.delete(deadline);
        resolve();
      };
      for (const place of open) place.heard = heard;
    });
  }

  /** Nobody looks at these places any more. To be called for each, whatever happens. */
  forget(expected: readonly Expected[]): void {
    for (let i = 0; i < expected.length; i++) this.waiting.delete(expected[i]!.address.request);
  }

  private undecided(request: Request, appended: Appended, i: number): RequestOutcome | Promise<RequestOutcome> {
    if ("trouble" in appended) return this.unanswered(request, { trouble: appended.trouble });
    const outcome = appended.outcomes[i];
    if (outcome === "full") return { kind: "overloaded", isFull: true };
    if (outcome === "overloaded") return { kind: "overloaded" };
    return this.unanswered(request, {});
  }

  private async unanswered(request: Request, trouble: { readonly trouble?: unknown }): Promise<RequestOutcome> {
    const found = await this.lookUp(request);
    return found === undefined ? { kind: "unknown", ...trouble } : { kind: "answered", answer: found };
  }

  private messageTo(request: Request, { address }: Place): Outgoing {
    const { sameProcess, partitionCount } = this.store.capabilities;
    const partition = partitionOf(request.to, partitionCount);
    const start = request.body.kind === "start";
    const value = sameProcess === true ? inHand(request, address) : undefined;
    return value === undefined
      ? { partition, start, text: messageText(messageOf(request, address)) }
      : { partition, start, text: "", ...value };
  }

  /**
   * Until each of them is answered or refused, or the time is up. A store that keeps us waiting has failed as far as the
   * caller is concerned; what we sent may still arrive.
   */
  private post(messages: readonly Outgoing[], places: readonly Place[], timeoutMs: number): Promise<Appended> {
    return new Promise((resolve) => {
      let appended: Appended = LATE;
      let left = places.length;
      const end = (): void => {
        this.deadlines.delete(deadline);
        resolve(appended);
      };
      const deadline = this.deadlines.add(timeoutMs, end);
      const settled = (): void => {
        if (--left === 0) end();
      };
      for (const place of places) place.heard = settled;
      const taken = (outcomes: readonly AppendOutcome[]): void => {
        appended = { outcomes };
        for (let i = 0; i < places.length; i++) {
          if (outcomes[i] !== "appended" && places[i]!.answer === undefined) settled();
        }
      };
      const failed = (trouble: unknown): void => {
        appended = { trouble };
        end();
      };
      this.append(messages, taken, failed);
    });
  }

  private append(
    messages: readonly Outgoing[],
    taken: (outcomes: readonly AppendOutcome[]) => void,
    failed: (trouble: unknown) => void,
  ): void {
    try {
      this.store.inbox.append(messages).then(taken, failed);
    } catch (trouble) {
      failed(trouble);
    }
  }

  /** Replies are best effort. What was decided stands in the journal, under the id of the request. */
  private async lookUp(request: Request): Promise<Answer | undefined> {
    try {
      const partition = partitionOf(request.to, this.store.capabilities.partitionCount);
      const [loaded] = await this.store.journal.load([{ partition, entity: request.to, aboveVersion: 0 }]);
      for (const record of loaded!.records) {
        for (const event of JSON.parse(record.text) as DecidedEvent[]) {
          const answer = answerIn(event, request);
          if (answer !== undefined) return answer;
        }
      }
    } catch {
      // Then nobody knows.
    }
    return undefined;
  }

  private heard({ request, text, answer }: Reply): void {
    const place = this.waiting.get(request);
    // The first counts; another is the same again.
    if (place === undefined || place.answer !== undefined) return;
    place.answer = (answer as Answer | undefined) ?? (JSON.parse(text) as Answer);
    place.heard?.();
  }

  private async listen(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      try {
        const replies = await this.store.inbox.replies(this.process, 1000);
        for (const reply of replies) this.heard(reply);
      } catch {
        await this.host.sleep(200, this.stopping.signal);
      }
    }
  }
}

function messageOf(request: Request, reply: ReplyAddress): Message {
  const { id, to, by, trace = "", tenant = "default", body } = request;
  return { id, to, by, trace, tenant, reply, body };
}

/** About how long a message is besides its input. */
const MESSAGE_CHARS = 1_000;

/**
 * A start or a trigger that stays in the process need not be written down, but for its input: that is the caller's, who may change it.
 * Whatever else could be is left to the text.
 */
function inHand(request: Request, reply: ReplyAddress): Pick<Outgoing, "message" | "messageChars"> | undefined {
  const { body } = request;
  if ((body.kind !== "start" && body.kind !== "trigger") || body.labels !== undefined) return undefined;
  if (body.kind === "start" && (body.parent ?? body.around ?? body.fork) !== undefined) return undefined;
  if (body.input === undefined) return { message: messageOf(request, reply), messageChars: MESSAGE_CHARS };
  const own = copyInline(body.input);
  if (own === undefined) return undefined;
  const message = messageOf({ ...request, body: { ...body, input: own.value } }, reply);
  return { message, messageChars: MESSAGE_CHARS + own.chars };
}

/** The part of an event that tells how a request was decided. */
interface DecidedEvent {
  readonly kind: string;
  readonly request?: string;
  readonly code?: string;
  readonly bodyHash?: string;
  readonly status?: string;
  readonly generation?: number;
  /** Of a gate that says all that it is. */
  readonly state?: { readonly requests?: readonly string[] };
}

function answerIn(event: DecidedEvent, { to, body }: Request): Answer | undefined {
  const execution = to.slice(to.indexOf("/") + 1);
  if (body.kind === "start" && event.kind === "accepted") {
    if (event.bodyHash !== body.bodyHash) return { refused: "IDEMPOTENCY_KEY_REUSED" };
    return { ok: { execution_id: execution, status: body.hold === true ? "PENDING" : "RUNNING" } };
  }
  const asked = "request" in body ? body.request : undefined;
  if (asked !== undefined && event.kind === "gateRenewed" && event.state?.requests?.includes(asked)) return { ok: {} };
  if (asked === undefined || event.request !== asked) return undefined;
  const bodyHash = "bodyHash" in body ? body.bodyHash : undefined;
  if (event.bodyHash !== bodyHash && event.kind !== "released") return { refused: "IDEMPOTENCY_KEY_REUSED" };
  // Events of the first release name neither: they were cancels, and there was one generation.
  const { status = "CANCELLED", generation = 1 } = event;
  if (event.kind === "commandApplied") return { ok: { execution_id: execution, status, generation } };
  if (event.kind === "released") return { ok: { released: true } };
  if (event.kind === "commandRefused") return { refused: event.code ?? "REFUSED" };
  return undefined;
}
