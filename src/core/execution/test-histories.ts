import { randomWorkflow } from "../../simulator/generate.ts";
import { Random } from "../../simulator/random.ts";
import { executionMachine } from "./machine.ts";
import { failure, Trial } from "./test-execution.ts";

/**
 * An execution of a random workflow, driven by random messages: results and losses of old and new deliveries, forged
 * tokens, repeated commands, jumps of the clock, queues that are full. Whatever comes, the core must cope with it.
 */
export function randomHistory(seed: number): Trial {
  const random = new Random(seed);
  const blobs = new Map([["blob", { value: 3, text: "large" }]]);
  const trial = new Trial(randomWorkflow(random, "random"), { random: () => random.next(), fetched: blobs });
  const tokens: string[] = [];
  const step = (): void => {
    trial.step();
    for (const { token } of trial.last.tasks ?? []) tokens.push(token);
  };
  trial.begin({ json: { n: random.integer(0, 9) } });
  for (const { token } of trial.tasks) tokens.push(token);
  const limit = random.integer(20, 400);
  for (let i = 0; i < limit && !(trial.state.isEnded && random.chance(0.1)); i++) {
    const token = random.chance(0.9) ? recent(random, trial, tokens) : random.pick([...tokens, "forged"]);
    random.weighted<() => void>([
      [30, () => complete(random, trial, token)],
      [8, () => fail(random, trial, token)],
      [5, () => trial.send({ kind: "taskStarted", token, runningMs: random.integer(0, 3000) })],
      [4, () => trial.send({ kind: "deliveryLost", token })],
      [2, () => trial.send({ kind: "taskHandedBack", token })],
      [0.3, () => trial.send({ kind: "cancel", request: `r${random.integer(0, 3)}` })],
      [20, step],
      [6, () => (trial.nowMs += random.pick([1, 500, 3000, 20_000, 60_000]))],
      [2, () => (trial.room = random.chance(0.3) ? () => random.integer(0, 1) : () => 1000)],
      [1, () => (trial.nonce = random.hex(4))],
      [1, () => (trial.maxEvents = random.pick([1, 3, 256]))],
    ])();
    if (random.chance(0.7)) step();
  }
  return trial;
}

/** Runs it to its end: every task completes, the clock goes on. */
export function runOut(trial: Trial): Trial {
  trial.room = () => 1000;
  trial.maxEvents = 256;
  for (let i = 0; i < 10_000 && !trial.state.isEnded; i++) {
    trial.settle();
    const [live] = trial.state.live;
    if (live !== undefined) trial.completes(trial.state.plan.graph.ids[live]!, { value: 1 });
    else trial.nowMs = Math.max(trial.nowMs, executionMachine.nextWakeMs(trial.state) ?? 0);
  }
  return trial;
}

function recent(random: Random, trial: Trial, tokens: readonly string[]): string {
  const live = [...trial.state.live];
  if (live.length > 0 && random.chance(0.9)) return trial.token(trial.state.plan.graph.ids[random.pick(live)]!);
  return tokens.at(-random.integer(1, 6)) ?? "none";
}

function complete(random: Random, trial: Trial, token: string): void {
  const value = { value: random.integer(0, 9), text: "t", flag: random.chance(0.5), nested: { x: [1] } };
  const output = random.weighted([
    [8, { json: value }],
    [1, { json: { ...value, text: "x".repeat(2000) }, bytes: 2100 }],
    [1, { blob: { hash: "blob", bytes: 70_000 } }],
  ]);
  trial.send({ kind: "taskCompleted", token, output, runningMs: random.integer(0, 2000) });
}

function fail(random: Random, trial: Trial, token: string): void {
  const error = failure({ retryable: random.chance(0.8) });
  trial.send({ kind: "taskFailed", token, error, retryAfterMs: random.pick([0, 5000]), runningMs: 1 });
}
