import type { Mutant, Patch } from "./mutants.ts";

const EXECUTION = "core/execution";

/** Our own code does not look at itself: what is found then is found from outside. */
const UNWATCHED: Patch = {
  file: `${EXECUTION}/invariants.ts`,
  find: "export function checkWhole(state: ExecutionState): void {\n",
  put: "export function checkWhole(state: ExecutionState): void {\n  if (state.version >= 0) return;\n",
};

/** Deliberate bugs in generations, waits, maps, repeats, routes and children. */
export const CONTROL_MUTANTS: readonly Mutant[] = [
  // ── generations ─────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "two-generations",
    thought: "whoever asks for a retry gets one",
    patches: [
      {
        file: `${EXECUTION}/messages/retry.ts`,
        find: '  if (!state.isEnded) return { refused: "EXECUTION_OPEN" };\n',
        put: "",
      },
      {
        file: `${EXECUTION}/messages/retry.ts`,
        find: 'state.end!.status === "completed"',
        put: 'state.end?.status === "completed"',
      },
      {
        file: `${EXECUTION}/moves.ts`,
        find: '  ["completed", "generationOpened", "running", "a part runs again"],\n',
        put: '  ["completed", "generationOpened", "running", "a part runs again"],\n  ["running", "generationOpened", "running", ""],\n',
      },
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "      run.cancelReason = state.end!.reason;",
        put: '      run.cancelReason = state.end?.reason ?? "cancel";',
      },
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "    else closed.cancelReason = state.end!.reason;",
        put: '    else closed.cancelReason = state.end?.reason ?? "cancel";',
      },
    ],
  },
  {
    name: "node-takes-its-descendants",
    thought: "what comes after it has to run again too",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: 'return scope === "node" ? new Set(first) : descendants(state, first);',
        put: "return descendants(state, first);",
      },
    ],
  },
  {
    name: "cancelled-stays-cancelled",
    thought: "only what failed has failed",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: '(scope === "failed" && state.statusOf(node) === "cancelled")',
        put: "false",
      },
    ],
  },
  {
    name: "replay-reopens-all-that-failed",
    thought: "if we are at it anyway",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "hasFailedParts(state, node) : named.has(node);",
        put: "hasFailedParts(state, node) : named.has(node) || isHit;",
      },
    ],
  },
  {
    name: "replayed-twice",
    thought: "a letter is a letter",
    patches: [
      {
        file: `${EXECUTION}/messages/retry.ts`,
        find: '    if (status === "replayed") return { refused: "ALREADY_REPLAYED" };\n',
        put: "",
      },
    ],
  },
  {
    name: "replay-leaves-no-mark",
    thought: "the new generation shows it well enough",
    patches: [{ file: `${EXECUTION}/letters.ts`, find: 'status: "replayed" }) };', put: 'status: "open" }) };' }],
  },
  {
    name: "letter-open-until-its-node-is-well",
    thought: "it has failed again, so the letter is as true as it was",
    patches: [
      {
        file: `${EXECUTION}/letters.ts`,
        find: 'run.generation > Number(letter.split(":")[1]);',
        put: '(run.generation > Number(letter.split(":")[1]) && state.statusOf(unit!) === "completed");',
      },
    ],
  },
  {
    name: "timeout-not-restarted",
    thought: "the workflow has had its time",
    patches: [
      {
        file: `${EXECUTION}/messages/retry.ts`,
        find: "deadlineAtMs: deadlineOf(state, context),",
        put: "deadlineAtMs: state.endedAtMs === null ? null : state.endedAtMs + 600_000,",
      },
    ],
  },
  {
    name: "attempts-go-on",
    thought: "it has had three attempts already",
    patches: [
      {
        file: `${EXECUTION}/units.ts`,
        find: "  run.child = how.sameChild ? old.child : null;\n",
        put: "  run.child = how.sameChild ? old.child : null;\n  run.attempt = old.attempt;\n",
      },
    ],
  },
  {
    name: "late-result-ignored",
    thought: "that generation is over",
    patches: [
      {
        file: `${EXECUTION}/units.ts`,
        find: "run.late = how.useLate && !how.edited ? old.late : null;",
        put: "run.late = null;",
      },
    ],
  },
  {
    name: "late-result-for-other-work",
    thought: "the same node, the same result",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: "late.inputHash === preparation.prepared.inputHash",
        put: "late.inputHash !== null",
      },
    ],
  },
  {
    name: "key-with-generation",
    thought: "another generation is another call",
    patches: [
      {
        file: `${EXECUTION}/prepare.ts`,
        find: "task.idempotencyKey = `${state.id}/${instance}/${keyNumber(state.runs[unit], round ?? 0)}`;",
        put: "task.idempotencyKey = `${state.id}/${instance}/${state.generation}`;",
      },
    ],
  },
  {
    name: "key-never-rises",
    thought: "one node, one key",
    patches: [
      {
        file: `${EXECUTION}/units.ts`,
        find: "run.rerun = old.rerun + (isUnsure && old.round <= 1 ? 0 : 1);",
        put: "run.rerun = old.rerun;",
      },
    ],
  },
  {
    name: "trigger-runs-what-completed",
    thought: "somebody wants it to run",
    patches: [
      {
        file: `${EXECUTION}/messages/trigger.ts`,
        find: '    case "failed":\n    case "partial": {',
        put: '    case "completed":\n    case "failed":\n    case "partial": {',
      },
      {
        file: `${EXECUTION}/messages/trigger.ts`,
        find: '    case "completed":\n    case "cancelled":\n      return',
        put: '    case "cancelled":\n      return',
      },
    ],
  },

  {
    name: "hold-ignored",
    thought: "it was accepted, so it runs",
    patches: [
      { file: `${EXECUTION}/messages/start.ts`, find: "const held = body.hold === true;", put: "const held = false;" },
    ],
  },
  {
    name: "other-input-ignored",
    thought: "an execution has one input",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "  if (event.input !== undefined) state.input = event.input;\n",
        put: "",
      },
    ],
  },
  {
    name: "other-config-ignored",
    thought: "a definition never changes",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "  if (edited !== undefined) state.edit(edited, event.config!);\n",
        put: "",
      },
    ],
  },
  {
    name: "retry-leaves-tasks-out",
    thought: "the end has seen to that",
    firstSeed: 3000,
    patches: [
      {
        file: `${EXECUTION}/decision.ts`,
        find: "      for (const unit of state.live) revoke.push(newestToken(state, state.nameOf(unit)));\n",
        put: "",
      },
    ],
  },

  // ── pauses ──────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "pause-lets-retries-through",
    thought: "what has begun goes on",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: '    if (line !== ENGINE_LINE && state.status === "paused") break;\n',
        put: "",
      },
      {
        file: `${EXECUTION}/advance.ts`,
        find: "      if (!hasParallelRoom(state, gathered)) break;\n",
        put: '      if (!hasParallelRoom(state, gathered)) break;\n      if (state.status === "paused" && (state.runs[unit]?.attempt ?? 0) === 0) continue;\n',
      },
    ],
  },
  {
    name: "pause-only-for-tasks",
    thought: "the engine's own nodes cost nothing",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: 'if (state.status !== "paused" || isClosing(state, unit)) runUnit(state, unit, context, gathered);',
        put: "runUnit(state, unit, context, gathered);",
      },
    ],
  },
  {
    name: "resume-forgets-ready",
    thought: "what is ready will become ready again",
    patches: [
      UNWATCHED,
      {
        file: `${EXECUTION}/evolve.ts`,
        find: '  const to = event.kind === "paused" ? "paused" : "running";\n',
        put: '  const to = event.kind === "paused" ? "paused" : "running";\n  if (to === "running") state.ready.clear();\n',
      },
    ],
  },

  // ── routes, joins, ends ─────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "route-skip-forgotten",
    thought: "the joins will sort it out",
    patches: [
      {
        file: `${EXECUTION}/spread.ts`,
        find: "if (routed.length === 0 || !chosen) return;",
        put: "if (routed.length >= 0 || !chosen) return;",
      },
    ],
  },
  {
    name: "route-too-late-for-who-is-in-line",
    thought: "its join has said run",
    patches: [
      {
        file: `${EXECUTION}/spread.ts`,
        find: "if (chosen.includes(child) || hasBegun || state.skipReasons.has(child)) continue;",
        put: "if (chosen.includes(child) || hasBegun || state.joined[child] === 1) continue;",
      },
    ],
  },
  {
    name: "exclusive-is-inclusive",
    thought: "all that fit",
    patches: [
      {
        file: `${EXECUTION}/nodes/router.ts`,
        find: '(when === null || spec.config["mode"] === "exclusive")',
        put: "when === null",
      },
    ],
  },
  {
    name: "join-never-gives-up",
    thought: "the parents will end some day",
    patches: [
      {
        file: `${EXECUTION}/spread.ts`,
        find: "  if (isOpen && !hasDue) setDue(state, child, atMs + seconds * 1000);\n",
        put: "",
      },
    ],
  },
  {
    name: "join-gives-up-though-it-spoke",
    thought: "the time was set, and the time is over",
    patches: [
      UNWATCHED,
      {
        file: `${EXECUTION}/spread.ts`,
        find: "  if (!isOpen && hasDue) setDue(state, child, null);\n",
        put: "",
      },
    ],
  },
  {
    name: "end-is-always-well",
    thought: "an end is an end",
    patches: [
      {
        file: `${EXECUTION}/nodes/end.ts`,
        find: 'status: status === "FAILED" ? "failed" : "completed",',
        put: 'status: "completed",',
      },
    ],
  },
  {
    name: "end-forgets-its-output",
    thought: "the outputs are the output",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: "    ...(!failed && given !== undefined && { output: given.value }),\n",
        put: "",
      },
    ],
  },

  {
    name: "lowest-priority-first",
    thought: "one is before two",
    patches: [
      {
        file: `${EXECUTION}/plan.ts`,
        find: "b.priority - a.priority || a.number - b.number",
        put: "a.priority - b.priority || a.number - b.number",
      },
    ],
  },
  {
    name: "queue-without-priority",
    thought: "first come, first served",
    patches: [
      {
        file: "drivers/memory/tasks.ts",
        find: "return a.priority !== b.priority ? a.priority > b.priority : a.order < b.order;",
        put: "return a.order < b.order;",
      },
    ],
  },

  // ── repeats ─────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "round-judged-without-its-output",
    thought: "its output is there once it has completed",
    patches: [
      {
        file: `${EXECUTION}/scope.ts`,
        find: "return { ...rest, node: (other) => (other === id ? own : rest.node(other)) };",
        put: "return own === undefined ? rest : rest;",
      },
    ],
  },
  {
    name: "round-not-in-the-token",
    thought: "a node has one task at a time",
    patches: [
      {
        file: `${EXECUTION}/instance.ts`,
        find: "  if (state.planOf(unit).until === null) return name;\n",
        put: "  if (state.planOf(unit).until === null || round !== null) return name;\n",
      },
      {
        file: `${EXECUTION}/messages/dispatch.ts`,
        find: '  if (token.generation < run.generation || round < run.round) return { kind: "stale" };\n  if (round > run.round) return { kind: "unknown" };\n',
        put: '  if (token.generation < run.generation) return { kind: "stale" };\n  void round;\n',
      },
    ],
  },
  {
    name: "one-round-too-many",
    thought: "max counts the repetitions",
    patches: [{ file: `${EXECUTION}/repeat.ts`, find: "if (round >= max) {", put: "if (round > max) {" }],
  },
  {
    name: "rounds-without-a-break",
    thought: "the sooner the better",
    patches: [
      {
        file: `${EXECUTION}/repeat.ts`,
        find: "nextAtMs: context.nowMs + everySeconds * 1000",
        put: "nextAtMs: context.nowMs + everySeconds",
      },
    ],
  },

  // ── waits ───────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "signal-taken-twice",
    thought: "it was sent to all who wait",
    patches: [{ file: `${EXECUTION}/evolve.ts`, find: "  kept.shift();\n", put: "" }],
  },
  {
    name: "early-signal-lost",
    thought: "nobody is waiting for it",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "      if (kept === undefined) state.signals.set(event.name, [event.data]);\n",
        put: "      if (kept === undefined && !state.signalWaits.has(event.name)) return;\n      if (kept === undefined) state.signals.set(event.name, [event.data]);\n",
      },
    ],
  },
  {
    name: "newest-signal-first",
    thought: "the last word counts",
    patches: [
      {
        file: `${EXECUTION}/nodes/wait.ts`,
        find: "state.signals.get(signal)?.[0]",
        put: "state.signals.get(signal)?.at(-1)",
      },
    ],
  },
  {
    name: "signals-end-with-the-generation",
    thought: "a fresh start",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "  state.signalWaits.clear();\n",
        put: "  state.signalWaits.clear();\n  state.signals.clear();\n",
      },
    ],
  },
  {
    name: "date-by-partition-time",
    thought: "time is time",
    patches: [
      {
        file: `${EXECUTION}/deadlines.ts`,
        find: "state.calendar.due(context.calendarMs, context.maxEvents)",
        put: "state.calendar.due(context.nowMs, context.maxEvents)",
      },
    ],
  },
  {
    name: "review-of-an-earlier-generation",
    thought: "the node is the same",
    patches: [
      {
        file: `${EXECUTION}/messages/decide-review.ts`,
        find: "generation !== state.generation || ",
        put: "",
      },
    ],
  },
  {
    name: "one-person-with-four-eyes",
    thought: "two decisions are two decisions",
    patches: [
      {
        file: `${EXECUTION}/messages/decide-review.ts`,
        find: "if (first?.by === by) return",
        put: "if (first?.by === null) return",
      },
    ],
  },
  {
    name: "corrections-are-not-locked",
    thought: "the decision says it all",
    patches: [
      {
        file: `${EXECUTION}/review-data.ts`,
        find: "Object.keys(data).filter(isOther)",
        put: "Object.keys(data).filter((name) => isOther(name) && name.length > 99)",
      },
    ],
  },
  {
    name: "overdue-review-always-fails",
    thought: "nobody has decided",
    patches: [{ file: `${EXECUTION}/deadlines.ts`, find: 'if (onDue === "fail") {', put: "if (onDue !== null) {" }],
  },
  {
    name: "review-stays-on-the-list",
    thought: "whoever clicks on it will see",
    patches: [
      {
        file: `${EXECUTION}/decision.ts`,
        find: "      for (const unit of state.reviews) listings.push(...closedReviews(state, state.nameOf(unit)));\n",
        put: "",
      },
    ],
  },

  {
    name: "form-ignored",
    thought: "people know what they do",
    patches: [
      {
        file: `${EXECUTION}/messages/decide-review.ts`,
        find: "if (refusal !== undefined) return refusal;",
        put: "void refusal;",
      },
    ],
  },
  {
    name: "wait-is-over-at-once",
    thought: "the date has been set",
    patches: [
      {
        file: `${EXECUTION}/nodes/wait.ts`,
        find: "if (calendarAtMs <= context.calendarMs) return",
        put: "if (calendarAtMs <= context.calendarMs + 60_000) return",
      },
    ],
  },

  // ── maps ────────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "map-results-out-of-order",
    thought: "all of them are there",
    patches: [
      {
        file: `${EXECUTION}/nodes/map.ts`,
        find: "partResults(part, place, state, map)) : results;",
        put: "partResults(part, place, state, map)) : results.toReversed();",
      },
    ],
  },
  {
    name: "tolerates-one-less",
    thought: "at most means less than",
    patches: [
      {
        file: `${EXECUTION}/maps.ts`,
        find: "return map.failures > map.tolerated || ",
        put: "return map.failures >= Math.max(1, map.tolerated) || ",
      },
      {
        file: `${EXECUTION}/nodes/map.ts`,
        find: "if (map.failures > map.tolerated)",
        put: "if (map.failures >= Math.max(1, map.tolerated))",
      },
    ],
  },
  {
    name: "tolerates-one-more",
    thought: "one more or less",
    patches: [
      {
        file: `${EXECUTION}/maps.ts`,
        find: "return map.failures > map.tolerated || ",
        put: "return map.failures > map.tolerated + 1 || ",
      },
      {
        file: `${EXECUTION}/nodes/map.ts`,
        find: "if (map.failures > map.tolerated)",
        put: "if (map.failures > map.tolerated + 1)",
      },
    ],
  },
  {
    name: "concurrency-ignored",
    thought: "the window is limit enough",
    patches: [
      UNWATCHED,
      { file: `${EXECUTION}/maps.ts`, find: "while (map.open < map.concurrency && ", put: "while (" },
    ],
  },
  {
    name: "item-fails-fast",
    thought: "fail_fast means fail_fast",
    patches: [{ file: `${EXECUTION}/failure.ts`, find: "  if (state.isItem(index)) return [];\n", put: "" }],
  },
  {
    name: "failed-map-lets-its-items-run",
    thought: "they will end by themselves",
    patches: [
      {
        file: `${EXECUTION}/decision.ts`,
        find: '    if (event.kind === "nodeFailed") revoke.push(...itemTokens(state, event.node));\n',
        put: "",
      },
    ],
  },
  {
    name: "failed-map-keeps-its-children",
    thought: "they will end by themselves",
    patches: [
      {
        file: `${EXECUTION}/maps.ts`,
        find: "      state.orphans.add(unit);\n",
        put: "      endWait(state, unit);\n",
      },
    ],
  },
  {
    name: "map-begins-all-over",
    thought: "a retry is a retry",
    patches: [
      {
        file: `${EXECUTION}/nodes/map.ts`,
        find: 'const kept = old !== undefined && old.again !== "all"',
        put: 'const kept = old !== undefined && old.again === ("never" as never)',
      },
    ],
  },
  {
    name: "items-counted-from-one",
    thought: "people count from one",
    patches: [
      {
        file: `${EXECUTION}/scope.ts`,
        find: "    const items = jsonOf(map.items, context) as readonly Json[] | undefined;\n",
        put: "    const items = [null, ...((jsonOf(map.items, context) ?? []) as readonly Json[])];\n",
      },
    ],
  },

  {
    name: "items-see-what-comes-later",
    thought: "the newest output is the best",
    patches: [
      {
        file: `${EXECUTION}/scope.ts`,
        find: "return state.runs[reader]?.seen ?? map?.seen ?? state.version;",
        put: "return state.runs[reader]?.seen ?? state.version;",
      },
    ],
  },
  {
    name: "edited-items-keep-their-keys",
    thought: "it is the map that was edited",
    patches: [
      {
        file: `${EXECUTION}/reopen.ts`,
        find: "    if (map !== undefined && node === edited) map.edited = true;\n",
        put: "",
      },
    ],
  },

  // ── children ────────────────────────────────────────────────────────────────────────────────────────────────────
  {
    name: "end-keeps-its-children",
    thought: "they will end by themselves",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "  for (const unit of state.children) state.orphans.add(unit);\n",
        put: "",
      },
    ],
  },
  {
    name: "cancel-before-start-lost",
    thought: "there is nothing to cancel",
    patches: [
      {
        file: `${EXECUTION}/machine.ts`,
        find: 'isStart: (body) => body.kind === "start" || (body.kind === "cancel" && body.start !== undefined),',
        put: 'isStart: (body) => body.kind === "start",',
      },
    ],
  },
  {
    name: "answer-to-an-old-call",
    thought: "it is our child",
    patches: [
      {
        file: `${EXECUTION}/messages/child-ended.ts`,
        find: " && (body.call ?? 1) === child.call;",
        put: ";",
      },
    ],
  },
  {
    name: "child-allowed-all",
    thought: "there is only one",
    patches: [
      {
        file: `${EXECUTION}/allowance.ts`,
        find: "return Math.floor(left(state) / sharers);",
        put: "return left(state);",
      },
    ],
  },
  {
    name: "child-never-answers-again",
    thought: "the parent was told",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "      state.owesAnswer = state.isEnded;\n",
        put: "",
      },
    ],
  },
  {
    name: "overtaken-call-taken-up",
    thought: "the parent calls",
    patches: [
      {
        file: `${EXECUTION}/messages/start.ts`,
        find: "  if (isCalledOff(state, call)) return NOTHING;\n",
        put: "",
      },
    ],
  },
  {
    name: "retry-calls-another-child",
    thought: "a fresh start",
    patches: [
      {
        file: `${EXECUTION}/units.ts`,
        find: "  run.child = how.sameChild ? old.child : null;\n",
        put: "",
      },
    ],
  },
  {
    name: "partial-child-is-fine",
    thought: "most of it worked",
    patches: [
      {
        file: `${EXECUTION}/messages/child-ended.ts`,
        find: 'if (body.status === "completed" && tooLargeBytes === undefined) {',
        put: 'if (body.status === "completed" || body.status === "partial") {',
      },
    ],
  },
  {
    name: "start-after-the-commit",
    thought: "the child can wait a moment",
    patches: [
      {
        file: `${EXECUTION}/advance.ts`,
        find: "      if (result.mail !== undefined) (gathered.mail ??= []).push(...result.mail);\n",
        put: "",
      },
    ],
  },
  {
    name: "escalation-is-the-due-date",
    thought: "the time for others to be asked was the time of the review",
    patches: [
      {
        file: "core/execution/review-listing.ts",
        find: "const calendarAtMs = escalate?.dueAtMs ?? wait.calendarAtMs;",
        put: "const { calendarAtMs } = wait;",
      },
    ],
  },
];
