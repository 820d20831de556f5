import { entityId } from "../../core/entity.ts";
import { executionMachine } from "../../core/execution/machine.ts";
import type { Answer } from "../../core/machine.ts";
import { type MessageBody, messageText } from "../../core/message.ts";
import { parseToken, type Token } from "../../core/token.ts";
import { INLINE_BYTES, type Value } from "../../core/value.ts";
import type { Host } from "../../host/host.ts";
import { DECISION_TIMEOUT_MS, type Expected, type Requests } from "../../inbox/requests.ts";
import { contentHash } from "../../json/hash.ts";
import type { Json } from "../../json/json.ts";
import type { Settlement, Store } from "../../store/contract.ts";
import { Concealment } from "../../worker/concealment.ts";
import { errorValue } from "../../worker/error-value.ts";
import { HandlerError } from "../../worker/handler.ts";
import { storableOutput } from "../../worker/output.ts";
import type { Caller } from "./caller.ts";
import { eventsOf } from "./event-view.ts";
import { type ExecutionReader, standing } from "./execution-reader.ts";
import type { Ticket, Tickets } from "./tickets.ts";

export type TaskResult =
  | ({ readonly token: string; readonly output: Json } & Told)
  | ({ readonly token: string; readonly error: ReportedError } & Told)
  /** Not done, and not to be counted: somebody else is to do it. */
  | { readonly token: string; readonly handedBack: true };

/** What is told beside a result, whatever it is. */
interface Told {
  readonly usage?: Json | undefined;
  readonly close_limit_seconds?: number | undefined;
  /** For how long it ran, where its worker says so; else since it was given out. */
  readonly running_ms?: number | undefined;
}

export interface ReportedError {
  readonly code?: string | undefined;
  readonly message?: string | undefined;
  readonly retryable?: boolean | undefined;
  readonly retry_after_seconds?: number | undefined;
  readonly details?: Json | undefined;
}

export interface Settled {
  readonly token: string;
  readonly accepted: boolean;
  readonly recorded?: boolean;
  readonly code?: string;
  /** Of a result that counts no more: how its execution stands. */
  readonly execution?: Json;
}

/** What will be posted for one result. */
interface Report {
  readonly ticket: Ticket;
  readonly body: MessageBody;
  /** Why the output failed its node. */
  readonly unfit?: string;
}

/** How long the first report of a task is waited for, if it is told twice at once. After a restart somebody else may have the task. */
const ON_ITS_WAY_MS = 2_000;
const MAX_USAGE_CHARS = 16_000;

/** Results from workers elsewhere: posted to the owners, whose word on them is the answer. */
export class TaskResults {
  readonly #store: Store;
  readonly #host: Host;
  readonly #requests: Requests;
  readonly #reader: ExecutionReader;
  readonly #tickets: Tickets;
  readonly #secret: (name: string) => string | undefined;

  constructor(parts: {
    readonly store: Store;
    readonly host: Host;
    readonly requests: Requests;
    readonly reader: ExecutionReader;
    readonly tickets: Tickets;
    readonly secret: (name: string) => string | undefined;
  }) {
    this.#store = parts.store;
    this.#host = parts.host;
    this.#requests = parts.requests;
    this.#reader = parts.reader;
    this.#tickets = parts.tickets;
    this.#secret = parts.secret;
  }

  /** Reports results, and tells what the owners made of them: one call of the store for all. */
  async settle(caller: Caller, results: readonly TaskResult[]): Promise<readonly Settled[]> {
    const reports = await Promise.all(results.map((result) => this.#report(result)));
    const expected = new Map<Report, Expected>();
    for (const report of reports) if (report !== undefined) expected.set(report, this.#requests.expect());
    const outcomes = new Map<Report, string>();
    try {
      const posted = [...expected.keys()];
      const settlements = posted.map((report) => settlementOf(report, caller, expected.get(report)));
      const given = settlements.length === 0 ? [] : await this.#store.tasks.settle(settlements);
      for (const [i, report] of posted.entries()) outcomes.set(report, given[i]!);
      const decided = posted.filter((report) => outcomes.get(report) !== "stale");
      await this.#requests.wait(
        decided.map((report) => expected.get(report)!),
        DECISION_TIMEOUT_MS,
      );
    } finally {
      this.#requests.forget([...expected.values()]);
    }
    return Promise.all(
      results.map(async ({ token }, i): Promise<Settled> => {
        const report = reports[i];
        if (report === undefined) return { token, accepted: false, code: "TASK_TOKEN_INVALID" };
        const isStale = outcomes.get(report) === "stale";
        const { answer } = expected.get(report)!;
        const settled = isStale ? await this.#repeated(report) : verdict(answer, report.unfit);
        if (settled.code !== "STALE_ATTEMPT") return { token, ...settled };
        const execution = await this.#reader.read(entityId(report.ticket.entity), ({ state }) => standing(state));
        return { token, ...settled, execution };
      }),
    );
  }

  /**
   * Reports results for which nobody waits: once they are in the store their owners will judge them, as those of any worker
   * beside it. Says of each token whether it is one of ours.
   */
  async post(caller: Caller, results: readonly TaskResult[]): Promise<readonly boolean[]> {
    const reports = await Promise.all(results.map((result) => this.#report(result)));
    const known = reports.filter((report) => report !== undefined);
    if (known.length > 0) await this.#store.tasks.settle(known.map((report) => settlementOf(report, caller)));
    return reports.map((report) => report !== undefined);
  }

  /** undefined if the token is none of ours. */
  async #report(result: TaskResult): Promise<Report | undefined> {
    const ticket = await this.#tickets.open(result.token);
    if (ticket === undefined) return undefined;
    this.#tickets.setTold(ticket);
    const { token } = ticket;
    const concealment = this.#concealment(ticket);
    if ("handedBack" in result) return { ticket, body: { kind: "taskHandedBack", token } };
    const { close_limit_seconds: closed, running_ms: runningMs = this.#tickets.runningMs(ticket) } = result;
    const usage = storableUsage(result.usage, concealment);
    const told = { runningMs, ...usage, ...(closed && { closeForMs: closed * 1000 }) };
    if ("error" in result) {
      const { code = "HANDLER_ERROR", message = "", retryable = true, details, retry_after_seconds } = result.error;
      const thrown = new HandlerError(code, message, { retryable, ...(details !== undefined && { details }) });
      const error = errorValue(thrown, concealment);
      const retryAfterMs = retry_after_seconds === undefined ? {} : { retryAfterMs: retry_after_seconds * 1000 };
      return { ticket, body: { kind: "taskFailed", token, error, ...retryAfterMs, ...told } };
    }
    const output = storableOutput(result.output, concealment);
    if ("error" in output) {
      const { error } = output;
      return { ticket, unfit: error.code, body: { kind: "taskFailed", token, error, ...told } };
    }
    const value = await storedValue(this.#store, ticket.entity, output);
    return { ticket, body: { kind: "taskCompleted", token, output: value, ...told } };
  }

  #concealment({ secrets = [] }: Ticket): Concealment {
    const concealment = new Concealment();
    for (const name of secrets) {
      const secret = this.#secret(name);
      if (secret !== undefined) concealment.add(secret);
    }
    return concealment;
  }

  /**
   * A failure or hand-back whose task is gone: the very same one that was reported before, or one that counts no more. While
   * the task is out for its owner, what was reported before may be on its way.
   */
  async #repeated({ ticket, body, unfit }: Report): Promise<Omit<Settled, "token">> {
    const { entity, partition, token } = ticket;
    const dispatch = parseToken(token);
    if (dispatch === undefined) return { accepted: false, code: "TASK_TOKEN_INVALID" };
    const untilMs = this.#host.monotonicMs() + ON_ITS_WAY_MS;
    for (let leftMs = ON_ITS_WAY_MS; leftMs > 0; leftMs = untilMs - this.#host.monotonicMs()) {
      const outAt = await this.#outAt(ticket);
      if (outAt === undefined) break;
      await this.#store.journal.watch(partition, entity, outAt, leftMs);
    }
    if (!(await this.#isInJournal(entity, dispatch, body.kind))) return { accepted: false, code: "STALE_ATTEMPT" };
    return unfit === undefined ? { accepted: true } : { accepted: false, code: unfit };
  }

  /** The version of its execution at which the task was out; undefined if it is not, or nobody here can tell. */
  async #outAt({ entity, token }: Ticket): Promise<number | undefined> {
    try {
      return await this.#reader.read(entityId(entity), ({ state }) => {
        return executionMachine.liveTokens(state).includes(token) ? state.version : undefined;
      });
    } catch {
      return undefined;
    }
  }

  async #isInJournal(entity: string, dispatch: Token, reported: MessageBody["kind"]): Promise<boolean> {
    const node = dispatch.instance.replace(/@\d+$/, "");
    let generation = 1;
    for (const [, event] of eventsOf(await this.#reader.events(entityId(entity), 0), 0)) {
      if (event.kind === "generationOpened") ({ generation } = event);
      const isReport =
        (event.kind === "taskFailed" && event.deadline === undefined && reported === "taskFailed") ||
        (event.kind === "deliveryLost" && event.handedBack && reported === "taskHandedBack");
      const isIt =
        isReport &&
        generation === dispatch.generation &&
        event.node === node &&
        event.attempt === dispatch.attempt &&
        event.delivery === dispatch.delivery;
      if (isIt) return true;
    }
    return false;
  }
}

/** What was used goes into the journal with the result. What is too much of it is left out: it must not cost the result. */
function storableUsage(usage: Json | undefined, concealment: Concealment): { readonly usage?: Json } {
  if (usage === undefined) return {};
  const shown = concealment.json(usage);
  return JSON.stringify(shown).length > MAX_USAGE_CHARS ? {} : { usage: shown };
}

/** An output as events carry it; a large one is written first, under its execution. */
export async function storedValue(
  store: Store,
  entity: string,
  { json, text }: { readonly json: Json; readonly text: string },
): Promise<Value> {
  const bytes = Buffer.byteLength(text);
  if (bytes <= INLINE_BYTES) return bytes >= 1024 ? { json, bytes } : { json };
  const hash = contentHash(text);
  await store.records.put([{ scope: entity, hash, text }]);
  return { blob: { hash, bytes } };
}

const OUTCOMES: Readonly<Partial<Record<MessageBody["kind"], Settlement["outcome"]>>> = {
  taskCompleted: "completed",
  taskHandedBack: "handedBack",
};

function settlementOf({ ticket, body }: Report, { by, trace, tenant }: Caller, expected?: Expected): Settlement {
  const { ref, token, partition, entity } = ticket;
  const reply = expected === undefined ? {} : { reply: expected.address };
  const message = { id: `${body.kind}:${token}`, to: entity, by, trace, tenant, ...reply, body };
  const outcome = OUTCOMES[body.kind] ?? "failed";
  return { ref, token, partition, outcome, text: messageText(message) };
}

/** What the owner's answer means to the worker. */
function verdict(answer: Answer | undefined, unfit: string | undefined): Omit<Settled, "token"> {
  if (answer === undefined) return { accepted: false, code: "NO_OWNER" };
  if ("refused" in answer) {
    return { accepted: false, code: answer.refused === "NOT_FOUND" ? "TASK_TOKEN_INVALID" : answer.refused };
  }
  if (unfit !== undefined) return { accepted: false, code: unfit };
  const { accepted, recorded } = answer.ok as { readonly accepted: boolean; readonly recorded?: boolean };
  return { accepted, ...(recorded !== undefined && { recorded }) };
}
