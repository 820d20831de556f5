import type { Mutant } from "./mutants.ts";

const GATE = "core/gate";
const EXECUTION = "core/execution";

/** Bugs of the limits: what was granted leaks, is granted twice, or comes too fast. */
export const GATE_MUTANTS: readonly Mutant[] = [
  {
    name: "renewal-forgets-who-holds",
    thought: "whoever holds something gives it back in time",
    patches: [
      { file: `${GATE}/machine.ts`, find: "state: bodyOf(state) }", put: "state: { ...bodyOf(state), held: [] } }" },
    ],
  },
  {
    name: "renewal-forgets-what-was-spent",
    thought: "a budget that is said anew begins anew",
    patches: [
      {
        file: `${GATE}/machine.ts`,
        find: "state: bodyOf(state) }",
        put: "state: { ...bodyOf(state), budget: { spent: {}, stalled: [] } } }",
      },
    ],
  },
  {
    name: "cut-with-the-renewal",
    thought: "what is in memory need not be in the journal",
    patches: [
      {
        file: "engine/keep-entity.ts",
        find: "builder.cut(key, below);",
        put: "builder.cut(key, machine.versionOf(state) + 1);",
      },
    ],
  },
  {
    name: "budget-forgotten-early",
    thought: "a budget that nobody spends at the moment is of no use to anybody",
    patches: [{ file: `${GATE}/idle.ts`, find: "return state.isForsaken ? 0 : null;", put: "return state.lastAtMs;" }],
  },
  {
    name: "gate-removed-while-in-use",
    thought: "where nobody waits nobody is",
    patches: [
      {
        file: `${GATE}/idle.ts`,
        find: "state.held.size > 0 || state.lapsed.size > 0 || state.line.length > 0",
        put: "state.line.length > 0",
      },
    ],
  },
  {
    name: "gate-in-memory-never-removed",
    thought: "what is in memory has said when it wants to be looked at",
    patches: [
      { file: "engine/wake-filling.ts", find: "if (!owner.hasFiled(entity))", put: "if (!owner.entities.has(entity))" },
    ],
  },
  {
    name: "wake-stored-behind-the-reader",
    thought: "what is stored will be read",
    firstSeed: 300_845,
    patches: [{ file: "engine/owner.ts", find: "    this.fileStored(builder);\n", put: "" }],
  },
  {
    name: "bucket-removed-before-it-is-full",
    thought: "what nobody uses is full",
    patches: [{ file: `${GATE}/idle.ts`, find: "state.closedUntilMs, fullAtMs(state))", put: "state.closedUntilMs)" }],
  },
  {
    name: "more-places-than-there-are",
    thought: "who is let through now has nothing to do with who was before",
    patches: [{ file: `${GATE}/state.ts`, find: "return rule.limit - state.held.size;", put: "return rule.limit;" }],
  },
  {
    name: "return-of-any-ask",
    thought: "an execution that gives something back is done",
    patches: [
      {
        file: `${GATE}/evolve.ts`,
        find: "    const reserved = letGo(state, key)?.reserved;\n",
        put: `    const reserved = letGo(state, key)?.reserved;
    for (const [any, held] of state.held) if (held.execution === execution) letGo(state, any);
`,
      },
    ],
  },
  {
    name: "bucket-fills-too-fast",
    thought: "the tokens come back by the half second",
    patches: [
      {
        file: `${GATE}/state.ts`,
        find: "(Math.max(0, nowMs - state.levelAtMs) / 1000) * rule.perSecond",
        put: "(Math.max(0, nowMs - state.levelAtMs) / 500) * rule.perSecond",
      },
    ],
  },
  {
    name: "bucket-without-a-brim",
    thought: "who has not called for long may call the more",
    patches: [
      {
        file: `${GATE}/state.ts`,
        find: "Math.min(rule.burst, mostAtOnce(rule) - unbegun)",
        put: "Math.min(rule.burst * 3, mostAtOnce(rule) * 3 - unbegun)",
      },
      { file: `${GATE}/machine.ts`, find: "level > ruling.burst", put: "level > ruling.burst * 3" },
    ],
  },
  {
    name: "lost-worker-keeps-its-place",
    thought: "the next delivery of the same attempt has been let through already",
    patches: [
      {
        file: `${EXECUTION}/units.ts`,
        find: "    state.live.delete(unit);\n    returnDelivery(state, unit);\n",
        put: "    state.live.delete(unit);\n",
      },
    ],
  },
  {
    name: "paused-at-the-gate",
    thought: "whoever waits at a gate starts nothing",
    patches: [{ file: `${EXECUTION}/evolve.ts`, find: 'if (to === "paused") leaveGates(state);', put: "" }],
  },
  {
    name: "unwanted-grant-is-kept",
    thought: "who gave up its ask has said so already",
    patches: [
      {
        file: `${EXECUTION}/messages/gate-answered.ts`,
        find: "if (asked === undefined) stale.push({ gate: body.gate, ask });",
        put: "if (asked === undefined) continue;",
      },
      {
        file: `${EXECUTION}/messages/gate-answered.ts`,
        find: 'else if (asked.status === "asked")',
        put: 'if (asked.status === "asked")',
      },
    ],
  },
  {
    name: "end-stays-at-the-gate",
    thought: "what has ended asks for nothing",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "  for (const unit of state.asks.keys()) returnAsks(state, unit, state.live.has(unit) ? AS_RESERVED : {});\n",
        put: "  state.asks.clear();\n",
      },
    ],
  },
  {
    name: "closed-gate-lets-through",
    thought: "tokens are tokens",
    patches: [
      { file: `${GATE}/grant.ts`, find: " || context.nowMs < state.closedUntilMs", put: "" },
      {
        file: `${GATE}/state.ts`,
        find: "return Math.max(state.lastAtMs, state.closedUntilMs);",
        put: "return state.lastAtMs;",
      },
      {
        file: `${GATE}/state.ts`,
        find: "return Math.max(enoughAtMs, state.closedUntilMs);",
        put: "return enoughAtMs;",
      },
    ],
  },
  {
    name: "result-closes-nothing",
    thought: "who has answered well can be called again",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: 'closeForMs: event.closeForMs, outcome: "good"',
        put: 'outcome: "good"',
      },
    ],
  },
  {
    name: "raise-takes-back",
    thought: "who raises a budget knows what it allows",
    patches: [{ file: `${GATE}/decide.ts`, find: "atLeast && (limits[unit]", put: "!atLeast && (limits[unit]" }],
  },
  {
    name: "no-other-model",
    thought: "who is refused has failed",
    patches: [
      {
        file: `${EXECUTION}/gates.ts`,
        find: "isRefused && last.fallback === undefined ? gate.fallback : undefined",
        put: "undefined",
      },
    ],
  },
  {
    name: "other-model-goes-out-under-its-own-name",
    thought: "what was let through is the task as it is",
    patches: [
      {
        file: `${EXECUTION}/prepare.ts`,
        find: "model !== undefined && isJsonObject(own)",
        put: "false && isJsonObject(own)",
      },
    ],
  },
  {
    name: "one-gate-is-enough",
    thought: "who was let through once may go",
    patches: [
      {
        file: `${EXECUTION}/gates.ts`,
        find: 'if (gate === undefined) return { kind: "passed" };',
        put: 'if (gate === undefined || passed > 0) return { kind: "passed" };',
      },
    ],
  },
  {
    name: "runs-before-it-is-let-in",
    thought: "what was started runs",
    patches: [
      {
        file: `${EXECUTION}/entry.ts`,
        find: 'if (state.entry !== null || state.status === "paused") return NOTHING;',
        put: "if (state.entry !== null) return undefined;",
      },
    ],
  },
  {
    name: "budget-forgets-who-is-under-way",
    thought: "what is not spent is there",
    patches: [
      {
        file: `${GATE}/budget.ts`,
        find: "if (!fits(rule, added(state.spent, reserved), estimate)) break;",
        put: "if (!fits(rule, state.spent, estimate)) break;",
      },
    ],
  },
  {
    name: "end-keeps-its-place",
    thought: "who has ended counts no more",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "  leaveEntry(state);\n}\n\n/** A unit has ended",
        put: "  state.entry = null;\n}\n\n/** A unit has ended",
      },
    ],
  },
  {
    name: "lost-worker-spends-nothing",
    thought: "only a result says what was used",
    patches: [
      {
        file: `${EXECUTION}/asks.ts`,
        find: "end: DispatchEnd = AS_RESERVED",
        put: "end: DispatchEnd = {}",
      },
    ],
  },
  {
    name: "end-settles-nothing",
    thought: "who is called off has not called",
    patches: [
      {
        file: `${EXECUTION}/evolve.ts`,
        find: "returnAsks(state, unit, state.live.has(unit) ? AS_RESERVED : {});",
        put: "returnAsks(state, unit);",
      },
    ],
  },
  {
    name: "rate-counts-grants",
    thought: "who was let through has called: the bucket fills for others",
    patches: [
      {
        file: `${GATE}/state.ts`,
        find: "mostAtOnce(rule) - unbegun)",
        put: "mostAtOnce(rule))",
      },
    ],
  },
  {
    name: "room-was-always-there",
    thought: "once somebody has begun, the bucket is as full as it would have been",
    patches: [
      {
        file: `${GATE}/evolve.ts`,
        find: "  state.level = levelAt(state, atMs);\n  state.levelAtMs = atMs;\n}",
        put: "  if (atMs < 0) state.levelAtMs = atMs;\n}",
      },
    ],
  },
  {
    name: "tokens-come-back-whole",
    thought: "what was taken out is put back when the call is over",
    patches: [
      {
        file: `${GATE}/evolve.ts`,
        find: "levelAt(state, atMs) + (reserved.tokens ?? 0) - (cost.tokens ?? 0));",
        put: "levelAt(state, atMs) + (reserved.tokens ?? 0));",
      },
    ],
  },
];
