import { expect, test } from "vitest";
import { limitResetMs } from "./rate-limit-headers.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");

test.each<readonly [Readonly<Record<string, string>>, number | undefined]>([
  [{}, undefined],
  [{ "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s" }, 360_000],
  [{ "x-ratelimit-remaining-tokens": "12", "x-ratelimit-reset-tokens": "6m0s" }, undefined],
  [{ "x-ratelimit-reset-tokens": "6m0s" }, undefined],
  [
    {
      "x-ratelimit-remaining-tokens": "0",
      "x-ratelimit-reset-tokens": "1.5s",
      "x-ratelimit-remaining-requests": "0",
      "x-ratelimit-reset-requests": "20ms",
    },
    1_500,
  ],
  [{ "ratelimit-remaining": "0", "ratelimit-reset": "30" }, 30_000],
  [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(NOW / 1000 + 7) }, 7_000],
  [
    {
      "anthropic-ratelimit-tokens-remaining": "0",
      "anthropic-ratelimit-tokens-reset": "2026-01-01T00:00:09Z",
    },
    9_000,
  ],
  [{ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "soon" }, undefined],
])("%j: %s", (headers, expected) => {
  expect(limitResetMs({ headers }, NOW)).toBe(expected);
});
