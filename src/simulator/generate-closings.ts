import { Random } from "./random.ts";

/** In part of the worlds whoever is called says now and then that it has no more to give. */
const CLOSING_WORLDS = 0.25;

/** Drawn beside all else that is drawn of a seed. The number spares the worlds that have names. */
export function isClosingWorld(seed: number): boolean {
  return new Random(seed ^ 0x32a191b2).chance(CLOSING_WORLDS);
}

/** For how long a call that goes well closes the limit of its node; undefined if it does not. */
export function closingOf(name: number): number | undefined {
  const random = new Random(name ^ 0x2545f491);
  return random.chance(0.1) ? random.integer(500, 8_000) : undefined;
}
