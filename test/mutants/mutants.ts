import { CONTROL_MUTANTS } from "./control-mutants.ts";
import { CACHE_MUTANTS } from "./cache-mutants.ts";
import { GATE_MUTANTS } from "./gate-mutants.ts";
import { GROUND_MUTANTS } from "./ground-mutants.ts";

/** A deliberate bug: texts in the sources that are replaced when they are loaded. */
export interface Mutant {
  readonly name: string;
  /** What a hurried developer would have thought. */
  readonly thought: string;
  /** Where to begin, for a bug that few worlds meet. Another generator makes other worlds of it: then seek anew. */
  readonly firstSeed?: number;
  readonly patches: readonly Patch[];
}

export interface Patch {
  /** Below src/. */
  readonly file: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly put: string;
}

const EXECUTION = "core/execution";

export const MUTANTS: readonly Mutant[] = [
  // ── the core ────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "accept-stale-attempt",
    thought: "a result is a result, whichever attempt it is of",
    patches: [
      {
        file: `${EXECUTION}/messages/dispatch.ts`,
        find: '  if (token.attempt < run.attempt) return { kind: "stale" };\n',
        put: "",
      },
      {
        file: `${EXECUTION}/messages/dispatch.ts`,
        find: 'if (token.attempt > run.attempt || run.nonces[token.delivery - 1] !== token.nonce) return { kind: "unknown" };',
        put: 'if (token.attempt > run.attempt) return { kind: "unknown" };',
      },
    ],
  },
  {
    name: "token-without-nonce",
    thought: "the numbers name the dispatch well enough",
    patches: [
      {
        file: `${EXECUTION}/messages/dispatch.ts`,
        find: "run.nonces[token.delivery - 1] !== token.nonce",
        put: "false",
      },
    ],
  },
  {
    name: "zombie-may-fail",
    thought: "a failure of an older delivery is a failure too",
    patches: [
      {
        file: `${EXECUTION}/messages/task-failed.ts`,
        find: "if (!claimed.newest)",
        put: "if (false)",
      },
    ],
  },
  {
    name: "one-attempt-too-many",
    thought: "max_attempts counts the retries",
    patches: [{ file: `${EXECUTION}/messages/task-failed.ts`, find: "attemptsLeft > 0", put: "attemptsLeft >= 0" }],
  },
  {
    name: "lost-worker-burns-attempt",
    thought: "a lost worker is a failed attempt",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: 'const redelivery = state.statusOf(unit) === "queued";',
        put: "const redelivery = false;",
      },
    ],
  },
  {
    name: "hand-back-is-a-loss",
    thought: "a hand-back is a lost delivery",
    patches: [{ file: `${EXECUTION}/evolve.ts`, find: "else run.lost++;", put: "run.lost++;" }],
  },
  {
    name: "poison-never-ends",
    thought: "give it to the next worker",
    patches: [
      {
        file: `${EXECUTION}/messages/delivery-lost.ts`,
        find: "export const MAX_LOST_DELIVERIES = 3;",
        put: "export const MAX_LOST_DELIVERIES = 1_000_000;",
      },
    ],
  },
  {
    name: "join-on-first-parent",
    thought: "one parent is done, off we go",
    patches: [
      {
        file: `${EXECUTION}/joins.ts`,
        find: '  none_failed: (edges) => {\n    if (edges.undecided > 0) return "wait";',
        put: '  none_failed: (edges) => {\n    if (edges.undecided > 0 && edges.ok === 0) return "wait";',
      },
    ],
  },
  {
    name: "failure-does-not-spread",
    thought: "skipped is skipped",
    patches: [
      {
        file: `${EXECUTION}/edges.ts`,
        find: 'skippedByFailure: { completed: "bad"',
        put: 'skippedByFailure: { completed: "void"',
      },
    ],
  },
  {
    name: "continue-is-fail-branch",
    thought: "failed is failed",
    patches: [
      {
        file: `${EXECUTION}/edges.ts`,
        find: 'onError === "continue" && !caught ? "failedContinue" : "failed"',
        put: '"failed"',
      },
    ],
  },
  {
    name: "fail-fast-forgotten",
    thought: "the joins will sort it out",
    patches: [
      {
        file: `${EXECUTION}/failure.ts`,
        find: 'if (spec.on_error !== "fail_fast" || caught) return [];',
        put: "return [];",
      },
    ],
  },
  {
    name: "caught-failure-stops-all",
    thought: "fail_fast means fail_fast",
    patches: [{ file: `${EXECUTION}/failure.ts`, find: " || caught) return [];", put: ") return [];" }],
  },
  {
    name: "last-failure-is-blamed",
    thought: "it is what ended the execution",
    patches: [
      {
        file: `${EXECUTION}/failure.ts`,
        find: "error: first ?? { ...error, node: id },",
        put: "error: { ...error, node: id },",
      },
    ],
  },
  {
    name: "handled-failure-still-counts",
    thought: "a failed node makes a failed execution",
    patches: [
      {
        file: `${EXECUTION}/end.ts`,
        find: 'if (EDGE_ON[graph.edgeOn[edge]!] === "failed"',
        put: "if (false",
      },
    ],
  },
  {
    name: "late-result-counts",
    thought: "it is done, so it is completed",
    patches: [
      {
        file: `${EXECUTION}/messages/dispatch.ts`,
        find: '  if (state.isEnded && (open || wasCutOff(state, unit))) return { kind: "late", unit, token };\n',
        put: "",
      },
    ],
  },
  {
    name: "close-forgets-revoke",
    thought: "the workers will notice",
    patches: [
      {
        file: `${EXECUTION}/machine.ts`,
        find: "withdrawn: (state) => (state.isEnded ? tokensOf(state) : []),",
        put: "withdrawn: () => [],",
      },
    ],
  },
  {
    name: "timer-fires-early",
    thought: "a second here or there",
    patches: [
      {
        file: `${EXECUTION}/deadlines.ts`,
        find: "state.timers.due(context.nowMs, context.maxEvents)",
        put: "state.timers.due(context.nowMs + 1_000, context.maxEvents)",
      },
    ],
  },
  {
    name: "dispatch-after-close",
    thought: "what was ready may still run",
    patches: [
      { file: `${EXECUTION}/evolve.ts`, find: "  state.ready.clear();\n", put: "" },
      {
        file: `${EXECUTION}/advance.ts`,
        find: '  if (state.isEnded) return answer(state, context) ?? NOTHING;\n  if (state.status !== "running" && state.status !== "paused") return NOTHING;\n',
        put: "",
      },
      { file: `${EXECUTION}/invariants.ts`, find: "if (state.isEnded && (", put: "if (false && (" },
      {
        file: `${EXECUTION}/machine.ts`,
        find: 'if (state.isEnded || (state.status !== "running" && state.status !== "paused")) return false;',
        put: "",
      },
    ],
  },
  {
    name: "key-changes-with-attempt",
    thought: "every attempt is a new call",
    patches: [
      {
        file: `${EXECUTION}/prepare.ts`,
        find: "task.idempotencyKey = `${state.id}/${instance}/${keyNumber(state.runs[unit], round ?? 0)}`;",
        put: "task.idempotencyKey = `${state.id}/${instance}/${attempt}`;",
      },
    ],
  },
  {
    name: "request-not-remembered",
    thought: "nobody cancels twice",
    patches: [
      {
        file: `${EXECUTION}/command.ts`,
        find: "const known = state.requests.get(request);",
        put: "const known = state.requests.get(`never ${request}`);",
      },
    ],
  },
  {
    name: "parallel-limit-ignored",
    thought: "the window is limit enough",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: "return limit === null || state.live.size + gathered.dispatched < limit;",
        put: "return limit === null || gathered.dispatched < limit;",
      },
      { file: `${EXECUTION}/invariants.ts`, find: "if (limit !== null && live.size > limit)", put: "if (false)" },
    ],
  },
  {
    name: "mail-after-commit",
    thought: "the parent will hear of it in a moment",
    patches: [
      {
        file: `${EXECUTION}/decision.ts`,
        find: 'if (!mail.some(({ body }) => body.kind === "childEnded")) mail.push(...endMail(state, event));',
        put: "",
      },
    ],
  },
  {
    name: "dead-letter-forgotten",
    thought: "it is in the history anyway",
    patches: [
      {
        file: `${EXECUTION}/decision.ts`,
        find: "if (letter !== undefined) deadLetters.push(letter);",
        put: "void letter;",
      },
    ],
  },
  {
    name: "snapshot-ahead",
    thought: "the snapshot is about as new as the journal",
    patches: [
      {
        file: `${EXECUTION}/snapshot.ts`,
        find: "    version: state.version,\n    generation",
        put: "    version: state.version + 1,\n    generation",
      },
    ],
  },
  {
    name: "snapshot-forgets-ready",
    thought: "the ready nodes follow from the rest",
    patches: [{ file: `${EXECUTION}/snapshot.ts`, find: "  restoreLines(state, body);\n", put: "" }],
  },
  {
    name: "condition-on-error-inverted",
    thought: "an error is as good as false",
    patches: [
      {
        file: `${EXECUTION}/condition.ts`,
        find: 'if (state.planOf(index).spec.condition_on_error === "skip")',
        put: 'if (state.planOf(index).spec.condition_on_error !== "none" as never)',
      },
    ],
  },
  {
    name: "output-of-the-wrong-parent",
    thought: "the first parent is the parent",
    patches: [
      {
        file: `${EXECUTION}/scope.ts`,
        find: "const index = state.plan.graph.indexOf.get(id);",
        put: "const index = state.plan.graph.indexOf.has(id) ? 0 : undefined;",
      },
    ],
  },

  // ── the shell ───────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "reload-without-reacquire",
    thought: "read what the store has, and go on",
    patches: [
      {
        file: "engine/tenures.ts",
        find: '      const outcome = await this.store.partitions.reacquire(owner.fence, this.settings.leaseMs);\n      if (outcome.kind === "acquired") this.take(outcome.tenure, false, prepare);',
        put: `      const fresh = await this.store.partitions.renew([owner.fence], this.settings.leaseMs);
      const held = fresh.partitions[0]!;
      if (held.kind === "held") {
        this.take({ ...owner.tenure, seq: held.seq, storeTimeMs: fresh.storeTimeMs, lastTimeMs: owner.time.nowMs() }, false, prepare);
      }`,
      },
      { file: "drivers/memory/commit.ts", find: " && partition.lastBatch === batch.id", put: "" },
    ],
  },
  {
    name: "fenced-is-fine",
    thought: "it was committed, more or less",
    patches: [
      {
        file: "engine/committer.ts",
        find: '        return this.tenures.stepDown(owner, "fenced");',
        put: "        owner.committed(builder);\n        return;",
      },
      {
        file: "engine/committer.ts",
        find: "        if (builder.isBehind || owner.underWay > 1) return this.tenures.reacquire(owner);\n",
        put: "",
      },
    ],
  },
  {
    name: "dispatch-before-commit",
    thought: "the workers can start a little earlier",
    patches: [
      {
        file: "engine/committer.ts",
        find: "    const sent = this.send(batches);",
        put: "    await this.store.tasks.restore(batches.flatMap((batch) => batch.tasks)).catch(() => {});\n    const sent = this.send(batches);",
      },
    ],
  },
  {
    name: "settled-as-they-are-answered",
    thought: "an answer is an answer",
    patches: [{ file: "engine/committer.ts", find: "    await before;\n    for", put: "    for" }],
  },
  {
    name: "sealed-with-one-number",
    thought: "the number rises when it is committed",
    patches: [{ file: "engine/owner.ts", find: "seq: this.seq + this.underWay }", put: "seq: this.seq }" }],
  },
  {
    name: "fenced-behind-another-goes-on",
    thought: "the one before it was at fault, and is dealt with",
    patches: [
      {
        file: "engine/committer.ts",
        find: "if (builder.isBehind || owner.underWay > 1) return this.tenures.reacquire(owner);",
        put: "if (builder.isBehind || owner.underWay > 1) return this.refuse(owner);",
      },
    ],
  },
  {
    name: "wake-only-later",
    thought: "the wake time is the last one we know",
    patches: [
      {
        file: "engine/wake-bound.ts",
        find: "  if (wakeMs < stored) return true;\n",
        put: "  if (wakeMs > stored) return true;\n  if (wakeMs < stored) return false;\n",
      },
    ],
  },
  {
    name: "no-wake-for-work",
    thought: "we will get to it in the next batch",
    patches: [{ file: "engine/wake-bound.ts", find: "  if (machine.hasWork(state)) return nowMs;\n", put: "" }],
  },
  {
    name: "load-without-advance",
    thought: "a loaded entity waits for its next message",
    patches: [
      {
        file: "engine/owner.ts",
        find: "    this.busy.add(entity.key);\n    this.window.count(entity);",
        put: "    this.window.count(entity);",
      },
      {
        file: "engine/owner.ts",
        find: "    if (this.purge(builder, entity)) return;\n    this.busy.add(key);\n",
        put: "    if (this.purge(builder, entity)) return;\n",
      },
    ],
  },
  {
    name: "consume-more-than-decided",
    thought: "the last message of a batch will come again",
    patches: [
      {
        file: "engine/owner.ts",
        find: "i < messages.length; i++) this.takeMessage(builder, messages[i]!);",
        put: "i < Math.max(1, messages.length - 1) && i < messages.length; i++) this.takeMessage(builder, messages[i]!);",
      },
    ],
  },
  {
    name: "rubbish-stops-the-partition",
    thought: "nobody writes rubbish into an inbox",
    patches: [
      {
        file: "engine/engine.ts",
        find: "    if (message === undefined) rubbish.push(text);",
        put: "    if (message === undefined) throw new Error(text);",
      },
    ],
  },
  {
    name: "deadline-before-result",
    thought: "late is late",
    patches: [
      {
        file: "engine/owner.ts",
        find: "given.deadlineMs = this.deadlines.upToMs(resident.key, this.batchMs);",
        put: "given.deadlineMs = this.batchMs;",
      },
    ],
  },
  {
    name: "accept-what-only-we-remember",
    thought: "a definition never changes, so the cache is always right",
    patches: [{ file: "engine/definition-cache.ts", find: "if (stored?.has(hash) === false) {", put: "if (false) {" }],
  },
  {
    name: "a-look-is-proof-enough",
    thought: "the store had that definition a moment ago, whatever became of the batch",
    firstSeed: 882350068,
    patches: [
      {
        file: "engine/definition-cache.ts",
        find: "    this.seen = new Set();\n",
        put: "",
      },
      {
        file: "engine/tenures.ts",
        find: "    fresh.careful = owner.careful;\n",
        put: "    fresh.careful = owner.careful;\n    fresh.definitions = owner.definitions;\n",
      },
    ],
  },
  {
    name: "evict-while-forming",
    thought: "it was in memory a moment ago",
    patches: [
      {
        file: "engine/owner.ts",
        find: "    if (entity.touchedBy > builder.number || this.isPinned(entity)) return;",
        put: "    if (entity.touchedBy > builder.number) return;",
      },
      {
        file: "engine/owner.ts",
        find: " || this.busy.has(key) || this.isPinned(entity)) continue;",
        put: " || this.busy.has(key)) continue;",
      },
      {
        file: "engine/owner.ts",
        find: "      if (!this.unknown.has(message.to)) throw new Error(`${message.to} was not brought in`);\n",
        put: "",
      },
      {
        file: "engine/owner.ts",
        find: "      if (!this.unknown.has(key) && !this.released.has(key)) throw new Error(`${key} was not brought in`);\n",
        put: "",
      },
    ],
  },
  {
    name: "read-again-in-flight",
    thought: "the inbox knows what was read",
    patches: [{ file: "engine/engine.ts", find: "after: owner.inFlight?.position ?? null,", put: "after: null," }],
  },
  {
    name: "time-goes-back",
    thought: "the store's clock is the time",
    patches: [
      {
        file: "engine/partition-time.ts",
        find: "this.baseMs = Math.max(lastTimeMs, storeTimeMs);",
        put: "this.baseMs = storeTimeMs;",
      },
    ],
  },
  {
    name: "volatile-tasks-not-restored",
    thought: "the queue still has them",
    patches: [
      {
        file: "engine/supply.ts",
        find: "if (this.store.capabilities.volatileTasks) await",
        put: "if (false as boolean) await",
      },
    ],
  },
  {
    name: "poison-stops-the-partition",
    thought: "try again until it works",
    patches: [
      { file: "engine/blame.ts", find: "if (tries < this.settings.maxTries) return false;", put: "return false;" },
    ],
  },
  {
    name: "rejected-for-ever",
    thought: "a store that rejects a commit takes it later",
    patches: [
      { file: "engine/blame.ts", find: "    if (rejections >= MAX_REJECTIONS) fresh.careful = true;\n", put: "" },
    ],
  },
  {
    name: "killer-is-never-named",
    thought: "an owner that dies is started again",
    patches: [
      {
        file: "engine/owner.ts",
        find: "this.careful = tenure.strikes >= 3 || tenure.suspect !== null;",
        put: "this.careful = false;",
      },
    ],
  },

  // ── the worker ──────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "secrets-by-text",
    thought: "replace the placeholder wherever it stands",
    patches: [
      {
        file: "worker/task-caller.ts",
        find: "    return { config, inputs: body.inputs };",
        put: '    const scanned = JSON.parse(JSON.stringify(config).replaceAll("{{ secrets.CANARY }}", () => secret("CANARY") ?? "")) as Json;\n    return { config: scanned, inputs: body.inputs };',
      },
    ],
  },
  {
    name: "no-heartbeat",
    thought: "tasks are short",
    patches: [{ file: "worker/worker.ts", find: "if (due.length > 0) await this.beatOnce(due, nowMs);", put: "" }],
  },

  // ── the store ───────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "no-fence",
    thought: "the lease keeps others out",
    patches: [
      {
        file: "drivers/memory/commit.ts",
        find: '  if (!isHolder(memory, batch.fence)) return { kind: "fenced" };\n',
        put: "",
      },
    ],
  },
  {
    name: "fence-without-nonce",
    thought: "the epoch is unique",
    patches: [{ file: "drivers/memory/partitions.ts", find: " && fence.nonce === nonce;", put: " && nonce !== null;" }],
  },
  {
    name: "cursor-instead-of-ids",
    thought: "everything up to the last one was read",
    patches: [
      {
        file: "drivers/memory/inbox.ts",
        find: "  const gone = position === null ? [] : idsOf(position);\n",
        put: "  const last = Math.max(0, ...(position === null ? [] : idsOf(position)));\n  const gone = partitionData(memory, partition).inbox.map(({ id }) => id).filter((id) => id <= last);\n",
      },
    ],
  },
  {
    name: "lapse-hands-out-again",
    thought: "put it back into the queue, somebody will take it",
    patches: [
      {
        file: "drivers/memory/tasks.ts",
        find: "      post(this.#memory, stored.task.partition, text);\n    }\n    return count;",
        put: "      void text;\n      addTask(this.#memory, stored.task);\n    }\n    return count;",
      },
    ],
  },
  {
    name: "revoke-leaves-queued",
    thought: "nobody has it, so nobody need be told",
    patches: [
      {
        file: "drivers/memory/tasks.ts",
        find: "  if (stored === undefined) return;\n  if (stored.leaseUntilMs !== null) {",
        put: "  if (stored === undefined || stored.leaseUntilMs === null) return;\n  if (stored.leaseUntilMs !== null) {",
      },
    ],
  },

  ...CONTROL_MUTANTS,
  ...GATE_MUTANTS,
  ...CACHE_MUTANTS,
  ...GROUND_MUTANTS,
];
