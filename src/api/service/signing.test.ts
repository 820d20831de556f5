import { createHmac, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { hmacWith } from "./signing.ts";

test("a seal is what HMAC-SHA-256 makes of it: tokens and cursors stay good from one release to the next", () => {
  for (const length of [0, 1, 63, 64, 65, 1_000]) {
    const [key, text] = [randomBytes(32), `${"ä".repeat(length)}\nbody`];
    expect(hmacWith(key)(text)).toBe(createHmac("sha256", key).update(text).digest("base64url"));
  }
});
