import { describe, test } from "vitest";
import { cases } from "./cases.ts";
import type { Harness } from "./harness.ts";

/** Runs every case against a driver, each on an empty store of its own. */
export function conformance(name: string, driver: { readonly open: () => Promise<Harness> }): void {
  describe(`conformance: ${name}`, () => {
    for (const { role, name, requires, run } of cases) {
      test(`${role}: ${name}`, async ({ skip }) => {
        const harness = await driver.open();
        try {
          if (requires?.isMet(harness) === false) skip(requires.reason);
          await run(harness);
        } finally {
          await harness.close();
        }
      });
    }
  });
}
