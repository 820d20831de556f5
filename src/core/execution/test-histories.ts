import type { WorkflowNode } from "../../definition/workflow.ts";
import type { Json, JsonObject } from "../../json/json.ts";
import { Random } from "../../simulator/random.ts";
import { needKey } from "../machine.ts";
import type { Value } from "../value.ts";
import { executionMachine } from "./machine.ts";
import { failure, startBody, Trial } from "./test-execution.ts";
import { randomWorkflow, SIGNALS } from "./test-workflows.ts";

const PARENT = { entity: "execution/p", instance: "call" } as const;

/**
 * An execution of a random workflow, driven by random messages: results and losses of old and new deliveries, forged
 * tokens, repeated commands, jumps of the clocks, queues that are full, signals, decisions, children that end, retries
 * in every scope. Whatever comes, the core must cope with it.
 */
export function randomHistory(seed: number, steps: readonly [least: number, most: number] = [20, 300]): Trial {
  const random = new Random(seed);
  const trial = new Trial(randomWorkflow(random), { random: () => random.next(), fetched: FETCHED });
  begin(random, trial);
  const limit = random.integer(...steps);
  for (let i = 0; i < limit && !(trial.state.isEnded && random.chance(0.05)); i++) {
    random.weighted<() => void>([
      [trial.state.live.size > 0 ? 45 : 3, () => sendResult(random, trial)],
      [isWaitedFor(trial) ? 14 : 1, () => sendWord(random, trial)],
      [trial.state.status === "paused" ? 15 : 4, () => sendCommand(random, trial)],
      [trial.state.isEnded ? 30 : 0.3, () => openAgain(random, trial)],
      [20, () => step(random, trial)],
      [7, () => (trial.nowMs += random.pick([1, 500, 3000, 20_000, 60_000]))],
      [1, () => (trial.calendarAheadMs += random.pick([-5000, 1000, 30_000]))],
      [2, () => (trial.room = random.chance(0.3) ? () => random.integer(0, 1) : () => 1000)],
      [1, () => (trial.nonce = random.hex(4))],
      [1, () => (trial.maxEvents = random.pick([1, 3, 256]))],
    ])();
    if (random.chance(0.7)) step(random, trial);
  }
  return trial;
}

/** As `randomHistory`, cut short: most of these are in the middle of things. */
export function randomBeginning(seed: number): Trial {
  return randomHistory(seed, [3, 40]);
}

/** What stands outside an execution: large values, and workflows by name. */
const FETCHED: ReadonlyMap<string, Json> = new Map<string, Json>([
  ["blob", { value: 3, text: "large" }],
  ["workflow:child@", { hash: "child-hash", timeout_seconds: 50 }],
  ["workflow:endless@2", { hash: "endless-hash", timeout_seconds: 0 }],
  ["workflow:nobody@", null],
]);

function begin(random: Random, trial: Trial): void {
  const input: Value = { json: { n: random.integer(0, 9), list: [1, "two", { three: 3 }] } };
  if (random.chance(0.15)) {
    trial.hold(input);
    if (random.chance(0.2)) trial.does({ kind: "cancel" });
    else if (random.chance(0.9)) trial.does({ kind: "trigger", ...(random.chance(0.3) && { input }) });
    return;
  }
  trial.begin(input, random.chance(0.3) ? { ...PARENT, ...(random.chance(0.5) && { call: 1, depth: 16 }) } : undefined);
}

function step(random: Random, trial: Trial): void {
  trial.step();
  if (random.chance(0.9)) supply(trial);
}

/** Brings what the last decision has asked for: values that were written, and outputs that have left memory. */
function supply(trial: Trial): void {
  for (const need of trial.last.needs ?? []) {
    const key = needKey(need);
    if (trial.fetched.has(key)) continue;
    if ("blob" in need) trial.fetched.set(key, JSON.parse(trial.blobs.find(({ hash }) => hash === key)!.text) as Json);
    if ("past" in need) trial.fetched.set(key, executionMachine.pastValue!(trial.events[need.past.version - 1]!)!);
  }
}

/** Something that a worker or the store says about a task. */
function sendResult(random: Random, trial: Trial): void {
  const token = random.chance(0.9)
    ? recent(random, trial)
    : random.pick([...trial.tasks.map((t) => t.token), "forged"]);
  random.weighted<() => void>([
    [30, () => complete(random, trial, token)],
    [8, () => fail(random, trial, token)],
    [5, () => trial.send({ kind: "taskStarted", token, runningMs: random.integer(0, 3000) })],
    [4, () => trial.send({ kind: "deliveryLost", token })],
    [2, () => trial.send({ kind: "taskHandedBack", token })],
  ])();
}

function isWaitedFor({ state }: Trial): boolean {
  return state.signalWaits.size > 0 || state.reviews.size > 0 || state.children.size > 0;
}

/** Something that ends a wait, or comes too early, too late or for the wrong one. */
function sendWord(random: Random, trial: Trial): void {
  const { state } = trial;
  const reviews = [...state.reviews];
  const children = [...state.children, ...state.orphans];
  random.weighted<() => void>([
    [
      state.signalWaits.size > 0 ? 3 : 0.5,
      () => trial.ask({ kind: "signal", name: random.pick(SIGNALS), data: { json: random.integer(0, 9) } }),
    ],
    [reviews.length > 0 ? 4 : 0.5, () => decideReview(random, trial, reviews)],
    [children.length > 0 ? 6 : 0.1, () => childEnds(random, trial, children)],
  ])();
}

function decideReview(random: Random, trial: Trial, reviews: readonly number[]): void {
  trial.ask({
    kind: "decideReview",
    instance: reviews.length === 0 || random.chance(0.1) ? "n0" : trial.state.nameOf(random.pick(reviews)),
    generation: random.chance(0.9) ? trial.state.generation : 1,
    decision: random.pick(["approve", "reject"]),
    data: random.pick<Json>([{ amount: 3 }, { amount: "much" }, null]),
  });
}

function childEnds(random: Random, trial: Trial, children: readonly number[]): void {
  const unit = children.length === 0 ? 0 : random.pick(children);
  const wait = trial.state.runs[unit]?.wait;
  const child = wait?.for === "child" ? wait.child : undefined;
  const status = random.pick(["completed", "completed", "completed", "failed", "partial", "cancelled"]);
  const map = trial.state.isItem(unit) ? trial.state.mapOf(unit) : undefined;
  const size = map === undefined ? 0 : Math.min(1000, map.total - (unit - map.base) * 1000);
  const part = map?.chunked ? { [trial.state.plan.graph.ids[map.node]!]: Array.from({ length: size }, () => 1) } : null;
  trial.send({
    kind: "childEnded",
    child: `execution/${random.chance(0.95) ? (child?.execution ?? "none") : "other"}`,
    generation: 1,
    instance: trial.state.nameOf(unit),
    status,
    call: random.chance(0.9) ? (child?.call ?? 1) : random.integer(1, 3),
    ...(status === "completed" && { output: { json: part ?? { value: random.integer(0, 9) } } }),
    ...(status === "failed" && { error: failure() }),
    ...(status === "completed" && map?.chunked && random.chance(0.3) && { failures: random.integer(1, 3) }),
  });
}

/** Something that somebody asks for while it runs. Request ids are few, so that some are used again. */
function sendCommand(random: Random, trial: Trial): void {
  const request = `r${random.integer(0, 40)}`;
  random.weighted<() => void>([
    [0.6, () => trial.send({ kind: "cancel", request })],
    [3, () => trial.send({ kind: "pause", request })],
    [7, () => trial.ask({ kind: "resume" })],
    [1, () => trial.send({ kind: "trigger", request })],
    [1, () => trial.send({ kind: "discardLetter", request, letter: pickLetter(random, trial) })],
    [1, () => calledByParent(random, trial)],
  ])();
}

function calledByParent(random: Random, trial: Trial): void {
  const call = (trial.state.parent?.call ?? 1) + random.integer(0, 1);
  const start = startBody({ json: null }, { ...PARENT, call });
  if (random.chance(0.8)) trial.send(start);
  else trial.send({ kind: "cancel", request: `cancel:${call}`, start });
}

/** A new generation, in every way in which there can be one. */
function openAgain(random: Random, trial: Trial): void {
  const { ids } = trial.state.plan.graph;
  const from = random.pick(ids);
  const input = random.chance(0.2) ? { input: { json: { n: random.integer(0, 9), list: [3] } } } : {};
  const config = random.chance(0.4)
    ? { config: edited(random, trial.state.plan.workflow.nodes[trial.index(from)]!) }
    : {};
  const letter = { id: pickLetter(random, trial), class: "poison", queue: "step", text: "{}" } as const;
  random.weighted<() => void>([
    [3, () => trial.ask({ kind: "retry", scope: "failed", ...input })],
    [3, () => trial.ask({ kind: "retry", scope: "descendants", from, ...config, ...input })],
    [2, () => trial.ask({ kind: "retry", scope: "node", from, ...config, ...input })],
    [3, () => trial.ask({ kind: "retry", scope: "letters", letters: [letter] })],
    [2, () => trial.ask({ kind: "trigger", ...(random.chance(0.1) && { input: { json: 1 } }) })],
    [2, () => calledByParent(random, trial)],
  ])();
}

function pickLetter(random: Random, trial: Trial): string {
  const letters = [...trial.state.letters.keys()];
  return letters.length === 0 || random.chance(0.05) ? "x:1:none" : random.pick(letters);
}

/** Another config that the node can have. */
function edited(random: Random, { handler, config }: WorkflowNode): JsonObject {
  if (handler === "map") return { ...config, items: random.pick<Json>([[1, 2], [], "{{ input.list }}"]) };
  if (handler === "wait") return { seconds: random.integer(0, 9) };
  if (handler === "router") return { ...config, routes: [...(config["routes"] as Json[])].toReversed() };
  return handler === "step" ? { literal: random.integer(0, 9), n: "{{ input.n | default(0) }}" } : config;
}

/** Runs it to its end: every task completes, whoever is asked answers, the clocks go on. */
export function runOut(trial: Trial): Trial {
  trial.room = () => 1000;
  trial.maxEvents = 256;
  for (let i = 0; i < 10_000 && !trial.state.isEnded; i++) {
    do {
      trial.settle();
      supply(trial);
    } while (trial.step().length > 0);
    // With room for all and everything fetched, an execution that has work would have done it.
    if (executionMachine.hasWork(trial.state)) throw new Error("it has work and does nothing");
    if (!trial.state.isEnded) pushOn(trial, i);
  }
  return trial.settle();
}

function pushOn(trial: Trial, i: number): void {
  const { state } = trial;
  if (state.status === "pending") return void trial.does({ kind: "trigger" });
  if (state.status === "paused") return void trial.does({ kind: "resume" });
  const [live] = state.live;
  if (live !== undefined) return void trial.completes(state.nameOf(live), { value: i % 10, list: [i] });
  const [review] = state.reviews;
  if (review !== undefined) {
    const { generation } = state;
    const decision = { decision: "approve", data: { amount: 1 } } as const;
    return void trial.does({ kind: "decideReview", instance: state.nameOf(review), generation, ...decision });
  }
  const [child] = state.children;
  if (child !== undefined) return void trial.childEnds(state.nameOf(child), { status: "failed" });
  const wakeMs = executionMachine.nextWakeMs(state);
  const dateMs = executionMachine.nextCalendarMs?.(state) ?? null;
  if (wakeMs === null && dateMs === null) throw new Error("nothing would ever move it");
  trial.nowMs = Math.max(trial.nowMs, wakeMs ?? 0, (dateMs ?? 0) - trial.calendarAheadMs);
}

function recent(random: Random, trial: Trial): string {
  const live = [...trial.state.live];
  if (live.length > 0 && random.chance(0.9)) return trial.token(trial.state.nameOf(random.pick(live)));
  return trial.tasks.at(-random.integer(1, 6))?.token ?? "none";
}

function complete(random: Random, trial: Trial, token: string): void {
  const value = { value: random.integer(0, 9), text: "t", flag: random.chance(0.5), nested: { x: [1] }, list: [1, 2] };
  const output = random.weighted<Value>([
    [8, { json: value }],
    [1, { json: { ...value, text: "x".repeat(2000) }, bytes: 2100 }],
    [1, { blob: { hash: "blob", bytes: 70_000 } }],
  ]);
  const usage = random.chance(0.1) ? { usage: { tokens: 3 } } : {};
  trial.send({ kind: "taskCompleted", token, output, runningMs: random.integer(0, 2000), ...usage });
}

function fail(random: Random, trial: Trial, token: string): void {
  const error = failure({ retryable: random.chance(0.8), code: random.pick(["HANDLER_ERROR", "TIMEOUT"]) });
  trial.send({ kind: "taskFailed", token, error, retryAfterMs: random.pick([0, 5000]), runningMs: 1 });
}
