import type { Patch } from "../world/patch.ts";
import type { Step } from "./fault-plan.ts";
import type { StoreKind } from "./stores.ts";

/** A text in one of the scripts that Redis runs. */
export interface ScriptPatch {
  readonly script: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly put: string;
}

/** A deliberate bug that only several processes on one store bring to light. */
export interface Mutant {
  readonly name: string;
  /** What a hurried developer would have thought. */
  readonly thought: string;
  readonly store: StoreKind;
  /** It shows when the store is lost and made again. */
  readonly loses?: true;
  /** What has to be done to the fleet for it to show. */
  readonly steps: readonly Step[];
  /** A part of what is then said. */
  readonly says: RegExp;
  readonly patches: readonly Patch[];
  readonly scripts: readonly ScriptPatch[];
}

/** Some are killed, so that not everything is shipped, and then everything is lost. */
const LOSS: readonly Step[] = [
  { kind: "kill", role: "worker" },
  { kind: "kill", role: "engine" },
  { kind: "network" },
  { kind: "lose store" },
];

const times = (count: number, step: Step): readonly Step[] => Array<Step>(count).fill(step);

export const MUTANTS: readonly Mutant[] = [
  {
    name: "redis-no-fence",
    thought: "whoever commits has made sure that it owns the partition",
    store: "redis",
    // Each is believed dead, and then what it had sent arrives.
    steps: times(4, { kind: "hold", role: "engine" }),
    says: /^I[24] /,
    // What is watched would refuse it as well.
    patches: [
      { file: "drivers/redis/redis-store.ts", find: "options.transactionsFrom ?? FLOOD_RECORDS", put: "Infinity" },
    ],
    scripts: [
      {
        script: "commit",
        find: "if incarnation ~= ARGV[2] or known[1] ~= epoch or known[2] ~= nonce then return 'fenced' end",
        put: "",
      },
      { script: "commit", find: "if next_seq ~= seq then", put: "if false then" },
      {
        script: "commit",
        find: "if not foreign and table.concat(reached, ' ') ~= before then",
        put: "if false then",
      },
    ],
  },
  {
    name: "redis-unwatched",
    thought: "what was read a moment ago is still so when the transaction runs",
    store: "redis",
    steps: times(4, { kind: "hold", role: "engine" }),
    says: /^I[24] /,
    patches: [
      {
        file: "drivers/redis/watched-standing.ts",
        find: 'for (const partition of partitions) keys.push(keyOf(redis, "partition", partition));',
        put: "",
      },
    ],
    scripts: [],
  },
  {
    name: "postgres-gives-twice",
    thought: "a lock on the row is enough for two workers not to get the same task",
    store: "postgres",
    steps: [],
    says: /^I32 .* was delivered \d+ times/,
    patches: [
      {
        file: "drivers/postgres/tasks.ts",
        find: "from tasks where queue = asked.queue and lease_until_ms is null",
        put: "from tasks where queue = asked.queue",
      },
    ],
    scripts: [],
  },
  {
    name: "redis-silent-lapse",
    thought: "a task that nobody has any more can be removed",
    store: "redis",
    steps: times(8, { kind: "kill", role: "worker" }),
    says: /is stuck/,
    patches: [],
    scripts: [
      { script: "lapse", find: "if call('SREM', key('revoked'), token) == 0 then post(partition, text) end", put: "" },
    ],
  },
  {
    name: "redis-hasty-lapse",
    thought: "what is still pending when somebody looks is lost",
    store: "redis",
    steps: [],
    says: /was given up \d+ ms after its worker got it/,
    patches: [],
    scripts: [
      { script: "lapsed", find: "'-inf', string.format('%.0f', now), 'BYSCORE'", put: "'-inf', '+inf', 'BYSCORE'" },
      { script: "lapse", find: "if until_ms and tonumber(until_ms) <= now and", put: "if until_ms and" },
    ],
  },
  {
    name: "postgres-lazy-disk",
    thought: "the disk will follow; nobody has to wait for it",
    store: "postgres",
    steps: times(4, { kind: "end store", how: 1 }),
    says: /^I[37] |is not there|was not accepted/,
    patches: [
      {
        file: "drivers/postgres/database.ts",
        find: "search_path: schema,",
        put: 'search_path: schema, synchronous_commit: "off",',
      },
    ],
    scripts: [],
  },
  {
    name: "recover-old-epochs",
    thought: "a new store begins with new numbers",
    store: "redis-postgres",
    loses: true,
    steps: LOSS,
    says: /^I1 Partition \d+ was given|came back with epoch|The archive does not have all of/,
    patches: [
      {
        file: "engine/recovery.ts",
        find: "if (outcome.tenure.epoch > above) return outcome.tenure;",
        put: "if (outcome.tenure.epoch > Math.min(above, 0)) return outcome.tenure;",
      },
    ],
    scripts: [],
  },
  {
    name: "ship-header-ahead",
    thought: "a list may as well show the newest, and the records follow",
    store: "redis-postgres",
    loses: true,
    // While it is cut off again and again, what goes on is shipped in part only.
    steps: LOSS,
    says: /^The archive showed|is stuck|never ended|must be COMPLETED/,
    patches: [
      {
        file: "engine/shipments.ts",
        find: "if (header === null || header.version <= version) return header;",
        put: "if (header === null || version > 0) return header;",
      },
    ],
    scripts: [],
  },
  {
    name: "recover-without-tasks",
    thought: "what was out will lapse, and then it is put out again",
    store: "redis-postgres",
    loses: true,
    steps: LOSS,
    says: /is stuck|never ended|no worker ever got it/,
    patches: [
      {
        file: "engine/recovery.ts",
        find: "builder.add(resident, { events: [], tasks, blobs }, 0, owner.time.nowMs());",
        put: "builder.add(resident, { events: [], blobs }, 0, owner.time.nowMs());",
      },
    ],
    scripts: [],
  },
];

/** A script with a deliberate bug, if it is to have one. A patch that no longer fits fails loudly. */
export function patchedScript(name: string, text: string, mutant: Mutant | undefined): string {
  let script = text;
  for (const { find, put } of mutant?.scripts.filter((patch) => patch.script === name) ?? []) {
    if (script.split(find).length !== 2) throw new Error(`the patch does not fit ${name}.lua exactly once: ${find}`);
    script = script.replace(find, () => put);
  }
  return script;
}
