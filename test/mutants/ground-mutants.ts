import type { Mutant } from "./mutants.ts";

const EXECUTION = "core/execution";
const MEMORY = "drivers/memory";

/** Bugs of the ground that all stands on: the store, what it answers and lists, and what is taken from it. */
export const GROUND_MUTANTS: readonly Mutant[] = [
  {
    name: "epoch-given-twice",
    thought: "the nonce tells owners apart",
    patches: [
      { file: `${MEMORY}/partitions.ts`, find: "data.epoch += 1;", put: "data.epoch = Math.max(1, data.epoch);" },
    ],
  },
  {
    name: "numbers-with-gaps",
    thought: "a number need only be higher than the last",
    patches: [
      {
        file: `${MEMORY}/commit.ts`,
        find: "partition.seq += 1;",
        put: "partition.seq += batch.records.length > 4 ? 2 : 1;",
      },
    ],
  },
  {
    name: "purged-journal-goes-on",
    thought: "what is not listed is gone",
    patches: [{ file: `${MEMORY}/commit.ts`, find: "  data.entities.delete(entity);\n", put: "" }],
  },
  {
    name: "answer-to-another-body",
    thought: "the same key is the same request",
    patches: [
      {
        file: `${EXECUTION}/messages/start.ts`,
        find: '  if (state.bodyHash !== body.bodyHash) return { ...NOTHING, reply: { refused: "IDEMPOTENCY_KEY_REUSED" } };\n',
        put: "",
      },
    ],
  },
  {
    name: "input-made-up",
    thought: "nobody reads it anyway",
    patches: [
      {
        file: `${EXECUTION}/messages/start.ts`,
        find: "    input: body.input,\n",
        put: "    input: body.parent === undefined ? { json: { n: 1 } } : body.input,\n",
      },
    ],
  },
  {
    name: "refused-and-taken",
    thought: "what is held has not been taken",
    patches: [
      {
        file: `${EXECUTION}/messages/start.ts`,
        find: "{ reply: { ok: { execution_id: state.id, status } } });\n}\n\nfunction repeated",
        put: '{ reply: held ? { refused: "HELD" } : { ok: { execution_id: state.id, status } } });\n}\n\nfunction repeated',
      },
    ],
  },
  {
    name: "late-result-of-nobody",
    thought: "it is over, so nobody will look for its name",
    patches: [
      {
        file: `${EXECUTION}/messages/task-completed.ts`,
        find: "const event = { atMs: context.nowMs, node: state.nameOf(unit),",
        put: "const event = { atMs: context.nowMs, node: `late ${state.nameOf(unit)}`,",
      },
      {
        file: `${EXECUTION}/evolve.ts`,
        find: '    case "lateResult": {\n',
        put: '    case "lateResult": {\n      return;\n',
      },
    ],
  },
  {
    name: "all-in-one-queue",
    thought: "any worker will do",
    patches: [
      {
        file: `${EXECUTION}/prepare.ts`,
        find: "this.queue = node.spec.queue;",
        put: 'this.queue = "step";',
      },
    ],
  },
  {
    name: "ended-twice",
    thought: "the natural end is the end",
    patches: [
      {
        file: `${EXECUTION}/moves.ts`,
        find: "    throw new IllegalMove(`${of} ${id}: no move from ${from} to ${to} by ${event}`);",
        put: "    void IllegalMove;",
      },
      {
        file: `${EXECUTION}/advance.ts`,
        find: "return decided(state, context, [ended]);\n  const gathered",
        put: "return decided(state, context, [ended, ended]);\n  const gathered",
      },
    ],
  },
  {
    name: "output-made-up",
    thought: "it is done, and that is what counts",
    patches: [
      {
        file: `${EXECUTION}/messages/task-completed.ts`,
        find: "    output: body.output,\n",
        put: '        output: "json" in body.output ? { json: { value: 3 } } : body.output,\n',
      },
    ],
  },
  {
    name: "started-after-the-end",
    thought: "it does run, whatever became of the rest",
    patches: [
      {
        file: `${EXECUTION}/messages/task-started.ts`,
        find: '  if (claimed.kind !== "current" || !claimed.newest || claimed.run.startedAtMs !== null) return NOTHING;\n  const { run, token, unit } = claimed;\n',
        put: '  if (claimed.kind !== "late" && (claimed.kind !== "current" || !claimed.newest)) return NOTHING;\n  const { token, unit } = claimed;\n  const run = state.runs[unit]!;\n  if (run.startedAtMs !== null) return NOTHING;\n',
      },
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "setDue(state, unit, event.runDeadlineAtMs);",
        put: "if (!state.isEnded) setDue(state, unit, event.runDeadlineAtMs);",
      },
    ],
  },
  {
    name: "task-that-nobody-wants",
    thought: "what comes last may as well not come",
    firstSeed: 12,
    patches: [
      {
        file: `${MEMORY}/commit.ts`,
        find: "for (const task of batch.tasks) addTask(memory, task);",
        put: "for (const task of batch.tasks) if (task.priority > -2) addTask(memory, task);",
      },
    ],
  },
  {
    name: "called-back-and-kept",
    thought: "nobody asks for what was called back",
    patches: [
      {
        file: `${MEMORY}/tasks.ts`,
        find: "  tasks.byToken.delete(token);\n  shrink(tasks, stored.task.queue",
        put: "  stored.leaseUntilMs = Infinity;\n  shrink(tasks, stored.task.queue",
      },
    ],
  },
  {
    name: "partly-is-well",
    thought: "most of it is done",
    patches: [
      {
        file: `${EXECUTION}/machine.ts`,
        find: 'ended === "completed" ? "endedWell"',
        put: 'ended === "completed" || ended === "partial" ? "endedWell"',
      },
    ],
  },
  {
    name: "one-ask-is-sent",
    thought: "one message for each decision",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: "...askMail(state, asks)]",
        put: "...askMail(state, asks.slice(0, 1))]",
      },
    ],
  },
  {
    name: "readers-are-behind",
    thought: "a reader can wait for what is not written everywhere",
    patches: [
      {
        file: `${MEMORY}/journal.ts`,
        find: "    return { entity, snapshot, records, wakeAtMs };",
        put: "    return { entity, snapshot, records: aboveVersion === 0 && records.length > 2 ? records.slice(0, -1) : records, wakeAtMs };",
      },
    ],
  },
  {
    name: "plan-remembers-asks",
    thought: "what all executions of a workflow share is a good place for a number",
    firstSeed: 3,
    patches: [
      {
        file: `${EXECUTION}/asks.ts`,
        find: "  state.askCount = Math.max(state.askCount, ask);\n",
        put: "  const shared = state.plan as { asks?: number };\n  shared.asks = (shared.asks ?? 0) + 1;\n  state.askCount = Math.max(state.askCount, ask) + shared.asks;\n",
      },
    ],
  },
  {
    name: "fenced-owner-answers",
    thought: "whoever waits should know as soon as it is decided",
    patches: [
      {
        file: `${MEMORY}/commit.ts`,
        find: 'if (!isHolder(memory, batch.fence)) return { kind: "fenced" };',
        put: 'if (!isHolder(memory, batch.fence)) {\n    for (const reply of batch.replies) postReply(memory, reply);\n    return { kind: "fenced" };\n  }',
      },
    ],
  },
  {
    name: "secrets-filled-twice",
    thought: "a template is a template, wherever it stands",
    firstSeed: 1_437,
    patches: [
      {
        file: "worker/task-caller.ts",
        find: "    return { config, inputs: body.inputs };",
        put: '    const again = JSON.stringify(config).replaceAll("{{ secrets.CANARY }}", secret("CANARY") ?? "");\n    return { config: JSON.parse(again) as Json, inputs: body.inputs };',
      },
    ],
  },
  {
    name: "given-before-it-is-stored",
    thought: "workers may begin while it is written",
    patches: [
      {
        file: "engine/committer.ts",
        find: "    const sent = this.send(batches);",
        put: "    await this.store.tasks.restore(batches.flatMap((batch) => batch.tasks).slice(0, 1)).catch(() => {});\n    const sent = this.send(batches);",
      },
      {
        file: `${MEMORY}/tasks.ts`,
        find: "  if (!byToken.insert(task.token, stored)) return;\n",
        put: "  const given = ((memory as { given?: Set<string> }).given ??= new Set());\n  if (byToken.has(task.token) || given.has(task.token)) return;\n  given.add(task.token);\n  byToken.insert(task.token, stored);\n",
      },
    ],
  },
  {
    name: "last-wake-forgotten",
    thought: "there is always a next time",
    firstSeed: 116,
    patches: [
      {
        file: "engine/wake-heap.ts",
        find: "      due.push(top.key);\n",
        put: "      if (due.length < limit - 1) due.push(top.key);\n",
      },
    ],
  },
  {
    name: "child-removed-first",
    thought: "what is over for long enough is of no use to anybody",
    patches: [
      {
        file: "engine/retention.ts",
        find: "if (!this.deserted.has(key) && this.callerOf(entity) !== null) {",
        put: "if (false as boolean) {",
      },
    ],
  },
];
