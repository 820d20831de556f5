import { before, type Patch } from "./patch.ts";

export const WITNESS = "globalThis.millraceWitness";

/** What is rare in a short life is made frequent: snapshots, entities that leave memory, more due than one batch takes, a second commit under way. */
export const ENGINE_TUNING: readonly Patch[] = [
  { file: "engine/settings.ts", find: "snapshotEvents: 1_000,", put: "snapshotEvents: 12," },
  { file: "engine/settings.ts", find: "maxResidents: 10_000,", put: "maxResidents: 6," },
  { file: "engine/settings.ts", find: "maxWakes: 200,", put: "maxWakes: 7," },
  { file: "engine/settings.ts", find: "followEntries: 100,", put: "followEntries: 1," },
];

/** What a worker gets, does and hears goes to a file, line by line. */
export const WORKER_WITNESS: readonly Patch[] = [
  before(
    "worker/worker.ts",
    "(this.options.observer?.[event] as ((...given: unknown[]) => void) | undefined)?.(...args);",
    `${WITNESS}.seenByWorker(this.name, event, args);`,
  ),
  {
    file: "worker/worker.ts",
    find: "this.caller.call(handler, task, delivery);",
    put: `this.caller.call((call) => ${WITNESS}.run(this.name, call, handler), task, delivery);`,
  },
];
