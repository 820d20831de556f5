import { Random } from "../../src/simulator/random.ts";
import { ALL_NAMES } from "./failpoints.ts";
import type { WorldOptions } from "./world.ts";

/** One after another in one store: a death may bring to light what the one before has left. */
const KILLS_PER_WORLD = 8;

/** Worlds with so many kills in all: of all failpoints as equally many as can be, in an order that the seed shuffles. */
export function worldsOf(
  seed: number,
  kills: number,
  chosen: readonly string[] = [],
): readonly Pick<WorldOptions, "seed" | "failpoints">[] {
  const random = new Random(seed);
  const queue: string[] = [];
  // What somebody has chosen comes in the order in which it was.
  while (queue.length < kills) queue.push(...(chosen.length > 0 ? chosen : shuffled(ALL_NAMES, random)));
  const worlds: Pick<WorldOptions, "seed" | "failpoints">[] = [];
  for (let from = 0; from < kills; from += KILLS_PER_WORLD) {
    worlds.push({ seed: seed + worlds.length, failpoints: queue.slice(from, Math.min(kills, from + KILLS_PER_WORLD)) });
  }
  return worlds;
}

function shuffled(names: readonly string[], random: Random): readonly string[] {
  return names
    .map((name) => [random.next(), name] as const)
    .sort(([one], [other]) => one - other)
    .map(([, name]) => name);
}
