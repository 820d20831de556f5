import type { Random } from "../../src/simulator/random.ts";
import type { Fault } from "./fault-proxy.ts";
import type { Role } from "./member.ts";

/** Something that is done to the fleet. */
export type Step =
  | { readonly kind: "kill" | "stop" | "pause"; readonly role: Role }
  /** What it sends arrives when others believe it dead. */
  | { readonly kind: "hold"; readonly role: Role }
  /** One of the ends that the store must survive. */
  | { readonly kind: "end store"; readonly how: 0 | 1 }
  | { readonly kind: "end archive"; readonly how: 0 | 1 }
  | { readonly kind: "pause store" }
  | { readonly kind: "network" }
  /** Everything that it held is gone. */
  | { readonly kind: "lose store" };

/** What every world suffers, in an order of its own. */
const EVERY_WORLD: readonly (readonly [count: number, step: Step])[] = [
  [6, { kind: "kill", role: "engine" }],
  [3, { kind: "stop", role: "engine" }],
  [4, { kind: "kill", role: "worker" }],
  [2, { kind: "stop", role: "worker" }],
  [1, { kind: "kill", role: "gateway" }],
  [1, { kind: "stop", role: "gateway" }],
  [3, { kind: "kill", role: "api" }],
  [1, { kind: "stop", role: "api" }],
  [1, { kind: "end store", how: 0 }],
  [1, { kind: "end store", how: 1 }],
  [2, { kind: "pause", role: "engine" }],
  [1, { kind: "pause", role: "worker" }],
  [1, { kind: "pause", role: "api" }],
  [1, { kind: "pause store" }],
  [2, { kind: "hold", role: "engine" }],
  [6, { kind: "network" }],
];

/** What one with an archive suffers besides. */
const WITH_ARCHIVE: typeof EVERY_WORLD = [
  [1, { kind: "end archive", how: 0 }],
  [1, { kind: "end archive", how: 1 }],
  [3, { kind: "network" }],
];

/** What a world suffers whose store is lost in the end. */
const BEFORE_LOSS: typeof EVERY_WORLD = [
  [3, { kind: "kill", role: "engine" }],
  [2, { kind: "kill", role: "worker" }],
  [1, { kind: "kill", role: "gateway" }],
  [2, { kind: "kill", role: "api" }],
  [1, { kind: "pause", role: "worker" }],
  [2, { kind: "network" }],
];

/** How many processes die in a world; the store is one of them. */
export const KILLS_PER_WORLD: number = EVERY_WORLD.reduce(
  (sum, [count, { kind }]) => sum + (kind === "kill" || kind === "stop" || kind === "end store" ? count : 0),
  0,
);

export function drawPlan(random: Random, hasArchive: boolean): readonly Step[] {
  return shuffled(random, [...EVERY_WORLD, ...(hasArchive ? WITH_ARCHIVE : [])]);
}

export function drawLossPlan(random: Random): readonly Step[] {
  return [...shuffled(random, BEFORE_LOSS), { kind: "lose store" }];
}

function shuffled(random: Random, steps: typeof EVERY_WORLD): readonly Step[] {
  return steps
    .flatMap(([count, step]) => Array<Step>(count).fill(step))
    .map((step) => [random.next(), step] as const)
    .sort(([one], [other]) => one - other)
    .map(([, step]) => step);
}

/** A fault of one process's way to the store: what happens, for how long, and what becomes of torn connections. */
export interface NetworkFault {
  readonly name: string;
  readonly fault: Fault | "flap";
  readonly lastsMs: number;
  readonly torn: "break" | "leave";
}

export function drawNetworkFault(random: Random): NetworkFault {
  const lastsMs = random.integer(1_500, 7_000);
  const direction = random.pick(["up", "down", "both"] as const);
  const kinds: readonly (readonly [weight: number, name: string, fault: Fault | "flap", torn?: "leave"])[] = [
    [1, "delay", { kind: "delay", ms: random.integer(50, 300) }],
    [1, "throttle", { kind: "throttle", bytesPerSecond: random.integer(20_000, 200_000) }],
    [2, `hold ${direction}`, { kind: "hold", direction }],
    [1, "half-open", { kind: "swallow" }],
    [1, "vanish", { kind: "swallow" }, "leave"],
    [2, "swallow replies", { kind: "swallowReplies" }],
    [1, "refuse", { kind: "refuse" }],
    [1, "flap", "flap"],
  ];
  const [, name, fault, torn = "break"] = random.weighted(kinds.map((kind) => [kind[0], kind] as const));
  return { name, fault, lastsMs, torn };
}
