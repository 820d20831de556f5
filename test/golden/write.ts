/**
 * Writes the golden journals that are missing: `npx node test/golden/write.ts`. Never writes over one that is there.
 * See README.md in this folder.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { failure, node, RETRYABLE, startBody, Trial, workflow } from "../../src/core/execution/test-execution.ts";
import { viewExecution } from "../../src/core/execution/test-summary.ts";
import type { Workflow, WorkflowNode } from "../../src/definition/workflow.ts";
import type { Json } from "../../src/json/json.ts";
import { diamond } from "../support/workflows.ts";
import type { Golden } from "./golden.ts";

const RELEASE = "0.1";
const branch: Partial<WorkflowNode> = { on_error: "fail_branch" };
const engine = (handler: string, config: Record<string, Json> = {}): Partial<WorkflowNode> => ({
  handler,
  config,
  timeout_seconds: null,
});

/** What a model proposes to whoever reviews it. */
const PROPOSED = {
  due_seconds: 60,
  on_due: "fail",
  values: { total: 3, who: "ann" },
  confidence: { total: 0.4 },
  source: { total: "line 7" },
};

interface Case {
  readonly about: string;
  readonly workflow: Workflow;
  readonly run: (trial: Trial) => void;
  /** After how many events a snapshot is kept. */
  readonly snapshotAt: number;
}

const cases: Readonly<Record<string, Case>> = {
  diamond: {
    about: "Four nodes that pass data on; one start is reported.",
    workflow: diamond(),
    snapshotAt: 6,
    run: (trial) => {
      trial.begin({ json: { who: "ann" } }).at(1000).completes("a", { value: 1 }).at(2000);
      trial.starts("b", 500);
      trial.at(3000).completes("c", { value: 3 }).completes("b", { value: 2 }).at(4000).completes("d", { value: [2, 3] });
    },
  },
  retry: {
    about: "Two failures, a zombie's result, a lost worker within the third attempt, a completion.",
    workflow: workflow([node("a"), node("b", ["a"])]),
    snapshotAt: 9,
    run: (trial) => {
      const old = trial.begin().token("a");
      trial.fails("a", RETRYABLE).at(1000).settle();
      trial.send({ kind: "taskCompleted", token: old, output: { json: "zombie" }, runningMs: 1 });
      trial.starts("a");
      trial.at(2000).fails("a", { ...RETRYABLE, details: { status: 503 } }).at(9000).settle().loses("a");
      trial.at(9500).completes("a", { ok: true }).completes("b", "done");
    },
  },
  "fail-branch": {
    about: "A failed branch, skips of both kinds, a template that cannot be resolved, a failure that was handled.",
    workflow: workflow(
      [
        node("f", [], branch),
        node("f1", ["f"]),
        node("f2", ["f1", "o"]),
        node("caught"),
        node("catch", [{ id: "caught", on: "failed" }]),
        node("o"),
        node("no", ["o"], { condition: "o.n > 5" }),
        node("no1", ["no"]),
        node("t", ["o"], { config: { deep: ["{{ o.nothing }}"] }, ...branch }),
        node("last", ["f2", "no1", "o"], { join: "all_done" }),
      ],
      { on_error: "fail_branch" },
    ),
    snapshotAt: 14,
    run: (trial) => {
      trial.begin().fails("f").fails("caught").completes("o", { n: 1 }).completes("catch", "mended").completes("last", 1);
    },
  },
  "fail-fast": {
    about: "One node fails for good: what depends on it reads as skipped, the rest as cancelled.",
    workflow: workflow([node("f"), node("f1", ["f"]), node("f2", ["f1"]), node("o"), node("o1", ["o"]), node("w")]),
    snapshotAt: 7,
    run: (trial) => {
      trial.begin().fails("w", RETRYABLE);
      trial.starts("o");
      trial.at(500).fails("f", { code: "HTTP_404", message: "gone" });
    },
  },
  timeout: {
    about: "A queue timeout under fail_branch, a run timeout that is retried, then the workflow's own timeout.",
    workflow: workflow(
      [node("q", [], { queue_timeout_seconds: 5, ...branch }), node("r", [], { timeout_seconds: 2 }), node("s", ["r"])],
      { timeout_seconds: 60 },
    ),
    snapshotAt: 6,
    run: (trial) => {
      trial.begin();
      trial.starts("r");
      trial.at(5000).settle().at(12_000).settle().at(13_000).settle().at(60_000).settle();
    },
  },
  cancel: {
    about: "A cancel while one node runs and one waits; its late result; the same cancel again, and another one.",
    workflow: workflow([node("a"), node("b"), node("c", ["a", "b"])]),
    snapshotAt: 8,
    run: (trial) => {
      const token = trial.begin().token("a");
      trial.starts("a");
      trial.fails("b", RETRYABLE);
      trial.at(300).send({ kind: "cancel", request: "r1" }, "ann");
      trial.at(400).send({ kind: "taskCompleted", token, output: { json: { late: true } }, runningMs: 399 });
      trial.send({ kind: "taskFailed", token, error: failure(), runningMs: 399 });
      trial.send({ kind: "cancel", request: "r1" }, "ann");
      trial.send({ kind: "cancel", request: "r2" }, "bob");
    },
  },
  poison: {
    about: "A task that is handed back once and loses three workers.",
    workflow: workflow([node("a", [], branch), node("b", ["a"]), node("c")]),
    snapshotAt: 7,
    run: (trial) => {
      trial.begin().send({ kind: "taskHandedBack", token: trial.token("a") });
      trial.nonce = "second";
      trial.settle().at(15_000).loses("a").at(30_000).loses("a").at(45_000).loses("a").completes("c");
    },
  },
  values: {
    about: "Input and output nodes, an output that is a blob, a config that is one, an output that left memory.",
    workflow: workflow([
      node("i", [], engine("input", { size: 1 })),
      node("large", ["i"]),
      node("middle", ["i"]),
      node("reads", ["large", "middle"], { config: { all: "{{ large }}", some: "{{ middle.text }}" } }),
      node("config", ["i"], { config: { a: "{{ i.text }}", b: "{{ i.text }}" } }),
      node("o", ["reads", "config"], engine("output")),
    ]),
    snapshotAt: 9,
    run: (trial) => {
      trial.begin({ json: { text: "x".repeat(40_000) } });
      const blob = { hash: "5f".repeat(32), bytes: 70_000 };
      trial.send({ kind: "taskCompleted", token: trial.token("large"), output: { blob }, runningMs: 9 });
      const json = { text: "y".repeat(1500) };
      trial.send({ kind: "taskCompleted", token: trial.token("middle"), output: { json, bytes: 1512 }, runningMs: 9 });
      trial.settle().completes("reads", 1).completes("config", { n: 2 });
    },
  },
  joins: {
    about: "one_success, quorum and all_done joins; the early one is delivered again with what it saw at first.",
    workflow: workflow([
      node("p1"),
      node("p2", [], branch),
      node("p3"),
      node("one", ["p1", "p2", "p3"], {
        join: "one_success",
        inputs: true,
        config: { p3: "{{ p3.n | default(0) }}" },
      }),
      node("two", ["p1", "p2", "p3"], { join: "quorum:2" }),
      node("all", ["p1", "p2", { id: "p3", on: "done" }], { join: "all_success" }),
      node("any", ["p1", "p2", "p3"], { join: "all_done" }),
    ]),
    snapshotAt: 9,
    run: (trial) => {
      trial.begin().completes("p1", { n: 1 }).fails("p2").completes("p3", { n: 3 }).loses("one");
      trial.completes("one").completes("two").completes("any");
    },
  },
  quarantine: {
    about: "The shell's own events: quarantined, parked, released, and on it goes.",
    workflow: workflow([node("a"), node("b", ["a"])]),
    snapshotAt: 6,
    run: (trial) => {
      const token = trial.begin().token("a");
      const body = { kind: "taskCompleted", token, output: { json: 1 }, runningMs: 5 } as const;
      const message = { id: "m1", to: "execution/x", by: "worker", trace: "", tenant: "default", body };
      const error = { code: "DECISION_FAILED", message: "TypeError: our own bug", retryable: false };
      const at = { atMs: trial.nowMs };
      trial.apply({ kind: "quarantined", ...at, error }, { kind: "parked", ...at, message });
      trial.apply({ kind: "released", ...at, request: "r" }).send(body);
      trial.settle().completes("b", 2);
    },
  },
  generations: {
    about: "Held, triggered, failed, paused and resumed in a retry; a late result, a rerun with another config, letters.",
    workflow: workflow([node("a"), node("b", ["a"]), node("c", ["b"]), node("d")]),
    snapshotAt: 18,
    run: (trial) => {
      trial.send({ ...startBody(), hold: true });
      trial.send({ kind: "trigger", request: "t1", input: { json: { n: 1 } } }, "ann");
      trial.settle().completes("a", { value: 1 });
      const late = trial.token("d");
      trial.at(100).fails("b", { code: "HTTP_500", message: "no" });
      trial.send({ kind: "taskCompleted", token: late, output: { json: "late" }, runningMs: 5 });
      trial.at(200).send({ kind: "retry", request: "r1", scope: "failed" }, "ann");
      trial.send({ kind: "pause", request: "p1" }, "ann");
      trial.settle().send({ kind: "resume", request: "p2" }, "ann");
      trial.settle().at(300).completes("b", 2).fails("c");
      const [letter] = trial.letters.slice(-1);
      trial.send({ kind: "retry", request: "r2", scope: "letters", letters: [letter!] }, "bob");
      trial.settle().at(400).completes("c", 3);
      trial.send({ kind: "discardLetter", request: "x1", letter: letter!.id }, "bob");
      trial.send({ kind: "retry", request: "r3", scope: "node", from: "a", config: { literal: true } }, "bob");
      trial.settle().at(500).completes("a", { value: 4 });
    },
  },
  waits: {
    about: "Timers, a date, signals early and late, reviews decided and due, a join whose time is up.",
    workflow: workflow(
      [
        node("timer", [], engine("wait", { seconds: 5 })),
        node("date", [], engine("wait", { until: "1970-01-01T00:16:50.000Z" })),
        node("early", ["timer"], engine("wait", { signal: "go", timeout_seconds: 60 })),
        node("late", [], engine("wait", { signal: "stop", timeout_seconds: 60 })),
        node("never", [], { ...engine("wait", { signal: "no", timeout_seconds: 20 }), ...branch }),
        node("asked", [], engine("review", { title: "Well?", due_seconds: 60, on_due: "fail" })),
        node("due", [], engine("review", { due_seconds: 30, on_due: { decision: "reject" } })),
        node("slow", []),
        node("join", ["timer", "slow"], { join_timeout_seconds: 10, ...branch }),
      ],
      { on_error: "fail_branch" },
    ),
    snapshotAt: 12,
    run: (trial) => {
      trial.begin();
      trial.send({ kind: "signal", request: "s1", name: "go", data: { json: 1 } }, "ann");
      trial.at(5000).settle();
      trial.send({ kind: "signal", request: "s2", name: "stop", data: { json: 2 } }, "ann");
      const decision = { decision: "approve", data: null, comment: "fine" } as const;
      trial.send({ kind: "decideReview", request: "d1", instance: "asked", generation: 1, ...decision }, "bob");
      trial.at(10_000).settle().at(20_000).settle().at(30_000).settle().completes("slow", 1);
    },
  },
  reviews: {
    about: "Labels; a review with values that is assigned and decided by two people, and one whose values are corrected.",
    workflow: workflow([
      node("both", [], engine("review", { ...PROPOSED, four_eyes: true, assignees: ["ann"] })),
      node("one", [], engine("review", PROPOSED)),
    ]),
    snapshotAt: 7,
    run: (trial) => {
      trial.send({ ...startBody(), labels: { team: "a" } });
      trial.settle().at(1000);
      const of = { generation: 1, decision: "approve" } as const;
      trial.send({ kind: "assignReview", request: "a1", instance: "both", generation: 1, assignees: ["bob", "eve"] });
      trial.send({ kind: "decideReview", request: "d1", instance: "both", ...of, data: { total: 4 } }, "bob");
      trial.send({ kind: "decideReview", request: "d2", instance: "both", ...of, data: { total: 5 } }, "bob");
      trial.at(2000).send({ kind: "decideReview", request: "d3", instance: "both", ...of, data: { total: 4 } }, "eve");
      trial.send({ kind: "decideReview", request: "d4", instance: "one", ...of, data: null }, "bob");
      trial.settle();
    },
  },
  escalation: {
    about: "A review that nobody decides: others are asked too, then it is due.",
    workflow: workflow([
      node("asked", [], engine("review", { ...PROPOSED, assignees: ["ann"], escalate: { after_seconds: 20, assignees: ["eve"] } })),
    ]),
    snapshotAt: 3,
    run: (trial) => {
      trial.begin();
      trial.at(20_000).settle().at(60_000).settle();
    },
  },
  map: {
    about: "Items in order, one tried again, one tolerated; a second map fails and only its failed item is made again.",
    workflow: workflow(
      [
        node("list"),
        node("all", ["list"], {
          ...engine("map", {
            items: "{{ list.items }}",
            handler: "step",
            config: { item: "{{ item }}", index: "{{ index }}" },
            max_concurrency: 2,
            tolerated_failures: 1,
          }),
          timeout_seconds: 30,
        }),
        node("strict", ["list"], {
          ...engine("map", {
            items: [1, 2],
            handler: "step",
            config: { item: "{{ item }}" },
            max_concurrency: 10,
            tolerated_failures: 0,
          }),
          timeout_seconds: 30,
        }),
      ],
      { on_error: "fail_branch" },
    ),
    snapshotAt: 10,
    run: (trial) => {
      trial.begin().completes("list", { items: ["a", "b", "c"] }).completes("all[1]", "B").fails("all[0]", RETRYABLE);
      trial.at(5000).settle().fails("all[2]").completes("all[0]", "A");
      trial.completes("strict[0]", 1).fails("strict[1]").at(6000);
      trial.send({ kind: "retry", request: "r1", scope: "failed" }, "ann");
      trial.settle().completes("strict[1]", 2);
    },
  },
  repeat: {
    about: "Three rounds, one of them with a second attempt; and one that runs out of rounds.",
    workflow: workflow([
      node("poll", [], { repeat: { until: "poll.done", every_seconds: 2, max: 5 } }),
      node("vain", [], { repeat: { until: "vain.done", every_seconds: 1, max: 2 }, ...branch }),
    ]),
    snapshotAt: 9,
    run: (trial) => {
      trial.begin().completes("poll", { done: false }).completes("vain", { done: false });
      trial.at(2000).settle().fails("poll", RETRYABLE).completes("vain", { done: false });
      trial.at(9000).settle().completes("poll", { done: false }).at(12_000).settle().completes("poll", { done: true });
    },
  },
  router: {
    about: "A route that was taken, and what was not.",
    workflow: workflow([
      node("given", [], engine("input")),
      node("r", ["given"], {
        ...engine("router", {
          mode: "exclusive",
          on_error: "fail",
          routes: [
            { when: "given.n > 5", to: "large" },
            { when: "given.n > 0", to: ["small", "log"] },
          ],
          else: "none",
        }),
      }),
      node("large", ["r"]),
      node("small", ["r"]),
      node("log", ["r"]),
      node("none", ["r"]),
      node("after", ["large", "small", "none"]),
    ]),
    snapshotAt: 6,
    run: (trial) => {
      trial.begin({ json: { n: 3 } }).completes("small", 1).completes("log", 2).completes("after", 3);
    },
  },
  parent: {
    about: "Calls another workflow, which fails; is retried, calls it again and is told; then is cancelled with one open.",
    workflow: workflow([
      node("call", [], { ...engine("workflow", { name: "child", input: { n: 1 } }), ...branch }),
      node("open", ["call"], engine("workflow", { name: "child", input: { n: 2 } })),
    ]),
    snapshotAt: 5,
    run: (trial) => {
      trial.fetched.set("workflow:child@", { hash: "c0ffee", timeout_seconds: 60 });
      trial.begin();
      const child = (id: string): string => `execution/${trial.state.runs[trial.unit(id)]!.child!.execution}`;
      const error = { code: "HANDLER_ERROR", message: "broke", retryable: false, node: "n" };
      const ended = { kind: "childEnded", generation: 1, instance: "call" } as const;
      trial.send({ ...ended, child: child("call"), status: "failed", call: 1, error });
      trial.settle().at(1000).send({ kind: "retry", request: "r1", scope: "failed" }, "ann");
      trial.settle().at(2000);
      trial.send({ ...ended, child: child("call"), status: "completed", call: 2, output: { json: { x: 1 } } });
      trial.settle().at(3000).send({ kind: "cancel", request: "c1" }, "ann");
      trial.settle();
    },
  },
  child: {
    about: "A child that completes, and is asked again by its parent.",
    workflow: workflow([node("a")]),
    snapshotAt: 4,
    run: (trial) => {
      const parent = { entity: "execution/p", instance: "call", call: 1, depth: 1 };
      trial.begin({ json: { n: 1 } }, parent).completes("a", { x: 1 });
      trial.at(1000).send({ ...startBody({ json: { n: 1 } }), parent: { ...parent, call: 2 } });
      trial.settle();
    },
  },
  end: {
    about: "Finished early by an end node, with an output of its own.",
    workflow: workflow([
      node("a"),
      node("stop", ["a"], engine("end", { status: "COMPLETED", output: { early: "{{ a.x }}" } })),
      node("b", ["a"]),
      node("c"),
    ]),
    snapshotAt: 5,
    run: (trial) => {
      trial.begin().completes("a", { x: 1 });
    },
  },
  budgets: {
    about: "A budget that is not enough: for a cheaper model, for nobody, until it is raised; tokens that are settled.",
    workflow: workflow(
      [
        node("a", [], { budget: { usd: 1, on_limit: "fallback", fallback: "small" }, config: { model: "large" } }),
        node("b", ["a"], { limit: "llm", budget: { tokens: 50, on_limit: "pause" }, ...branch }),
        node("c", ["a"], { budget: { calls: 1, on_limit: "fail" }, ...branch }),
      ],
      {
        limits: { llm: { tokens_per_minute: 600, tokens_burst: 600 } },
        budget: { seconds: 60, key: "{{ input.who }}", on_limit: "fail" },
      },
    ),
    snapshotAt: 14,
    run: (trial) => {
      const usage = { prompt_tokens: 30, completion_tokens: 12, usd: 0.01 };
      trial.begin({ json: { who: "ann" } }).refuses("a").passes("a").passes("a").at(500).completes("a", "x", usage);
      trial.stalls("b").at(900).passes("b").passes("b").passes("b").refuses("c").at(2000).loses("b").passes("b");
      trial.passes("b").passes("b").at(3000).fails("b", RETRYABLE, usage).at(9000).settle().stalls("b");
      const decided = { kind: "decideReview", instance: "b", generation: 1, data: { tokens: 90 } } as const;
      trial.does({ ...decided, decision: "approve" }).does({ ...decided, data: null, decision: "reject" });
    },
  },
  gates: {
    about: "Two gates before a task, a lost worker that passes them anew, an item of a map at a gate when all ends.",
    workflow: workflow(
      [
        node("a", [], { limit: "llm", concurrency: { limit: 2, key: "{{ input.who }}", on_conflict: "queue" } }),
        node("m", ["a"], {
          handler: "map",
          config: { items: [1, 2], handler: "step", config: {}, max_concurrency: 10, tolerated_failures: 1 },
          queue: "step",
          limit: { cost: 2, rate: 10, per: "minute", burst: 5 },
        }),
        node("shy", ["a"], {
          limit: { cost: 1, breaker: { failure_rate: 0.5, window: 20, min_calls: 10, open_seconds: 30 } },
        }),
      ],
      { limits: { llm: { rate: 5, per: "second", burst: 5, concurrency: 3 } } },
    ),
    snapshotAt: 12,
    run: (trial) => {
      trial.begin({ json: { who: "ann" } }).passes("a").at(100).passes("a").passes("a").at(500).starts("a", 200);
      trial.settle().at(900).loses("a").passes("a").passes("a").passes("a").at(2000).completes("a", { value: 1 });
      trial.passes("shy").fails("shy", RETRYABLE).passes("m[0]").refuses("m[1]").at(3000).does({ kind: "cancel" });
    },
  },
  cache: {
    about: "A result that the cache had, and one that it has not and gets.",
    workflow: workflow([
      node("a", [], { cache: { ttl_seconds: 60 } }),
      node("b", ["a"], { cache: { key: "{{ a.value }}", ttl_seconds: 3600 } }),
    ]),
    snapshotAt: 5,
    run: (trial) => {
      trial.begin().finds("a", { value: 7 }, "execution/other").at(100).passes("b").at(500).completes("b", "done");
    },
  },
  entry: {
    about: "A place among the executions of its workflow: asked for, left by a pause and a recovery, had, given back.",
    workflow: workflow([node("a")], { concurrency: { limit: 1, key: "{{ input.who }}", on_conflict: "cancel_old" } }),
    snapshotAt: 4,
    run: (trial) => {
      trial.begin({ json: { who: "ann" } }).at(100).does({ kind: "pause" }).at(200).does({ kind: "resume" });
      trial.apply({ kind: "entryLeft", atMs: trial.nowMs }).settle();
      trial.at(300).enters().at(400).completes("a", 1);
    },
  },
  repaired: {
    about: "A wait that a bug had left without its waker, set going again by the sweep.",
    workflow: workflow([node("a"), node("b", ["a"])]),
    snapshotAt: 4,
    run: (trial) => {
      trial.begin();
      trial.apply({ kind: "repaired", atMs: trial.nowMs, node: "a", what: "queued without a waker" });
      trial.settle().completes("a", 1).completes("b", 2);
    },
  },
};

/** The same again, since snapshots are written otherwise: what a format says of a run is pinned by a journal with such a snapshot. */
const AGAIN = { "retry-5": "retry", "generations-5": "generations", "map-5": "map", "waits-5": "waits" };
const all = { ...cases, ...Object.fromEntries(Object.entries(AGAIN).map(([name, of]) => [name, cases[of]!])) };

const folder = new URL(`${RELEASE}/`, import.meta.url);
mkdirSync(folder, { recursive: true });
for (const [name, { about, workflow, run, snapshotAt }] of Object.entries(all)) {
  const file = new URL(`${name}.json`, folder);
  if (existsSync(file)) {
    console.log(`${name}: is there, and stays`);
    continue;
  }
  const trial = new Trial(workflow);
  run(trial);
  const early = executionMachine.create("x", trial.state.plan);
  for (const event of trial.events.slice(0, snapshotAt)) executionMachine.evolve(early, event);
  const golden: Golden = {
    about,
    release: RELEASE,
    execution: "x",
    workflow,
    eventFormat: executionMachine.eventFormat,
    events: trial.events,
    snapshot: {
      version: snapshotAt,
      format: executionMachine.snapshotFormat,
      text: executionMachine.snapshot(early),
    },
    summary: viewExecution(trial.state),
  };
  writeFileSync(file, `${JSON.stringify(golden, null, 1)}\n`);
  console.log(`${name}: ${trial.events.length} events, ${golden.summary.status}`);
}
