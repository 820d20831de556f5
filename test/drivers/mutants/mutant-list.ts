import { closeMutants } from "./close-mutants.ts";
import { commitMutants } from "./commit-mutants.ts";
import { cutMutants } from "./cut-mutants.ts";
import { inboxMutants } from "./inbox-mutants.ts";
import { journalMutants } from "./journal-mutants.ts";
import { lapseAndRevokeMutants } from "./lapse-mutants.ts";
import { listingMutants } from "./listing-mutants.ts";
import type { Mutant } from "./mutant.ts";
import { partitionMutants } from "./partition-mutants.ts";
import { publishMutants } from "./publish-mutants.ts";
import { queuedMutants } from "./queued-mutants.ts";
import { recordAndQueryMutants } from "./record-mutants.ts";
import { taskMutants } from "./task-mutants.ts";
import { textAndRestartMutants } from "./text-mutants.ts";

export const mutants: readonly Mutant[] = [
  ...partitionMutants,
  ...commitMutants,
  ...queuedMutants,
  ...inboxMutants,
  ...journalMutants,
  ...cutMutants,
  ...taskMutants,
  ...lapseAndRevokeMutants,
  ...recordAndQueryMutants,
  ...publishMutants,
  ...listingMutants,
  ...textAndRestartMutants,
  ...closeMutants,
];
