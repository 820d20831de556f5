import type { CommitBatch } from "../../src/store/contract.ts";
import { ENGINE_TUNING, WITNESS, WORKER_WITNESS } from "../world/instruments.ts";
import { after, before, type Patch } from "../world/patch.ts";

const COMMITTER = "engine/committer.ts";
const SEND = "const sent = this.send(batches);";
const ANSWERED = "const outcomes = await sent;";

/** A batch is written down before it is sent, and what is heard of it afterwards: a kill in between loses neither. */
const ENGINE_WITNESS: readonly Patch[] = [
  after(
    "engine/engine.ts",
    "this.name = `engine-${options.host.id()}`;",
    `${WITNESS}.tell({ kind: "engine", name: this.name });`,
  ),
  before(COMMITTER, SEND, `${WITNESS}.sent(batches);`),
  after(COMMITTER, ANSWERED, `${WITNESS}.acknowledged(batches, outcomes);`),
];

const RECOVERY = "const [outcome] = await this.store.journal.commit([owner.seal(builder)]);";

/** Who makes a store again commits as well. */
const RECOVERY_WITNESS: Patch = {
  file: "engine/recovery.ts",
  find: RECOVERY,
  put: `const sealed = owner.seal(builder); ${WITNESS}.sent([sealed]); ${RECOVERY.replace("owner.seal(builder)", "sealed")}`,
};

/** Scripts are read from files of their own, which no hook sees. */
const SCRIPTS: Patch = {
  file: "drivers/redis/scripts.ts",
  find: 'return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), "utf8");',
  put: `return ${WITNESS}.script(name, readFileSync(new URL(\`./lua/\${name}.lua\`, import.meta.url), "utf8"));`,
};

/** A commit without a script notes itself as well, by one in the same transaction. */
const TRANSACTIONS: Patch = after(
  "drivers/redis/transaction.ts",
  'this.#commands.push(["HSET", this.#key("partition", partition), ...standing]);',
  `this.#commands.push(${WITNESS}.transacted(this.#key("witness"), batch));`,
);

/** The command that notes a commit, as AFTER_SCRIPTS does. */
export function notedCommit(key: string, { fence, id }: CommitBatch): string[] {
  const { partition, epoch, nonce, seq } = fence;
  const note = `local time = redis.call('TIME')
    redis.call('RPUSH', KEYS[1], cjson.encode({ 'commit', time[1], time[2], unpack(ARGV) }))`;
  return ["EVAL", note, "1", key, String(partition), String(epoch), nonce, String(seq), id];
}

/** What only a flood brings about is made usual. */
const FLOOD: Patch = {
  file: "drivers/redis/redis-store.ts",
  find: "const FLOOD_RECORDS = 16;",
  put: "const FLOOD_RECORDS = 0;",
};

/** What every process of a world has. */
export const INSTRUMENTS: readonly Patch[] = [
  ...ENGINE_TUNING,
  FLOOD,
  ...ENGINE_WITNESS,
  RECOVERY_WITNESS,
  ...WORKER_WITNESS,
  SCRIPTS,
  TRANSACTIONS,
];

/** What is done after a script, with its answer in `outcome`. */
const AFTER_SCRIPTS: Readonly<Record<string, string>> = {
  // arguments: prefix, incarnation, partition, incarnation, epoch, nonce, seq, id, …; 'queued' is committed as well
  commit: `if outcome == 'committed' or outcome == 'queued' then
    local time = redis.call('TIME')
    redis.call('RPUSH', key('witness'), cjson.encode({ 'commit', time[1], time[2], ARGV[3], ARGV[5], ARGV[6], ARGV[7], ARGV[8] }))
  end`,
  // arguments: prefix, incarnation, partition, owner, leaseMs, new nonce, …; returns {'acquired', incarnation, epoch, …}
  acquire: `if outcome[1] == 'acquired' then
    local time = redis.call('TIME')
    local owner = redis.call('HGET', key('partition', ARGV[3]), 'owner')
    redis.call('RPUSH', key('witness'), cjson.encode({ 'acquired', time[1], time[2], ARGV[3], outcome[3], ARGV[6], owner }))
  end`,
};

/** A script that also notes in the same step what it has done. */
export function witnessed(name: string, text: string): string {
  const note = AFTER_SCRIPTS[name];
  if (note === undefined) return text;
  const [first, ...rest] = text.split("\n");
  return [
    first,
    "local function unwitnessed()",
    ...rest,
    "end",
    "local outcome = unwitnessed()",
    note,
    "return outcome",
  ].join("\n");
}
