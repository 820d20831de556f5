import { clockCases } from "./clock-cases.ts";
import { closeCases } from "./close-cases.ts";
import { cutCases } from "./cut-cases.ts";
import { deliveryCases } from "./delivery-cases.ts";
import { fenceCases } from "./fence-cases.ts";
import { fullCases } from "./full-cases.ts";
import { handOverCases } from "./hand-over-cases.ts";
import type { Case } from "./harness.ts";
import { inboxCases } from "./inbox-cases.ts";
import { journalCases } from "./journal-cases.ts";
import { taskLapseCases } from "./lapse-cases.ts";
import { taskLeaseCases } from "./lease-cases.ts";
import { listingCases } from "./listing-cases.ts";
import { manyCases } from "./many-cases.ts";
import { partitionCases } from "./partition-cases.ts";
import { publishCases } from "./publish-cases.ts";
import { queryCases } from "./query-cases.ts";
import { queuedCases } from "./queued-cases.ts";
import { recordCases } from "./record-cases.ts";
import { renewCases } from "./renew-cases.ts";
import { revokeCases } from "./revoke-cases.ts";
import { settleCases } from "./settle-cases.ts";
import { strikeCases } from "./strike-cases.ts";
import { textCases } from "./text-cases.ts";
import { wakeCases } from "./wake-cases.ts";

/** Every sentence of the store contract, as something a driver does or does not do. */
export const cases: readonly Case[] = [
  ...partitionCases,
  ...renewCases,
  ...strikeCases,
  ...clockCases,
  ...inboxCases,
  ...deliveryCases,
  ...fenceCases,
  ...queuedCases,
  ...journalCases,
  ...cutCases,
  ...wakeCases,
  ...taskLeaseCases,
  ...settleCases,
  ...handOverCases,
  ...taskLapseCases,
  ...revokeCases,
  ...manyCases,
  ...recordCases,
  ...publishCases,
  ...queryCases,
  ...listingCases,
  ...textCases,
  ...fullCases,
  ...closeCases,
];
