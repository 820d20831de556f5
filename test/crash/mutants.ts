import type { Patch } from "../world/patch.ts";

/** A deliberate bug, to prove that the sweep can fail. Only a kill brings it to light. */
export interface Mutant {
  readonly name: string;
  /** What a hurried developer would have thought. */
  readonly thought: string;
  /** Where a kill does. */
  readonly failpoints: readonly string[];
  /** A part of what is then said. */
  readonly says: RegExp;
  readonly patches: readonly Patch[];
}

const FILE = "drivers/sqlite/file";

export const MUTANTS: readonly Mutant[] = [
  {
    name: "answer-before-durable",
    thought: "the disk will follow; nobody has to wait for it",
    failpoints: ["sqlite.beforeCommit", "sqlite.afterBegin"],
    says: /^M2 Its client was told ok before/,
    patches: [
      {
        file: "drivers/sqlite/commit.ts",
        find: "const outcomes = await sqlite.writer.call(",
        put: `const written = batches.map((batch, i) => fileBatch(sqlite, batch, mail[i]!));
          batches.forEach((batch, i) => release(sqlite, batch, mail[i]!));
          await new Promise((resolve) => setTimeout(resolve, 20));
          const outcomes = await sqlite.writer.call(`,
      },
      {
        file: "drivers/sqlite/commit.ts",
        find: "batches.map((batch, i) => fileBatch(sqlite, batch, mail[i]!)),",
        put: "written,",
      },
      {
        file: "drivers/sqlite/commit.ts",
        find: 'if (outcomes[i]!.kind === "committed") release(sqlite, batch, mail[i]!);',
        put: "",
      },
    ],
  },
  {
    name: "tasks-not-put-back",
    thought: "a task is in its queue from its dispatch on",
    failpoints: ["worker.beforeRun"],
    says: /is stuck/,
    patches: [
      {
        file: "engine/supply.ts",
        find: "if (tasks.length > 0) owner.restorable.set(key, tasks);",
        put: "",
      },
    ],
  },
  {
    name: "mail-in-memory",
    thought: "whoever it is for lives in the same process",
    failpoints: ["effects.beforeMail"],
    says: /is stuck/,
    patches: [{ file: `${FILE}/commit.ts`, find: "db.runAll(SQL.putMail, batch.mail);", put: "" }],
  },
  {
    name: "timers-in-memory",
    thought: "who waits is in memory, and knows how long",
    failpoints: ["worker.afterSettle"],
    says: /is stuck/,
    patches: [
      {
        file: `${FILE}/commit.ts`,
        find: "for (let i = 0; i < entities.length; i++) this.wakes.set(entities[i]!, times[i]!);",
        put: "",
      },
    ],
  },
  {
    name: "short-transactions",
    thought: "a commit that is written in two halves keeps readers waiting half as long",
    failpoints: ["sqlite.midBatch", "sqlite.midBatch"],
    says: /^The journal of .* is not what its commits wrote/,
    patches: [
      {
        file: `${FILE}/commit.ts`,
        find: "this.#append(batch.records, besides, batch.cut);",
        put: 'db.script("commit; begin immediate"); this.#append(batch.records, besides, batch.cut);',
      },
    ],
  },
];
