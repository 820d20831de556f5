import type { ErrorValue, GateAsk, Message } from "../message.ts";
import type { Used } from "./amounts.ts";
import type { GateName, GateRule } from "./rule.ts";
import type { GateBody } from "./snapshot.ts";

/**
 * What has happened to a gate. As with executions, a shipped event never changes its meaning. From format 2 on a journal may
 * begin at a renewal, and from format 3 on grants may lapse, which a release that does not know it must not pass over.
 */
export const GATE_EVENT_FORMAT = 3;

export type GateEvent =
  | GateRuled
  | AsksQueued
  | AsksGranted
  | AsksRefused
  | AsksStalled
  | AsksReturned
  | AsksSuperseded
  | AsksLapsed
  | GateClosed
  | BreakerOpened
  | GateCommanded
  | GateReminded
  | GateRenewed
  | { readonly kind: "gateForsaken"; readonly atMs: number }
  | { readonly kind: "quarantined"; readonly atMs: number; readonly error: ErrorValue }
  | { readonly kind: "parked"; readonly atMs: number; readonly message: Message }
  | { readonly kind: "released"; readonly atMs: number; readonly request: string };

interface At {
  /** Partition time. */
  readonly atMs: number;
}

/** The rule as the newest ask has it; the first of these brings the gate to life. */
export interface GateRuled extends At {
  readonly kind: "gateRuled";
  readonly name: GateName;
  readonly rule: GateRule;
}

/** They stand in line now. */
export interface AsksQueued extends At {
  readonly kind: "asksQueued";
  readonly execution: string;
  /** Of which workflow it is: those take turns. */
  readonly workflow?: string;
  readonly asks: readonly GateAsk[];
}

export interface Place {
  readonly execution: string;
  readonly ask: number;
}

/** Their answers went out with this event. */
export interface AsksGranted extends At {
  readonly kind: "asksGranted";
  readonly grants: readonly Place[];
  /** Of a rate: the tokens that are left at this moment. */
  readonly level?: number;
}

/** There was no room, or nothing left for them, and they do not wait. */
export interface AsksRefused extends At {
  readonly kind: "asksRefused";
  readonly execution: string;
  readonly asks: readonly number[];
}

/** Others came after them, and there is room for those alone: their executions were called off with this event. */
export interface AsksSuperseded extends At {
  readonly kind: "asksSuperseded";
  readonly asks: readonly Place[];
}

/** Of a rate: what was let through has not begun for long, so that others need not wait for it any more, except those of its own workflow. */
export interface AsksLapsed extends At {
  readonly kind: "asksLapsed";
  readonly asks: readonly Place[];
}

/** They ask for more than is left of a budget, and wait until somebody allows more. They were told so with this event. */
export interface AsksStalled extends At {
  readonly kind: "asksStalled";
  readonly asks: readonly Place[];
}

/** Given back, or no longer wanted. */
export interface AsksReturned extends At {
  readonly kind: "asksReturned";
  readonly execution: string;
  readonly asks: readonly number[];
  /** At a breaker: those that came to a good end, and those that did not. Of the rest nobody knows. */
  readonly good?: readonly number[];
  readonly bad?: readonly number[];
  /** Of those that something was reserved for: what they have used. The others have not been out. */
  readonly used?: readonly Used[];
}

/** Whoever is behind it has asked to be left alone for a while. */
export interface GateClosed extends At {
  readonly kind: "gateClosed";
  readonly untilMs: number;
}

/** Too many have failed: nothing goes through until then, and little after it. */
export interface BreakerOpened extends At {
  readonly kind: "breakerOpened";
  readonly untilMs: number;
}

/**
 * A person has closed it until it is opened again, has opened it, or has set a rule that goes before that of the
 * definitions; without one that is taken back.
 */
export interface GateCommanded extends At {
  readonly kind: "commandApplied";
  readonly command: "trip" | "reset" | "override";
  readonly request: string;
  readonly by: string;
  readonly bodyHash?: string;
  readonly rule?: GateRule | null;
}

/** After the store was lost and made anew: everybody who holds something was told again. */
export interface GateReminded extends At {
  readonly kind: "gateReminded";
}

/** All that its events until now have come to: whoever has this one needs none before it. It changes nothing. */
export interface GateRenewed extends At {
  readonly kind: "gateRenewed";
  readonly state: GateBody;
}
