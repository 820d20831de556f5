import * as fc from "fast-check";
import { expect, test } from "vitest";
import { backoffMs } from "./backoff.ts";

const retry = { max_attempts: 100, base_delay_seconds: 1, max_delay_seconds: 60, exponential_base: 2, jitter: 0 };
const HOUR_MS = 3_600_000;

const cases: readonly (readonly [
  name: string,
  policy: Partial<typeof retry>,
  attempt: number,
  random: number,
  retryAfterMs: number | undefined,
  ms: number,
])[] = [
  ["after the first attempt it is the base", {}, 1, 0.9, undefined, 1000],
  ["after the second the base times the factor", {}, 2, 0, undefined, 2000],
  ["after the third the factor counts twice", {}, 3, 0, undefined, 4000],
  ["never more than the maximum", {}, 30, 0, undefined, 60_000],
  ["the last of a hundred attempts is still a number", { exponential_base: 100 }, 100, 0, undefined, 60_000],
  ["a base of zero waits for nothing", { base_delay_seconds: 0, exponential_base: 100 }, 100, 0.5, undefined, 0],
  ["a factor of one waits the same every time", { exponential_base: 1 }, 50, 0, undefined, 1000],
  ["a fraction of a second is one", { base_delay_seconds: 0.25 }, 1, 0, undefined, 250],
  ["jitter adds up to its share", { jitter: 0.5 }, 1, 0.5, undefined, 1250],
  ["jitter comes on top of the maximum", { jitter: 1 }, 30, 0.5, undefined, 90_000],
  ["Retry-After that is longer wins", {}, 1, 0, 5000, 5000],
  ["Retry-After that is shorter does not", {}, 3, 0, 500, 4000],
  ["Retry-After of more than an hour counts as an hour", {}, 1, 0, 5 * HOUR_MS, HOUR_MS],
  [
    "a wait of our own may be longer than an hour",
    { base_delay_seconds: 7200, max_delay_seconds: 9000 },
    1,
    0,
    5 * HOUR_MS,
    2 * HOUR_MS,
  ],
  ["a Retry-After below zero is none", {}, 1, 0, -5000, 1000],
];

test.each(cases)("%s", (_, policy, attempt, random, retryAfterMs, ms) => {
  expect(backoffMs({ ...retry, ...policy }, attempt, random, retryAfterMs)).toBe(ms);
});

test("the wait lies between the plain one and that with all its jitter", () => {
  const policy = fc.record({
    max_attempts: fc.constant(100),
    base_delay_seconds: fc.double({ min: 0, max: 1000, noNaN: true }),
    max_delay_seconds: fc.double({ min: 1000, max: 100_000, noNaN: true }),
    exponential_base: fc.double({ min: 1, max: 100, noNaN: true }),
    jitter: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(policy, fc.integer({ min: 1, max: 100 }), random, (given, attempt, drawn) => {
      const plainMs =
        1000 * Math.min(given.max_delay_seconds, given.base_delay_seconds * given.exponential_base ** (attempt - 1));
      const ms = backoffMs(given, attempt, drawn);
      expect(ms).toBeGreaterThanOrEqual(Math.floor(plainMs));
      expect(ms).toBeLessThanOrEqual(Math.ceil(plainMs * (1 + given.jitter)));
    }),
  );
});
