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
  [
    {
      "anthropic-ratelimit-output-tokens-remaining": "0",
      "anthropic-ratelimit-output-tokens-reset": "2026-01-01T00:00:03Z",
    },
    3_000,
  ],
  [{ "x-rate-limit-remaining": "0", "x-rate-limit-reset": String(NOW / 1000 + 5) }, 5_000],
  [{ ratelimit: '"default";r=0;t=7' }, 7_000],
  [{ ratelimit: '"burst";r=0;t=7, "day"; r=0; t=60; pk=:a2V5:' }, 60_000],
  [{ ratelimit: '"burst";r=0;t=7, "day";r=12;t=3600' }, 7_000],
  [{ ratelimit: '"default";r=10;t=7' }, undefined],
  [{ ratelimit: '"default";r=0' }, undefined],
  [{ ratelimit: "limit=100, remaining=0, reset=7" }, 7_000],
  [{ ratelimit: "limit=100, remaining=50, reset=7" }, undefined],
])("%j: %s", (headers, expected) => {
  expect(limitResetMs({ headers }, NOW)).toBe(expected);
});
