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
  /** What has to be done to the fleet for it to show. */
  readonly steps: readonly Step[];
  /** A part of what is then said. */
  readonly says: RegExp;
  readonly patches: readonly Patch[];
  readonly scripts: readonly ScriptPatch[];
}

const times = (count: number, step: Step): readonly Step[] => Array<Step>(count).fill(step);

export const MUTANTS: readonly Mutant[] = [
  {
    name: "redis-no-fence",
    thought: "whoever commits has made sure that it owns the partition",
    store: "redis",
    // Each is believed dead, and then what it had sent arrives.
    steps: times(4, { kind: "hold", role: "engine" }),
    says: /^I[24] /,
    patches: [],
    scripts: [
      {
        script: "commit",
        find: "if not is_holder(partition, incarnation, epoch, nonce) then return 'fenced' end",
        put: "",
      },
      { script: "commit", find: "if next_seq ~= seq then", put: "if false then" },
      {
        script: "commit",
        find: "if tonumber(version) ~= entity.version + 1 or tonumber(count) < 1 then",
        put: "if false then",
      },
    ],
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
        find: "where queue = asked.queue and lease_until_ms is null",
        put: "where queue = asked.queue",
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
    scripts: [{ script: "lapse", find: "if not task.is_revoked then post(partition, text) end", put: "" }],
  },
  {
    name: "redis-hasty-lapse",
    thought: "what is still pending when somebody looks is lost",
    store: "redis",
    steps: [],
    says: /was given up \d+ ms after its worker got it/,
    patches: [],
    scripts: [
      { script: "lapsed", find: "'IDLE', AGE - offset, '-', '+', limit", put: "'-', '+', limit" },
      { script: "lapse", find: "'IDLE', AGE - offset, task.id", put: "task.id" },
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
