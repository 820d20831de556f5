import type { Mutant } from "./mutants.ts";

const CACHE = "core/cache";
const EXECUTION = "core/execution";

/** Bugs of the cache: the wrong result, one that is too old, or none for ever. */
export const CACHE_MUTANTS: readonly Mutant[] = [
  {
    name: "cache-never-forgets",
    thought: "a result stays right",
    patches: [
      {
        file: `${CACHE}/state.ts`,
        find: "return entry !== null && nowMs < entry.expiresAtMs ? entry : null;",
        put: "return entry;",
      },
      {
        file: `${CACHE}/machine.ts`,
        find: "nextWakeMs: (state) => state.entry?.expiresAtMs ?? null,",
        put: "nextWakeMs: () => null,",
      },
      {
        file: `${CACHE}/machine.ts`,
        find: "(entry?.expiresAtMs ?? lastAtMs)",
        put: "(entry === null ? lastAtMs : null)",
      },
    ],
  },
  {
    name: "cache-goes-by-handler",
    thought: "the same handler gives the same result",
    patches: [{ file: `${EXECUTION}/gates.ts`, find: "spec.handler, inputHash)", put: "spec.handler)" }],
  },
  {
    name: "leave-to-work-is-kept",
    thought: "whoever has failed does the work again",
    patches: [
      {
        file: `${CACHE}/decide.ts`,
        find: "return isKnown ?",
        put: "return isKnown && failed !== true ?",
      },
    ],
  },
  {
    name: "removed-while-it-works",
    thought: "what keeps nothing is of no use",
    patches: [
      {
        file: `${CACHE}/machine.ts`,
        find: "line.length > 0 || held.size > 0 ? null :",
        put: "line.length > 0 ? null :",
      },
    ],
  },
];
