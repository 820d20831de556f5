import { entityKey } from "../../core/entity.ts";
import { AMOUNT_UNITS, type Amounts, type AmountUnit } from "../../core/gate/amounts.ts";
import { LIMITS } from "../../core/gate/decide.ts";
import { gateMachine } from "../../core/gate/machine.ts";
import { type GateName, type GateRule, isBucket } from "../../core/gate/rule.ts";
import { costOf, type GateState, isWaitingForBeginnings, keepingOut, opensAtMs } from "../../core/gate/state.ts";
import type { GateCommand } from "../../core/message.ts";
import { PER_SECONDS } from "../../core/execution/plan-gates.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import { canonicalHash } from "../../json/canonical.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import type { LimitSpec } from "../../definition/workflow.ts";
import type { Host } from "../../host/host.ts";
import type { Requests } from "../../inbox/requests.ts";
import type { Listed, Store } from "../../store/contract.ts";
import type { Caller } from "./caller.ts";
import { accepted, undecided } from "./decisions.ts";
import { iso } from "./execution-view.ts";
import { keyedId } from "./ids.ts";
import { BEGINNING, type PageOf, type PageRequest, type Paging } from "./paging.ts";
import { readEntity } from "./read-entity.ts";
import { notFound } from "./refusal.ts";

export interface ShownLimit {
  readonly id: string;
  readonly name: string;
  readonly kind: string;
  readonly key: string | null;
  /** Of a budget what of it is used, by unit, stands under `budget`. */
  readonly limit: number | null;
  readonly window_seconds?: number;
  readonly burst?: number;
  readonly budget?: { readonly [Unit in AmountUnit]?: ShownAmount };
  readonly in_use: number;
  readonly waiting: number;
  readonly until: string | null;
  readonly tripped: boolean;
  readonly overridden: boolean;
}

export interface ShownAmount {
  readonly limit: number | null;
  readonly spent: number;
  /** For what is under way. */
  readonly reserved: number;
}

/** What a person sets instead of what the definitions say. */
export type Override = { readonly [Field in keyof (LimitSpec & Amounts)]?: (LimitSpec & Amounts)[Field] | undefined };

/** How one who waits at a gate stands. */
export interface PlaceInLine {
  readonly limit: ShownLimit;
  /** How many come before it; -1 if it does not wait there, or no more. */
  readonly before: number;
  /** When its turn comes if nothing else happens; null if that depends on others. */
  readonly atMs: number | null;
  /** Of a rate: as many as may be under way were let through, and have not begun. */
  readonly waitsForBeginnings: boolean;
  /** The executions whose end others wait for, the longest holders first; of a rate none. */
  readonly holders: readonly string[];
}

/** What can be set of each kind of limit. */
const RULED: Readonly<Record<GateName["kind"], readonly (keyof Override)[]>> = {
  rate: ["rate", "per", "burst"],
  concurrency: ["concurrency"],
  tokens: ["tokens_per_minute", "tokens_burst"],
  budget: AMOUNT_UNITS,
  breaker: [],
};
/** More of one name than this are not commanded at once, nor more at all measured. */
const MAX_NAMED = 500;
/** Among so many, at most, what is measured is looked for. */
const MAX_LOOKED = 10_000;

interface NamedGate {
  readonly id: string;
  readonly gate: GateName;
}

/** The gates of this store, as anybody can read them: folds of their journals. */
export class Limits {
  readonly #store: Store;
  readonly #host: Host;
  readonly #requests: Requests;
  readonly #paging: Paging;

  constructor(store: Store, host: Host, requests: Requests, paging: Paging) {
    this.#store = store;
    this.#host = host;
    this.#requests = requests;
    this.#paging = paging;
  }

  async list(page: PageRequest): Promise<PageOf<ShownLimit>>;
  /** @param own limits that are none of the store's; they come first. */
  async list<Own>(page: PageRequest, own: readonly Own[]): Promise<PageOf<ShownLimit | Own>>;
  async list<Own>({ limit, cursor }: PageRequest, own: readonly Own[] = []): Promise<PageOf<ShownLimit | Own>> {
    const first = cursor === undefined ? own.slice(0, limit) : [];
    const room = limit - first.length;
    if (room === 0) return { items: first, next_cursor: await this.#paging.seal("limits", BEGINNING) };
    const read = (query: { limit: number; cursor?: string }) => this.#store.queries.listing({ list: LIMITS, ...query });
    const page = { limit: room, cursor };
    const { items, next_cursor } = await this.#paging.page("limits", page, read, (listed: Listed) => listed.id);
    return { items: [...first, ...(await this.#shown(items))], next_cursor };
  }

  /** What is measured: limits that many share, and after them budgets, of which every execution may have one. */
  async measured(): Promise<readonly ShownLimit[]> {
    const shared: string[] = [];
    const budgets: string[] = [];
    let cursor: string | null = null;
    for (let looked = 0; looked < MAX_LOOKED && shared.length < MAX_NAMED;) {
      const page = await this.#names(cursor);
      for (const { id, gate } of page.items) (gate.kind === "budget" ? budgets : shared).push(id);
      looked += page.items.length;
      ({ cursor } = page);
      if (cursor === null) break;
    }
    return this.#shown([...shared, ...budgets].slice(0, MAX_NAMED));
  }

  /** Closes or opens the limits of a name, or the one of an id. */
  command(caller: Caller, name: string, action: "trip" | "reset"): Promise<PageOf<ShownLimit>> {
    return this.#command(caller, name, action, () => ({}));
  }

  /** What is not said stays as the definitions have it; of a budget, as it is. */
  async override(caller: Caller, name: string, spec: Override): Promise<PageOf<ShownLimit>> {
    await this.#refuseUnfit(name, spec);
    return this.#command(caller, name, "override", ({ kind }, own) => ruling(kind, spec, own), spec as Json);
  }

  /** Lets budgets allow at least so much in all. Whatever else is said at the same time, none allows less afterwards. */
  async raise(caller: Caller, name: string, amounts: Override): Promise<PageOf<ShownLimit>> {
    await this.#refuseUnfit(name, amounts);
    const make = ({ kind }: GateName): Ruling =>
      kind === "budget" ? { amounts: amountsOf(amounts), atLeast: true } : undefined;
    return this.#command(caller, name, "override", make, { ...(amounts as JsonObject), at_least: true });
  }

  /** Where somebody stands who waits at a gate. */
  async place(gate: string, execution: string, ask: number): Promise<PlaceInLine | undefined> {
    const state = await this.#read(gate);
    if (state === undefined) return undefined;
    let before = 0;
    let isThere = false;
    let cost = 0;
    for (const each of state.line.inTurn(state.lastAtMs)) {
      if (each.execution === execution && each.ask.ask === ask) {
        isThere = true;
        break;
      }
      before++;
      cost += state.ruling === null ? 0 : costOf(state.ruling, each.ask);
    }
    const opens = isThere ? opensAtMs(state) : null;
    const rule = state.ruling;
    const waitMs = isBucket(rule) ? (cost / rule.perSecond) * 1000 : 0;
    const waitsForBeginnings = isThere && isWaitingForBeginnings(state);
    const isKnown = opens !== null && !waitsForBeginnings && (isBucket(rule) || before === 0);
    const atMs = isKnown ? opens + waitMs : null;
    const holders = [...new Set(keepingOut(state).map(({ execution }) => execution))];
    return { limit: showLimit(state), before: isThere ? before : -1, atMs, waitsForBeginnings, holders };
  }

  async #command(
    caller: Caller,
    name: string,
    action: GateCommand["action"],
    /** `own` is what the definitions say of it. */
    more: (gate: GateName, own: GateRule | null) => Ruling,
    asked: Json = {},
  ): Promise<PageOf<ShownLimit>> {
    const found = await this.#named(name);
    if (found.length === 0) throw notFound("limit", name);
    for (const { id, gate } of found) {
      const own = action === "override" ? ((await this.#read(entityKey("gate", id)))?.rule ?? null) : null;
      const told = more(gate, own);
      if (told === undefined) continue;
      const { by, tenant, trace, key } = caller;
      const request = key === undefined ? this.#host.id() : keyedId(tenant, `limits/${id}/${action}`, key);
      if (key !== undefined) await this.#refuseReuse(entityKey("gate", id), request, asked);
      const body: GateCommand = { kind: "gateCommand", request, action, ...told };
      const outcome = await this.#requests.send({ to: entityKey("gate", id), by, tenant, trace, id: request, body });
      if (outcome.kind !== "answered") throw undecided(outcome);
      accepted(id, outcome.answer);
    }
    return { items: await this.#shown(found.map(({ id }) => id)), next_cursor: null };
  }

  /** What no limit of the name has would be taken for done, and do nothing. */
  async #refuseUnfit(name: string, spec: Override): Promise<void> {
    const kinds = (await this.#named(name)).map(({ gate }) => gate.kind);
    const fields: readonly string[] = kinds.flatMap((kind) => RULED[kind]);
    const unfit = Object.entries(spec).find(([field, value]) => value !== undefined && !fields.includes(field))?.[0];
    if (kinds.length === 0 || unfit === undefined) return;
    const what = [...new Set(kinds)].join(" and ");
    throw new MillraceError("INVALID_TYPE", {
      field: unfit,
      expected: `left out for a limit of ${what}`,
      got: "given",
    });
  }

  /** A gate knows which commands it has had, not what they said. That is kept beside it, and goes with it. */
  async #refuseReuse(scope: string, request: string, asked: Json): Promise<void> {
    const place = { scope, hash: request };
    const body = canonicalHash(asked);
    await this.#store.records.put([{ ...place, text: body }]);
    const [first] = await this.#store.records.get([place]);
    if (first !== body) throw new MillraceError("IDEMPOTENCY_KEY_REUSED", {});
  }

  /** The gates of a name: a limit may have both a rate and places. An id names one. */
  async #named(name: string): Promise<NamedGate[]> {
    const one = name.length <= 300 ? await this.#store.queries.listed(LIMITS, name) : null;
    if (one !== null) return [{ id: one.id, gate: JSON.parse(one.text) as GateName }];
    const found: NamedGate[] = [];
    let cursor: string | null = null;
    do {
      const page = await this.#names(cursor);
      found.push(...page.items.filter(({ gate }) => gate.name === name));
      ({ cursor } = page);
    } while (cursor !== null && found.length < MAX_NAMED);
    return found;
  }

  /** The gates that there are, newest first, by what they are called. */
  async #names(
    cursor: string | null,
  ): Promise<{ readonly items: readonly NamedGate[]; readonly cursor: string | null }> {
    const query = { list: LIMITS, limit: MAX_NAMED, ...(cursor !== null && { cursor }) };
    const { items, cursor: next } = await this.#store.queries.listing(query);
    return { items: items.map(({ id, text }) => ({ id, gate: JSON.parse(text) as GateName })), cursor: next };
  }

  async #shown(ids: readonly string[]): Promise<ShownLimit[]> {
    const states = await Promise.all(ids.map((id) => this.#read(entityKey("gate", id))));
    return states.flatMap((state) => (state?.name ? [showLimit(state)] : []));
  }

  #read(entity: string): Promise<GateState | undefined> {
    return readEntity(this.#store, gateMachine, entity);
  }
}

/** What a gate is told to let through from now on; undefined if it is not meant. */
type Ruling = Pick<GateCommand, "rule" | "amounts" | "atLeast"> | undefined;

/** Amounts are put together with what there is by the gate itself: here they may have changed since they were read. */
function ruling(kind: GateName["kind"], spec: Override, own: GateRule | null): Ruling {
  if (kind !== "budget") return { rule: ruleOf(kind, spec, own) };
  const amounts = amountsOf(spec);
  return Object.keys(amounts).length === 0 ? { rule: null } : { amounts };
}

function amountsOf(spec: Override): Amounts {
  return Object.fromEntries(AMOUNT_UNITS.flatMap((unit) => (spec[unit] === undefined ? [] : [[unit, spec[unit]]])));
}

/** What is not said stays as the definitions have it; null if nothing is. A burst follows the rate that it comes with. */
function ruleOf(kind: Exclude<GateName["kind"], "budget">, spec: Override, own: GateRule | null): GateRule | null {
  const { rate, per = "second", burst, concurrency, tokens_per_minute: perMinute, tokens_burst: tokensBurst } = spec;
  if (kind === "breaker") return null;
  if (kind === "concurrency") {
    const onConflict = own?.kind === "concurrency" ? own.onConflict : "queue";
    return concurrency === undefined ? null : { kind, limit: concurrency, onConflict };
  }
  if (kind === "tokens") {
    if (perMinute === undefined) {
      return tokensBurst === undefined || own?.kind !== "tokens" ? null : { ...own, burst: tokensBurst };
    }
    return { kind, perSecond: perMinute / 60, burst: tokensBurst ?? Math.max(1, Math.ceil(perMinute)) };
  }
  if (rate === undefined) return burst === undefined || own?.kind !== "rate" ? null : { ...own, burst };
  const perSecond = rate / PER_SECONDS[per];
  return { kind, perSecond, burst: burst ?? Math.max(1, Math.ceil(perSecond)) };
}

function showLimit(state: GateState): ShownLimit {
  const { name, ruling, held, lapsed, line, isTripped, override, closedUntilMs } = state;
  const { kind, name: called, key = null } = name!;
  return {
    id: state.id,
    name: called,
    kind,
    key,
    ...sizeOf(ruling!, state),
    in_use: held.size + lapsed.size,
    waiting: line.length,
    until: closedUntilMs > state.lastAtMs ? iso(closedUntilMs) : null,
    tripped: isTripped,
    overridden: override !== null,
  };
}

function sizeOf(
  rule: GateRule,
  { spent, reserved }: GateState,
): Pick<ShownLimit, "limit" | "window_seconds" | "burst" | "budget"> {
  if (rule.kind === "budget") {
    const units = AMOUNT_UNITS.filter((unit) => rule.limits[unit] !== undefined || (spent[unit] ?? 0) > 0);
    const shown = units.map((unit) => {
      const amount = { limit: rule.limits[unit] ?? null, spent: spent[unit] ?? 0, reserved: reserved[unit] ?? 0 };
      return [unit, amount] as const;
    });
    return { limit: null, budget: Object.fromEntries(shown) };
  }
  if (rule.kind === "concurrency") return { limit: rule.limit };
  if (rule.kind === "breaker") return { limit: rule.failureRate };
  if (rule.kind === "tokens") return { limit: rule.perSecond * 60, window_seconds: 60, burst: rule.burst };
  const seconds = Object.values(PER_SECONDS).find((each) => rule.perSecond * each >= 1) ?? 3600;
  return { limit: rule.perSecond * seconds, window_seconds: seconds, burst: rule.burst };
}
