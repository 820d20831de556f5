import { describe, test } from "vitest";
import { cases } from "./cases.ts";
import type { Case, Harness } from "./harness.ts";

export interface Driver {
  readonly open: () => Promise<Harness>;
  /** Where a driver is put into a state in which the other cases have nothing to say. */
  readonly only?: (one: Case) => boolean;
}

/** Runs every case against a driver, each on an empty store of its own. */
export function conformance(name: string, { open, only = () => true }: Driver): void {
  describe(`conformance: ${name}`, () => {
    for (const { role, name, requires, run } of cases.filter(only)) {
      test(`${role}: ${name}`, async ({ skip }) => {
        const harness = await open();
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
