import type { Json } from "../../json/json.ts";
import type { ErrorValue } from "../message.ts";
import type { KeptValue } from "../value.ts";
import type { ChildCall, EndReason, SkipReason, Wait } from "./events.ts";

export interface UnsureRound {
  readonly round: number;
  readonly rerun: number;
}

/** Shared by all that have not been dispatched: a list of its own for each would cost more than the rest of a small run. */
export const NO_NONCES: readonly string[] = [];

const NO_ROUNDS: readonly UnsureRound[] = [];

/** What few have: those that were skipped, failed, called somebody, or ran more than once. */
class Rare {
  /** Part of the key that handlers get: rises when the work is to be done anew. */
  rerun: number = 1;
  /** Rounds of earlier generations of which nobody knows whether their work was done, and the number in their keys. */
  unsure: readonly UnsureRound[] = NO_ROUNDS;
  /** Of a node that repeats: the round it is in. 0 before the first. */
  round: number = 0;
  /** Deliveries of this attempt that were lost with their worker. */
  lost: number = 0;
  error: ErrorValue | null = null;
  skipReason: SkipReason | null = null;
  /** Why it stays cancelled in a later generation. */
  cancelReason: EndReason | null = null;
  /** A completion that came after the end of the generation, and the input it was made of. */
  late: { readonly output: KeptValue; readonly inputHash: string } | null = null;
  /** Its output is a late result. */
  wasLate: boolean = false;
  /** Its output was kept by the cache: the execution that did the work. */
  cachedFrom: string | undefined = undefined;
  /** Somebody wants this very node done anew: what the cache keeps does not count. */
  anew: true | undefined = undefined;
  /** The child execution it has called; kept over generations, so that the same child is called again. */
  child: ChildCall | null = null;
  /** What a router chose. */
  chosen: readonly number[] | null = null;
  /** Of a part of a large map: how many of its items failed. */
  failures: number = 0;
}

const USUAL: Readonly<Rare> = Object.freeze(new Rare());

/**
 * What became of a node, or of an item of a map; there is one once it has been touched, for as long as its execution is in memory. What few have
 * takes no room in the others.
 */
export class NodeRun {
  /** In which generation it was opened. */
  generation: number;
  /** 0 before the first dispatch. */
  attempt: number = 0;
  /** Dispatches within this attempt. */
  delivery: number = 0;
  /** The nonce each delivery of this attempt was dispatched under; a result is checked against it. */
  nonces: readonly string[] = NO_NONCES;
  inputHash: string | null = null;
  /** The version its input was made from; null before the first dispatch. */
  seen: number | null = null;
  private queuedAfter: number | null = null;
  private startedAfter: number | null = null;
  private endedAfter: number | null = null;
  /** The event that ended it. */
  endedVersion: number | null = null;
  /** The deadline it is under now: for its start, its end, or its next attempt. */
  dueAtMs: number | null = null;
  /** Its last attempt has ended with an answer of the handler, so that its work is known to be done or not. */
  answered: boolean = false;
  output: KeptValue | null = null;
  /** The event that brought the output, for when it leaves memory. */
  outputVersion: number = 0;
  /** What an engine's own node waits for, and since which version. */
  wait: Wait | null = null;
  waitVersion: number = 0;
  usage: Json | null = null;
  private rare: Rare | null = null;

  constructor(generation: number) {
    this.generation = generation;
  }

  /** As a snapshot tells it: only what is not as it was in the beginning. */
  static from(told: Partial<NodeRun>): NodeRun {
    return Object.assign(new NodeRun(1), told);
  }

  get queuedAtMs(): number | null {
    return moment(this.queuedAfter);
  }

  set queuedAtMs(atMs: number | null) {
    this.queuedAfter = after(atMs);
  }

  get startedAtMs(): number | null {
    return moment(this.startedAfter);
  }

  set startedAtMs(atMs: number | null) {
    this.startedAfter = after(atMs);
  }

  get endedAtMs(): number | null {
    return moment(this.endedAfter);
  }

  set endedAtMs(atMs: number | null) {
    this.endedAfter = after(atMs);
  }

  /** Part of the key that handlers get: rises when the work is to be done anew. */
  get rerun(): number {
    return this.rare === null ? USUAL.rerun : this.rare.rerun;
  }

  set rerun(value: number) {
    if (this.rare !== null || value !== USUAL.rerun) this.own.rerun = value;
  }

  /** Rounds of earlier generations of which nobody knows whether their work was done, and the number in their keys. */
  get unsure(): readonly UnsureRound[] {
    return this.rare === null ? USUAL.unsure : this.rare.unsure;
  }

  set unsure(value: readonly UnsureRound[]) {
    if (this.rare !== null || value !== USUAL.unsure) this.own.unsure = value;
  }

  /** Of a node that repeats: the round it is in. 0 before the first. */
  get round(): number {
    return this.rare === null ? USUAL.round : this.rare.round;
  }

  set round(value: number) {
    if (this.rare !== null || value !== USUAL.round) this.own.round = value;
  }

  /** Deliveries of this attempt that were lost with their worker. */
  get lost(): number {
    return this.rare === null ? USUAL.lost : this.rare.lost;
  }

  set lost(value: number) {
    if (this.rare !== null || value !== USUAL.lost) this.own.lost = value;
  }

  get error(): ErrorValue | null {
    return this.rare === null ? USUAL.error : this.rare.error;
  }

  set error(value: ErrorValue | null) {
    if (this.rare !== null || value !== USUAL.error) this.own.error = value;
  }

  get skipReason(): SkipReason | null {
    return this.rare === null ? USUAL.skipReason : this.rare.skipReason;
  }

  set skipReason(value: SkipReason | null) {
    if (this.rare !== null || value !== USUAL.skipReason) this.own.skipReason = value;
  }

  /** Why it stays cancelled in a later generation. */
  get cancelReason(): EndReason | null {
    return this.rare === null ? USUAL.cancelReason : this.rare.cancelReason;
  }

  set cancelReason(value: EndReason | null) {
    if (this.rare !== null || value !== USUAL.cancelReason) this.own.cancelReason = value;
  }

  /** A completion that came after the end of the generation, and the input it was made of. */
  get late(): { readonly output: KeptValue; readonly inputHash: string } | null {
    return this.rare === null ? USUAL.late : this.rare.late;
  }

  set late(value: { readonly output: KeptValue; readonly inputHash: string } | null) {
    if (this.rare !== null || value !== USUAL.late) this.own.late = value;
  }

  /** Its output is a late result. */
  get wasLate(): boolean {
    return this.rare === null ? USUAL.wasLate : this.rare.wasLate;
  }

  set wasLate(value: boolean) {
    if (this.rare !== null || value !== USUAL.wasLate) this.own.wasLate = value;
  }

  /** Its output was kept by the cache: the execution that did the work. */
  get cachedFrom(): string | undefined {
    return this.rare === null ? USUAL.cachedFrom : this.rare.cachedFrom;
  }

  set cachedFrom(value: string | undefined) {
    if (this.rare !== null || value !== USUAL.cachedFrom) this.own.cachedFrom = value;
  }

  /** Somebody wants this very node done anew: what the cache keeps does not count. */
  get anew(): true | undefined {
    return this.rare === null ? USUAL.anew : this.rare.anew;
  }

  set anew(value: true | undefined) {
    if (this.rare !== null || value !== USUAL.anew) this.own.anew = value;
  }

  /** The child execution it has called; kept over generations, so that the same child is called again. */
  get child(): ChildCall | null {
    return this.rare === null ? USUAL.child : this.rare.child;
  }

  set child(value: ChildCall | null) {
    if (this.rare !== null || value !== USUAL.child) this.own.child = value;
  }

  /** What a router chose. */
  get chosen(): readonly number[] | null {
    return this.rare === null ? USUAL.chosen : this.rare.chosen;
  }

  set chosen(value: readonly number[] | null) {
    if (this.rare !== null || value !== USUAL.chosen) this.own.chosen = value;
  }

  /** Of a part of a large map: how many of its items failed. */
  get failures(): number {
    return this.rare === null ? USUAL.failures : this.rare.failures;
  }

  set failures(value: number) {
    if (this.rare !== null || value !== USUAL.failures) this.own.failures = value;
  }

  private get own(): Rare {
    return (this.rare ??= new Rare());
  }

  toJSON(): { readonly [field: string]: unknown } {
    const told: { [field: string]: unknown } = {};
    if (this.generation !== 1) told["generation"] = this.generation;
    if (this.attempt !== 0) told["attempt"] = this.attempt;
    if (this.delivery !== 0) told["delivery"] = this.delivery;
    if (this.nonces !== NO_NONCES) told["nonces"] = this.nonces;
    if (this.inputHash !== null) told["inputHash"] = this.inputHash;
    if (this.seen !== null) told["seen"] = this.seen;
    if (this.queuedAfter !== null) told["queuedAtMs"] = this.queuedAtMs;
    if (this.startedAfter !== null) told["startedAtMs"] = this.startedAtMs;
    if (this.endedAfter !== null) told["endedAtMs"] = this.endedAtMs;
    if (this.endedVersion !== null) told["endedVersion"] = this.endedVersion;
    if (this.dueAtMs !== null) told["dueAtMs"] = this.dueAtMs;
    if (this.answered) told["answered"] = true;
    if (this.output !== null) told["output"] = this.output;
    if (this.outputVersion !== 0) told["outputVersion"] = this.outputVersion;
    if (this.wait !== null) told["wait"] = this.wait;
    if (this.waitVersion !== 0) told["waitVersion"] = this.waitVersion;
    if (this.usage !== null) told["usage"] = this.usage;
    if (this.rare !== null) tell(told, this.rare, USUAL);
    return told;
  }
}

/**
 * The first moment that any run of this process was told. A moment of our days is an object of its own in the heap, 16 bytes beside its field, and a time of less
 * than 24 days after this one is none. Later ones take that room, and are as exact.
 */
let firstMs: number | undefined;

function after(atMs: number | null): number | null {
  if (atMs === null) return null;
  firstMs ??= atMs;
  return atMs - firstMs;
}

function moment(afterMs: number | null): number | null {
  return afterMs === null ? null : firstMs! + afterMs;
}

function tell(told: { [field: string]: unknown }, from: object, usual: object): void {
  for (const [field, value] of Object.entries(from)) {
    if (value !== usual[field as keyof object]) told[field] = value as unknown;
  }
}
