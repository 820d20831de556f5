import { expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import { Owner } from "./owner.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";
import { formatSuspicion, readSuspicion } from "./suspicion.ts";

const CAPABILITIES = {
  name: "test",
  partitionCount: 1,
  volatileTasks: false,
  volatileInbox: false,
  maxBatchEntries: 1000,
  maxBatchBytes: 1e6,
};

/** Who is accused after so many owners in a row were last seen at this item. */
function accused(deaths: number): string[] {
  let suspect: string | null = null;
  for (let i = 0; i < deaths; i++) {
    suspect = formatSuspicion({ next: "execution/x", deaths: readSuspicion(suspect, true) });
  }
  const fence = { partition: 0, incarnation: "i", epoch: 1, nonce: "n", seq: 0 };
  const tenure = { ...fence, lastTimeMs: 0, storeTimeMs: 0, strikes: 3, suspect };
  return [...new Owner(nodeHost, DEFAULT_SETTINGS, CAPABILITIES, tenure).suspects.keys()];
}

test("two owners that vanish at the same item may be chance, three are not", () => {
  expect([0, 1, 2, 3].map(accused)).toEqual([[], [], [], ["execution/x"]]);
});

test("an owner that takes its own partition anew has not died of anything", () => {
  const left = formatSuspicion({ next: "execution/x", deaths: new Map([["execution/x", 2]]) });
  expect([...readSuspicion(left, false)]).toEqual([["execution/x", 2]]);
});
