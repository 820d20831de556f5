import { ENGINE_TUNING, WITNESS, WORKER_WITNESS } from "../world/instruments.ts";
import { after, before, type Patch } from "../world/patch.ts";

const FILE = "drivers/sqlite/file";

/** What is rare in a short life is made frequent: removals in pieces, checkpoints of the log. */
const TUNING: readonly Patch[] = [
  { file: `${FILE}/purge.ts`, find: "MAX_ROWS = 200;", put: "MAX_ROWS = 20;" },
  { file: `${FILE}/open-file.ts`, find: "LOG_BYTES = 16 * 1024 * 1024;", put: "LOG_BYTES = 50 * PAGE_BYTES;" },
];

/**
 * The history, written down where it cannot be wrong: each commit and tenure notes itself in the transaction that makes
 * it true. What its process hears of it goes to a file, line by line.
 */
const STORE_WITNESS: readonly Patch[] = [
  {
    file: `${FILE}/open-file.ts`,
    find: "return { db, lock, file, incarnation: migrate(db, newIncarnation) };",
    put: `const incarnation = migrate(db, newIncarnation);
      db.script("create table if not exists witness (at real not null, kind text not null, text text not null)");
      return { db, lock, file, incarnation };`,
  },
  after(
    "drivers/sqlite/commit.ts",
    "checkPartition(fence.partition);\n  return {",
    `witness: ${WITNESS}.commitText(batch),`,
  ),
  before(
    `${FILE}/commit.ts`,
    "db.runAll(SQL.deleteMail, [batch.consumedMail]);",
    `db.run("insert into witness values (?, 'commit', ?)", ${WITNESS}.nowMs(), batch.witness);`,
  ),
  after(
    `${FILE}/partitions.ts`,
    "this.#db.run(SQL.begin, epoch, nonce, owner, strikes, suspect);",
    `this.#db.run("insert into witness values (?, 'acquired', ?)", ${WITNESS}.nowMs(), JSON.stringify({ epoch, nonce, owner }));`,
  ),
  before(
    "drivers/sqlite/commit.ts",
    "for (const [i, batch] of batches.entries()) {",
    `${WITNESS}.acknowledged(batches, outcomes);`,
  ),
];

/** What every process of a world has; its calendar may be off. */
export function instruments(clockMs: number): readonly Patch[] {
  const clock = {
    file: "host/node-host.ts",
    find: "wallMs: () => Date.now(),",
    put: `wallMs: () => Date.now() + ${clockMs},`,
  };
  return [...ENGINE_TUNING, ...TUNING, ...STORE_WITNESS, ...WORKER_WITNESS, clock];
}
