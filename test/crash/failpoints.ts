import { after, before, type Patch } from "../world/patch.ts";

/** A place in the sources at which the process can be made to die. */
export interface Failpoint {
  readonly name: string;
  readonly patch: Patch;
  /** It dies at one of its first so many hits, drawn from the seed. */
  readonly most: number;
  /**
   * What has to go on for it to be reached: nothing, work, what a dead process left undone, the stop by SIGTERM, or that
   * everything has been over for so long that it is removed.
   */
  readonly during: "start" | "work" | "recovery" | "stop" | "removal";
}

/** Killed from outside, at a moment drawn from the seed: while it starts, works or stops. */
export const OUTSIDE: Readonly<Record<string, Failpoint["during"]>> = {
  "outside.start": "start",
  "outside.work": "work",
  "outside.stop": "stop",
};

type Place = readonly [file: string, find: string, when?: string];

/** What a patched source calls; the hook brings it into every thread. */
const call = (name: string, when: string | undefined): string =>
  `${when === undefined ? "" : `if (${when}) `}globalThis.millraceWitness.point(${JSON.stringify(name)});`;

const at =
  (insert: typeof before) =>
  (name: string, [file, find, when]: Place, most: number, during: Failpoint["during"] = "work"): Failpoint => ({
    name,
    patch: insert(file, find, call(name, when)),
    most,
    during,
  });
const beforeIt = at(before);
const afterIt = at(after);

const FILE = "drivers/sqlite/file";
const ENGINE = "engine/engine.ts";
const COMMITTER = "engine/committer.ts";
const SUPPLY = "engine/supply.ts";
const WORKER = "worker/worker.ts";
const CALLER = "worker/task-caller.ts";
const SETTLE = "const outcomes = await this.store.tasks.settle(results.map(({ settlement }) => settlement));";
const PROCESS = "process/process.ts";
const COMMIT = "drivers/sqlite/commit.ts";

/** In the order of the loop: api → inbox → engine → commit → effects → worker; then starting and stopping. */
export const FAILPOINTS: readonly Failpoint[] = [
  // ── the API ───────────────────────────────────────────────────────────────────────────────────────────────────
  beforeIt(
    "definition.beforePut",
    ["api/service/definitions.ts", "const put = await this.#store.records.put([{ scope: DEFINITION_SCOPE"],
    4,
  ),
  beforeIt(
    "definition.beforePublish",
    ["api/service/definitions.ts", "definition.version = await records.publish(name, hash);"],
    4,
  ),
  beforeIt(
    "input.afterPut",
    [
      "api/service/payloads.ts",
      'if (put === "refused") throw new Refusal("STORE_FULL", {}, { retryAfterSeconds: 2 });\n    return { blob',
    ],
    1,
  ),
  beforeIt("api.beforeAccept", ["inbox/requests.ts", "this.store.inbox.append(messages).then("], 12),
  beforeIt("api.afterAccept", ["inbox/requests.ts", 'if (outcomes[0] !== "appended") end();'], 12),
  beforeIt(
    "api.beforeAnswer",
    [
      "inbox/requests.ts",
      "resolve(answer === undefined ? this.undecided(request, appended, 0)",
      "answer !== undefined",
    ],
    12,
  ),

  // ── the engine ────────────────────────────────────────────────────────────────────────────────────────────────
  beforeIt(
    "lease.beforeAcquire",
    ["engine/tenures.ts", "const outcome = await this.store.partitions.acquire("],
    1,
    "start",
  ),
  beforeIt(
    "lease.afterAcquire",
    ["engine/tenures.ts", 'if (outcome.kind === "acquired" && !this.owned.has(partition)) this.take(outcome.tenure);'],
    1,
    "start",
  ),
  beforeIt("lease.beforeRenew", ["engine/tenures.ts", "const outcome = await this.store.partitions.renew("], 1),
  afterIt(
    "inbox.afterRead",
    [
      ENGINE,
      "const reads = await this.read(requests, this.idleTime(owners));",
      "reads?.some(({ messages }) => messages.length > 0)",
    ],
    20,
  ),
  beforeIt(
    "timer.fire",
    [ENGINE, "if (owner.careful) return await this.formCarefully(owner, incoming, due);", "due.length > 0"],
    5,
  ),
  beforeIt(
    "load.before",
    [SUPPLY, "const loaded = await this.loader.load([...missing], starts, owner.suspects, owner.definitions);"],
    8,
  ),
  afterIt(
    "load.after",
    [SUPPLY, "const loaded = await this.loader.load([...missing], starts, owner.suspects, owner.definitions);"],
    8,
  ),
  beforeIt("core.afterDecide", [ENGINE, "owner.finish(builder);"], 20),
  afterIt("snapshot.make", ["engine/keep-entity.ts", "entity.snapshotVersion = machine.versionOf(state);"], 6),
  beforeIt(
    "tasks.beforeRestore",
    [SUPPLY, "try {\n        const { partition } = owner;", "still.length > 0"],
    2,
    "recovery",
  ),
  beforeIt("tasks.afterRestore", [SUPPLY, "owner.restorable.delete(key);", "still.length > 0"], 2, "recovery"),
  beforeIt("blob.beforePut", [COMMITTER, "await this.store.records.put(builder.blobs);"], 2),
  afterIt("blob.afterPut", [COMMITTER, "await this.store.records.put(builder.blobs);"], 2),
  beforeIt("commit.beforeSend", [COMMITTER, "const sent = this.send(batches);"], 20),

  // ── the thread that writes ────────────────────────────────────────────────────────────────────────────────────
  afterIt("sqlite.afterBegin", [`${FILE}/group-commit.ts`, 'this.#db.run("begin immediate");'], 25),
  beforeIt("sqlite.midBatch", [`${FILE}/commit.ts`, "this.#append(batch.records, besides, batch.cut);"], 20),
  afterIt(
    "sqlite.afterSnapshot",
    [`${FILE}/commit.ts`, "db.runAll(SQL.putSnapshot, batch.snapshots);", "batch.snapshots[0].length > 0"],
    5,
  ),
  afterIt(
    "sqlite.afterMail",
    [`${FILE}/commit.ts`, "db.runAll(SQL.putMail, batch.mail);", "batch.mail[0].length > 0"],
    6,
  ),
  afterIt(
    "dlq.put",
    [`${FILE}/commit.ts`, "db.runAll(SQL.putDeadLetter, batch.deadLetters);", "batch.deadLetters[0].length > 0"],
    2,
  ),
  afterIt("sqlite.afterPut", [`${FILE}/records.ts`, "this.#db.runAll(SQL.put, records);"], 6),
  beforeIt("sqlite.beforeCommit", [`${FILE}/group-commit.ts`, 'this.#db.run("commit");'], 25),
  afterIt("sqlite.afterCommit", [`${FILE}/group-commit.ts`, 'this.#db.run("commit");'], 25),
  afterIt("sqlite.afterAnswer", [`${FILE}/thread.ts`, "answer(some.map(({ id }, i) => ({ id, ...done[i]! })));"], 25),

  // ── what follows from a commit ────────────────────────────────────────────────────────────────────────────────
  beforeIt("effects.beforeAll", [COMMIT, "for (const [i, batch] of batches.entries()) {"], 20),
  beforeIt(
    "effects.beforeTasks",
    [COMMIT, "for (const task of batch.tasks) addTask(memory, task);", "batch.tasks.length > 0"],
    15,
  ),
  beforeIt("effects.beforeMail", [COMMIT, "for (const { id, text } of mail) {", "mail.length > 0"], 6),
  beforeIt(
    "effects.beforeReplies",
    [COMMIT, "for (const reply of batch.replies) postReply(memory, reply);", "batch.replies.length > 0"],
    10,
  ),
  afterIt("effects.afterAll", [COMMIT, "watchers.committed(batch);"], 20),
  afterIt("commit.afterReply", [COMMITTER, "const outcomes = await sent;"], 20),
  afterIt("commit.afterSettle", [COMMITTER, "this.tenures.acknowledge(owner);"], 20),
  afterIt(
    "review.decide",
    ["engine/owner.ts", "builder.reply(message.reply, decision.reply);", 'message.body.kind === "decideReview"'],
    1,
  ),
  beforeIt(
    "dlq.replay",
    [
      "engine/owner.ts",
      "builder.reply(message.reply, decision.reply);\n    if (entity.goesOnIn === builder.number) return;",
      'message.body.kind === "retry"',
    ],
    1,
  ),

  // ── removing ──────────────────────────────────────────────────────────────────────────────────────────────────
  beforeIt(
    "purge.before",
    [`${FILE}/commit.ts`, "this.#purge.purge(batch.purge);", "batch.purge.length > 0"],
    2,
    "removal",
  ),
  afterIt(
    "purge.after",
    [`${FILE}/commit.ts`, "this.#purge.purge(batch.purge);", "batch.purge.length > 0"],
    2,
    "removal",
  ),
  afterIt("purge.midSweep", [`${FILE}/purge.ts`, "left -= this.#remove(next, left);"], 3, "removal"),

  // ── the worker ────────────────────────────────────────────────────────────────────────────────────────────────
  beforeIt(
    "worker.afterFetch",
    [WORKER, "if (!this.stopping.signal.aborted && !mayBeLost) return tasks;", "tasks.length > 0"],
    15,
  ),
  beforeIt("worker.beforeRun", [CALLER, "const ending = underTimeLimit(() =>"], 15),
  beforeIt("worker.afterRun", [CALLER, "const small = smallOutput(ending.value, concealment);"], 15),
  beforeIt(
    "worker.beforeBlob",
    [CALLER, "await this.patiently(() => this.options.store.records.put([{ scope: leased.entity, hash, text }]));"],
    1,
  ),
  afterIt(
    "worker.afterBlob",
    [CALLER, "await this.patiently(() => this.options.store.records.put([{ scope: leased.entity, hash, text }]));"],
    1,
  ),
  beforeIt("worker.beforeSettle", [WORKER, SETTLE], 15),
  afterIt("worker.afterSettle", [WORKER, SETTLE], 15),

  // ── starting ──────────────────────────────────────────────────────────────────────────────────────────────────
  beforeIt("lock.afterTake", [`${FILE}/lock.ts`, "const holder: Holder = {"], 1, "start"),
  beforeIt("lock.beforeName", [`${FILE}/lock.ts`, "renameSync(`${file}.owner.new`"], 1, "start"),
  beforeIt("open.midMigration", [`${FILE}/migrations.ts`, "db.run(SQL.createStore, newIncarnation);"], 1, "start"),
  beforeIt("start.afterOpen", [PROCESS, "startEngine(parts);"], 1, "start"),

  // ── stopping ──────────────────────────────────────────────────────────────────────────────────────────────────
  afterIt("stop.begun", [PROCESS, "server?.drain();"], 1, "stop"),
  beforeIt("stop.beforeHandBack", [WORKER, "await this.store.tasks.settle(settlements);"], 1, "stop"),
  afterIt("stop.afterHandBack", [WORKER, "await this.store.tasks.settle(settlements);"], 1, "stop"),
  afterIt("stop.afterWorker", [PROCESS, "await worker?.stop();"], 1, "stop"),
  afterIt("stop.afterServer", [PROCESS, "await server?.close();"], 1, "stop"),
  beforeIt("stop.beforeEngine", [PROCESS, "await engine?.stop();"], 1, "stop"),
  beforeIt("stop.beforeRelease", ["engine/tenures.ts", 'this.stepDown(owner, "stopped");'], 1, "stop"),
  beforeIt("stop.beforeClose", [PROCESS, "await store.close();"], 1, "stop"),
  beforeIt("checkpoint.before", [`${FILE}/writer.ts`, 'this.db.script("pragma wal_checkpoint(passive)");'], 1, "stop"),
  afterIt("checkpoint.after", [`${FILE}/writer.ts`, 'this.db.script("pragma wal_checkpoint(passive)");'], 1, "stop"),
  beforeIt("lock.beforeRelease", [`${FILE}/writer.ts`, "this.#lock.release();"], 1, "stop"),
];

export const ALL_NAMES: readonly string[] = [...FAILPOINTS.map(({ name }) => name), ...Object.keys(OUTSIDE)];

export function failpointOf(name: string): Failpoint | undefined {
  return FAILPOINTS.find((failpoint) => failpoint.name === name);
}
