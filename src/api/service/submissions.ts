import { handedLabels } from "../../core/execution/label-listing.ts";
import { forkedNodes } from "../../core/execution/view.ts";
import type { Answer } from "../../core/machine.ts";
import type { Fork, Labels, Start, Trigger } from "../../core/message.ts";
import { asVersion } from "../../core/workflow-version.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import { DECISION_TIMEOUT_MS, type Request, type RequestOutcome } from "../../inbox/requests.ts";
import { canonicalHash } from "../../json/canonical.ts";
import { isLongerThan } from "../../json/characters.ts";
import { drawnAtMs } from "../../host/time-id.ts";
import type { Value } from "../../core/value.ts";
import type { Json } from "../../json/json.ts";
import { pointerTo } from "../../json/pointer.ts";
import type { Store } from "../../store/contract.ts";
import { BULK_CHUNK, BULK_CHUNKS_AHEAD, MAX_BATCH_BYTES } from "../limits.ts";
import type { Caller } from "./caller.ts";
import type { Checked } from "./check-definition.ts";
import { accepted, type Decisions, undecided } from "./decisions.ts";
import type { DefinitionChecker, DefinitionSource } from "./definition-checker.ts";
import type { Definition, Definitions } from "./definitions.ts";
import { type ExecutionReader, standing } from "./execution-reader.ts";
import { isExecutionId, keyedId, newExecutionId } from "./ids.ts";
import { checkInput, inputFault, inputInvalid } from "./input-check.ts";
import { readLabels } from "./labels.ts";
import { Lru } from "./lru.ts";
import { type Payloads, sizedInput } from "./payloads.ts";
import { type Fault, notFound, Refusal, refusedByOwner } from "./refusal.ts";
import { type Soon, soon } from "./soon.ts";

export interface SubmitOptions {
  /** Run at once. */
  readonly start: boolean;
  /** Accept handlers that nobody serves yet. */
  readonly allowMissing: boolean;
}

export interface Published {
  readonly workflow_definition_id: string;
  readonly name: string;
  readonly version: number;
  readonly warnings?: readonly Fault[];
}

export interface Submitted extends Published {
  readonly execution_id: string;
  readonly status: "PENDING" | "RUNNING";
}

export interface Validation {
  readonly valid: boolean;
  readonly errors: readonly Fault[];
  readonly warnings: readonly Fault[];
  readonly omitted?: number;
}

export type BulkItem =
  | { readonly execution_id: string }
  | { readonly error: { readonly code: string; readonly message: string; readonly retryable: boolean } };

/** One execution to be accepted. */
interface Draft {
  readonly id: string;
  readonly definition: Definition;
  readonly input: Json;
  readonly hold: boolean;
  readonly bodyHash: string;
  readonly fork?: Fork;
  readonly labels?: Labels | undefined;
  /** Its definition is published under no name, and its input may be that of a batch. */
  readonly isUnnamed?: boolean;
}

/** What a start of a stored workflow may say besides its input. */
export interface StartOptions {
  readonly version?: string | number | undefined;
  readonly labels?: Labels | undefined;
}

/** Executions remembered from their submit, so that their trigger need not read them first. */
const REMEMBERED = 10_000;

/** The ways in which executions begin: submit and trigger, or start. */
export class Submissions {
  readonly #store: Store;
  readonly #host: Host;
  readonly #checker: DefinitionChecker;
  readonly #definitions: Definitions;
  readonly #reader: ExecutionReader;
  readonly #payloads: Payloads;
  readonly #decisions: Decisions;
  readonly #allowMissing: boolean;
  readonly #isStrict: boolean;
  readonly #submitted = new Lru<Definition>(REMEMBERED);
  /** Resolves, by execution, when a definition was taken or refused that was no version before. */
  readonly #turns = new Map<string, Promise<void>>();

  constructor(parts: {
    readonly store: Store;
    readonly host: Host;
    readonly checker: DefinitionChecker;
    readonly definitions: Definitions;
    readonly reader: ExecutionReader;
    readonly payloads: Payloads;
    readonly decisions: Decisions;
    /** Accept handlers that nobody serves yet, whoever asks. */
    readonly allowMissing: boolean;
    readonly isStrict: boolean;
  }) {
    this.#store = parts.store;
    this.#host = parts.host;
    this.#checker = parts.checker;
    this.#definitions = parts.definitions;
    this.#reader = parts.reader;
    this.#payloads = parts.payloads;
    this.#decisions = parts.decisions;
    this.#allowMissing = parts.allowMissing;
    this.#isStrict = parts.isStrict;
  }

  /** What a request may ask for: handlers that nobody serves yet, but not in production. */
  allowing(asked = false): boolean {
    if (asked && this.#isStrict) {
      const reason =
        '"allow_missing_handlers" is not possible with MILLRACE_ENV=prod: a misspelt handler would wait for ever';
      throw new MillraceError("FORBIDDEN", { reason });
    }
    return asked;
  }

  async validate(source: DefinitionSource, allowMissing: boolean): Promise<Validation> {
    const checked = await this.#checker.check(source, allowMissing || this.#allowMissing);
    if (checked.unknown !== undefined) throw unknownFields(checked.unknown);
    if (checked.failure !== undefined && checked.failure !== "INVALID_DEFINITION") throw rejected(checked);
    const { errors, warnings, omitted } = checked;
    return { valid: errors.length === 0, errors, warnings, ...(omitted > 0 && { omitted }) };
  }

  /** Stores a definition under its name, and runs nothing. */
  async publish(source: DefinitionSource, allowMissing: boolean): Promise<Published> {
    const { definition, checked } = await this.#good(source, allowMissing);
    return published(definition, await this.#definitions.publish(definition), checked);
  }

  /** Stores a definition and accepts an execution of it, which runs at once or waits to be triggered. */
  async submit(caller: Caller, source: DefinitionSource, { start, allowMissing }: SubmitOptions): Promise<Submitted> {
    const good = this.#good(source, allowMissing);
    const { definition, checked } = good instanceof Promise ? await good : good;
    // Without an input of its own the execution is judged by the one that its trigger brings.
    if (start || checked.input !== undefined) checkInput(definition, checked.input ?? {});
    // Nothing is stored of what is refused.
    if (checked.input !== undefined) sizedInput(checked.input);
    const labels = checked.labels === undefined ? undefined : goodLabels(checked.labels);
    const { key, tenant } = caller;
    const asked = (): Json => [
      definition.hash,
      checked.input ?? null,
      start,
      allowMissing,
      ...(labels === undefined ? [] : [labels]),
    ];
    const draft: Draft = {
      id: key === undefined ? newExecutionId(this.#host) : keyedId(tenant, "submit", key),
      definition,
      input: checked.input ?? {},
      hold: !start,
      bodyHash: key === undefined ? "" : canonicalHash(asked()),
      labels,
    };
    const isKnown = key === undefined || (await this.#definitions.isPublished(definition));
    const version = await (isKnown ? this.#take(caller, draft) : this.#takeNew(caller, draft));
    if (!start) this.#submitted.set(draft.id, definition, 1);
    return {
      ...published(definition, version, checked),
      execution_id: draft.id,
      status: start ? "RUNNING" : "PENDING",
    };
  }

  /** Runs what was submitted; on an execution that ended badly, runs again what failed. */
  async trigger(caller: Caller, id: string, given: Json | undefined, labels?: Labels): Promise<Json> {
    if (!isExecutionId(id)) throw notFound("execution", id);
    const input = given ?? undefined;
    if (!this.#takesAny(id)) await this.#checkTriggered(id, input);
    const value = input === undefined ? undefined : await this.#payloads.keep(id, input);
    const body = { ...(input !== undefined && { input_params: input }), ...(labels !== undefined && { labels }) };
    const answer = await this.#decisions.command(caller, id, "trigger", body, (command): Trigger => ({
      kind: "trigger",
      ...command,
      ...(value !== undefined && { input: value }),
      ...(labels !== undefined && { labels }),
    }));
    this.#submitted.delete(id);
    return answer;
  }

  /** Accepts an execution of a stored workflow and runs it. */
  async start(
    caller: Caller,
    name: string,
    { input: given, version, labels }: StartOptions & { readonly input: Json },
  ): Promise<{ readonly execution_id: string; readonly status: "RUNNING" }> {
    const input = given ?? {};
    const { key, tenant } = caller;
    const id = key === undefined ? newExecutionId(this.#host) : keyedId(tenant, "start", name, key);
    const bodyHash = key === undefined ? "" : startHash(input, { version, labels });
    let definition: Definition;
    try {
      definition = await this.named(name, version);
      checkInput(definition, input);
    } catch (error) {
      // What a key has begun is not judged anew: there may be another version of the workflow since, or none.
      const mayBeBegun = key !== undefined && error instanceof MillraceError;
      if (!mayBeBegun || (await this.#begunBy(id, bodyHash)) === undefined) throw error;
      return { execution_id: id, status: "RUNNING" };
    }
    accepted(id, await this.#accept(caller, { id, definition, input, hold: false, bodyHash, labels }));
    return { execution_id: id, status: "RUNNING" };
  }

  /**
   * Accepts an execution that begins with what another has completed, but for a node and what comes after it, and runs it.
   * The other one stays as it is, and may go on.
   */
  async fork(
    caller: Caller,
    id: string,
    { from, input }: { readonly from?: string | undefined; readonly input?: Json },
  ): Promise<{
    readonly execution_id: string;
    readonly status: "RUNNING";
    readonly forked_from: string;
    readonly kept: readonly string[];
  }> {
    if (!isExecutionId(id)) throw notFound("execution", id);
    const seen = await this.#reader.read(id, ({ state }) => {
      const { plan, around } = state;
      if (from !== undefined && !plan.graph.indexOf.has(from)) throw notFound("node", from);
      if (around !== null) {
        const detail = `The execution ${id} is an item of a map, and cannot be without it.`;
        throw new Refusal("NOT_RETRYABLE", { id }, { detail, execution: standing(state) });
      }
      return { hash: plan.hash, input: state.input, kept: forkedNodes(state, from), ...handedLabels(state) };
    });
    const definition = await this.#definitions.get(seen.hash);
    if (definition === undefined) throw new MillraceError("EXECUTION_UNREADABLE", { id });
    const given = input ?? (JSON.parse(await this.#payloads.text(id, seen.input)) as Json);
    checkInput(definition, given);
    const texts = await this.#payloads.texts(
      id,
      seen.kept.map(({ output }) => output),
    );
    const { key, tenant } = caller;
    const own = key === undefined ? newExecutionId(this.#host) : keyedId(tenant, "fork", id, key);
    const outputs = await this.#payloads.copy(own, texts);
    const kept = seen.kept.map(({ node }, i) => ({ node, output: outputs[i]! }));
    const draft: Draft = {
      id: own,
      definition,
      input: given,
      hold: false,
      bodyHash: key === undefined ? "" : canonicalHash([from ?? null, input ?? null]),
      fork: { execution: id, kept },
      labels: seen.labels,
    };
    accepted(own, await this.#accept(caller, draft));
    return { execution_id: own, status: "RUNNING", forked_from: id, kept: kept.map(({ node }) => node) };
  }

  /** Accepts an execution of a definition that is nobody's workflow, and runs it. Gives its id. */
  async startUnnamed(
    caller: Caller,
    route: string,
    written: Json,
    { input, labels }: { readonly input: Json; readonly labels: Labels },
  ): Promise<string> {
    const { definition } = await this.#good({ definition: written }, true);
    const { key, tenant } = caller;
    const draft: Draft = {
      id: key === undefined ? newExecutionId(this.#host) : keyedId(tenant, route, key),
      definition,
      input,
      hold: false,
      bodyHash: key === undefined ? "" : canonicalHash([definition.hash, input, labels]),
      labels,
      isUnnamed: true,
    };
    await this.#definitions.keep(definition);
    accepted(draft.id, await this.#accept(caller, draft));
    return draft.id;
  }

  /** The same for many inputs: all of them are checked before any is accepted, and each is accepted for itself. */
  async startAll(
    caller: Caller,
    name: string,
    { inputs: given, version, labels }: StartOptions & { readonly inputs: readonly Json[] },
  ): Promise<{ readonly items: readonly BulkItem[] }> {
    const inputs = given.map((input) => input ?? {});
    const { key, tenant } = caller;
    // One hash for all: the first item decides whether the key was used for something else, one start alone included.
    const bodyHash = key === undefined ? "" : canonicalHash(["inputs", inputs, version ?? null, labels ?? null]);
    const begun = key === undefined ? undefined : await this.#begunBy(keyedId(tenant, "start", name, key), bodyHash);
    // All of a request are of one version, also those that only a repeated request starts.
    const first = begun === undefined ? undefined : await this.#definitions.get(begun);
    const definition = first ?? (await this.named(name, version));
    const faults = inputs.flatMap((input, i) =>
      definition.inputFaults(input).map((fault) => inputFault(fault, `/inputs${pointerTo([i])}`)),
    );
    if (faults.length > 0) throw inputInvalid(faults);
    for (const input of inputs) sizedInput(input);
    const drafts = inputs.map((input, i): Draft => {
      const place = i === 0 ? [] : [String(i)];
      const id = key === undefined ? newExecutionId(this.#host) : keyedId(tenant, "start", name, key, ...place);
      return { id, definition, input, hold: false, bodyHash, labels };
    });
    const items: BulkItem[] = [];
    if (key !== undefined && drafts[0] !== undefined) {
      const first = await this.#outcome(caller, drafts[0]);
      if (first.kind === "answered") accepted(drafts[0].id, first.answer);
      items.push(itemOf(drafts[0], first));
    }
    const accepting: Promise<readonly BulkItem[]>[] = [];
    for (let from = items.length; from < drafts.length; from += BULK_CHUNK) {
      await accepting.at(-BULK_CHUNKS_AHEAD);
      // Those before it have their turn first, and as much time each: a slow owner must not look like none.
      const before = Math.min(accepting.length, BULK_CHUNKS_AHEAD - 1);
      const part = drafts.slice(from, from + BULK_CHUNK);
      const chunk = this.#acceptAll(caller, part, DECISION_TIMEOUT_MS * (before + 1));
      // Whoever waits for it hears of it; if one before it has failed nobody does.
      chunk.catch(() => {});
      accepting.push(chunk);
    }
    return { items: [...items, ...(await Promise.all(accepting)).flat()] };
  }

  /** A stored workflow, by its number or hash; the newest if neither is said. */
  async named(name: string, version?: string | number): Promise<Definition> {
    const published = isName(name) ? await this.#store.records.published(name, asVersion(version)) : null;
    const definition = published === null ? undefined : await this.#definitions.get(published.hash);
    if (published === null || definition === undefined) {
      throw notFound(version === undefined ? "workflow" : `version ${version} of the workflow`, name);
    }
    definition.version = published.version;
    return definition;
  }

  /** A definition without errors; any other is refused as a whole. */
  #good(source: DefinitionSource, allowMissing: boolean): Soon<{ definition: Definition; checked: Checked }> {
    return soon(this.#checker.checkSoon(source, allowMissing || this.#allowMissing), (checked) => {
      if (checked.unknown !== undefined) throw unknownFields(checked.unknown);
      if (checked.good === undefined) throw rejected(checked);
      return { definition: this.#definitions.of(checked.good), checked };
    });
  }

  /** Publishes the definition, and has the execution accepted: by then it has to be there for those that call it by its name. */
  async #take(caller: Caller, draft: Draft): Promise<number> {
    const version = await this.#definitions.publish(draft.definition);
    accepted(draft.id, await this.#accept(caller, draft));
    return version;
  }

  /**
   * The same for what has a key and is no version yet: of several definitions at once under one key only that is to become one which is
   * taken, and only the owner knows which that is. What waits to be triggered calls nobody, and is published when it is
   * accepted. What runs at once may call itself by its name. So here one is taken after the other; another server may do so
   * at the same time.
   */
  async #takeNew(caller: Caller, draft: Draft): Promise<number> {
    const { id, definition } = draft;
    if (draft.hold) {
      await this.#refuseReuse(draft);
      await this.#definitions.keep(definition);
      accepted(id, await this.#accept(caller, draft));
      return this.#definitions.publish(definition);
    }
    for (;;) {
      const other = this.#turns.get(id);
      if (other === undefined) break;
      await other;
      if (await this.#definitions.isPublished(definition)) return this.#take(caller, draft);
    }
    const taken = this.#refuseReuse(draft).then(() => this.#take(caller, draft));
    const isOver = (): void => void this.#turns.delete(id);
    this.#turns.set(id, taken.then(isOver, isOver));
    return taken;
  }

  /** A key that was used for something else is refused before its definition becomes a version. The owner decides. */
  async #refuseReuse({ id, bodyHash }: Draft): Promise<void> {
    const used = await this.#reader.find(id, ({ state }) => state.bodyHash);
    if (used !== undefined && used !== bodyHash) throw refusedByOwner("IDEMPOTENCY_KEY_REUSED", id, {});
  }

  /** The hash of the definition that an execution with this id and body was begun with; undefined if there is none such. */
  #begunBy(id: string, bodyHash: string): Promise<string | undefined> {
    return this.#reader.find(id, ({ state }) => (state.bodyHash === bodyHash ? state.plan.hash : undefined));
  }

  /** It was submitted here, and its workflow asks for no input in particular. */
  #takesAny(id: string): boolean {
    const submitted = this.#submitted.get(id);
    return submitted !== undefined && submitted.inputSchema === undefined;
  }

  /** An input that does not fit leaves the execution as it is. What is not waiting to be triggered is judged by its owner. */
  async #checkTriggered(id: string, input: Json | undefined): Promise<void> {
    const submitted = this.#submitted.get(id);
    const held = await this.#reader.read(id, ({ state }) =>
      state.status === "pending" ? { hash: state.plan.hash, input: state.input } : undefined,
    );
    if (held === undefined) return;
    const definition = submitted ?? (await this.#definitions.get(held.hash));
    if (definition?.inputSchema === undefined) return;
    checkInput(definition, input ?? (JSON.parse(await this.#payloads.text(id, held.input)) as Json));
  }

  async #accept(caller: Caller, draft: Draft): Promise<Answer> {
    const made = this.#request(caller, draft);
    const request = made instanceof Promise ? await made : made;
    const outcome = await this.#decisions.send(request);
    return decided(isLost(outcome) ? await this.#sendAgain(draft, request) : outcome);
  }

  async #outcome(caller: Caller, draft: Draft): Promise<RequestOutcome> {
    const request = await this.#request(caller, draft);
    const outcome = await this.#decisions.send(request);
    return isLost(outcome) ? this.#sendAgain(draft, request) : outcome;
  }

  async #sendAgain(draft: Draft, request: Request): Promise<RequestOutcome> {
    // Nobody can start with a definition that the store does not have; it had it once, or we would not have come here.
    if (draft.isUnnamed === true) await this.#definitions.keep(draft.definition);
    else await this.#definitions.publish(draft.definition, true);
    return this.#decisions.send(request);
  }

  async #acceptAll(caller: Caller, drafts: readonly Draft[], timeoutMs: number): Promise<readonly BulkItem[]> {
    const requests = await Promise.all(drafts.map(async (draft) => this.#request(caller, draft)));
    let outcomes = await this.#decisions.sendAll(requests, timeoutMs);
    if (outcomes.some(isLost)) {
      await this.#definitions.publish(drafts[0]!.definition, true);
      outcomes = await this.#decisions.sendAll(requests, timeoutMs);
    }
    return drafts.map((draft, i) => itemOf(draft, outcomes[i]!));
  }

  #request(caller: Caller, draft: Draft): Soon<Request> {
    const limitBytes = draft.isUnnamed === true ? MAX_BATCH_BYTES : undefined;
    return soon(this.#payloads.keep(draft.id, draft.input, limitBytes), (value) => this.#start(caller, draft, value));
  }

  #start(caller: Caller, draft: Draft, value: Value): Request {
    const { id, definition, hold, bodyHash, fork, labels } = draft;
    const keyAtMs = caller.key === undefined ? undefined : drawnAtMs(caller.key);
    const body: Start = {
      kind: "start",
      workflow: definition.name,
      definition: definition.hash,
      input: value,
      bodyHash,
      ...(hold && { hold }),
      ...(fork !== undefined && { fork }),
      ...(labels !== undefined && { labels }),
      ...(keyAtMs !== undefined && { keyAtMs }),
    };
    return this.#decisions.request(caller, id, id, body);
  }
}

/** Without labels it is what it was before there were any: a key that was used then is known by it. */
function startHash(input: Json, { version, labels }: StartOptions): string {
  return canonicalHash([input, version ?? null, ...(labels === undefined ? [] : [labels])]);
}

function goodLabels(given: Json): Labels {
  const read = readLabels(given);
  if ("labels" in read) return read.labels;
  const at = `/labels${read.path}`;
  const message = `"${at}" ${read.reason}.`;
  const details = { field: at, expected: "as described", got: "this" };
  throw new Refusal("INVALID_TYPE", details, {
    detail: message,
    errors: [{ code: "INVALID_TYPE", path: at, message }],
  });
}

function published({ hash, name }: Definition, version: number, { warnings }: Checked): Published {
  return { workflow_definition_id: hash, name, version, ...(warnings.length > 0 && { warnings }) };
}

function decided(outcome: RequestOutcome): Answer {
  if (outcome.kind === "answered") return outcome.answer;
  throw undecided(outcome);
}

function isLost(outcome: RequestOutcome): boolean {
  return outcome.kind === "answered" && "refused" in outcome.answer && outcome.answer.refused === "NOT_FOUND";
}

function itemOf(draft: Draft, outcome: RequestOutcome): BulkItem {
  try {
    if (outcome.kind !== "answered") throw undecided(outcome);
    accepted(draft.id, outcome.answer);
    return { execution_id: draft.id };
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error;
    return { error: { code: error.code, message: error.message, retryable: error.kind === "unavailable" } };
  }
}

/** What no workflow can be called: no store has to be asked for it. */
export function isName(name: string): boolean {
  return name !== "" && !isLongerThan(name, 128) && !/[\p{Cc}/]/u.test(name) && name.isWellFormed();
}

function unknownFields(names: readonly string[]): Refusal {
  const errors = names.map((field) => ({
    code: "UNKNOWN_FIELD",
    path: pointerTo([field]),
    message: `There is no field ${JSON.stringify(field)} beside "definition", "input_params" and "labels".`,
  }));
  return new Refusal("UNKNOWN_FIELD", { field: names[0]!, where: 'What stands around a "definition"' }, { errors });
}

/** A definition with errors, as the answer to somebody who wanted it stored. */
export function rejected({ failure = "INVALID_DEFINITION", errors, omitted }: Checked): Refusal {
  const more = { errors, ...(omitted > 0 && { omitted }) };
  if (failure === "INVALID_DEFINITION") return new Refusal(failure, { count: errors.length + omitted }, more);
  // It could not even be read; the first fault says why.
  const details = { format: "JSON", reason: "", key: "", limit: 0, what: "", limitBytes: 0 } as never;
  return new Refusal(failure, details, { ...more, detail: errors[0]?.message ?? failure });
}
