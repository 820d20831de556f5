import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { startOwnRedis } from "../../scripts/services/redis.ts";
import { partitionOf } from "../../src/core/entity.ts";
import type { GateEvent } from "../../src/core/gate/events.ts";
import { gateEntity } from "../../src/core/gate/rule.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";
import { cleanUp, folder, getJson, postJson, type Program, serve, start } from "../cli/program.ts";

/**
 * How exactly a rate is kept by several workers: a Redis, a process with API and engine, and worker processes, with more
 * work than the rate allows. Every call notes when it was made; every grant stands in the journal of the gate. Printed are
 * how many of either there ever were above `rate · t`, over all windows, and which share of what is allowed was used: while
 * all that work was being accepted, by the same process that lets it through, and after it.
 *
 *     npm run measure:limits -- --rate 50 --burst 10 --seconds 30 --workers 4
 */
const { values: given } = parseArgs({
  options: {
    rate: { type: "string" },
    burst: { type: "string" },
    seconds: { type: "string", default: "30" },
    workers: { type: "string", default: "4" },
  },
});
const [seconds, workerCount] = [Number(given.seconds), Number(given.workers)];

interface Rule {
  readonly rate: number;
  readonly burst: number;
}

const rules: readonly Rule[] =
  given.rate === undefined
    ? [
        { rate: 50, burst: 50 },
        { rate: 50, burst: 10 },
        { rate: 200, burst: 50 },
      ]
    : [{ rate: Number(given.rate), burst: Number(given.burst ?? given.rate) }];

const HANDLERS = `import { appendFileSync } from "node:fs";
export const handlers = {
  call: async () => {
    appendFileSync(process.env.CALLS, performance.timeOrigin + performance.now() + "\\n");
    await new Promise((go) => setTimeout(go, 50));
    return null;
  },
};
`;

/** When the gate granted, as its journal has it. Read while it goes on: of a long journal the beginning is cut off. */
class Grants {
  readonly times: number[] = [];
  readonly #store: Store;
  readonly #entity: string;
  #version = 0;

  constructor(store: Store, name: string) {
    this.#store = store;
    this.#entity = gateEntity({ kind: "rate", tenant: "default", name });
  }

  async look(): Promise<void> {
    const partition = partitionOf(this.#entity, this.#store.capabilities.partitionCount);
    const request = { partition, entity: this.#entity, aboveVersion: this.#version };
    const [loaded] = await this.#store.journal.load([request]);
    for (const { version, text } of loaded!.records) {
      for (const [i, event] of (JSON.parse(text) as GateEvent[]).entries()) {
        if (version + i <= this.#version) continue;
        this.#version = version + i;
        if (event.kind === "asksGranted") this.times.push(...event.grants.map(() => event.atMs));
      }
    }
  }
}

const here = folder({ "handlers.mjs": HANDLERS });
const callsOf = (worker: number): string => join(here, `calls-${worker}`);
const redis = await startOwnRedis();
const workers: Program[] = [];
try {
  const handlers = ["--handlers", join(here, "handlers.mjs")];
  const server = await serve(redis.url, ["--roles", "api,engine"]);
  for (let i = 0; i < workerCount; i++) {
    const env = { CALLS: callsOf(i), WORKER_CONCURRENCY: "50" };
    workers.push(start(["serve", "--store", redis.url, "--roles", "worker", ...handlers], { env }));
  }
  await Promise.all(workers.map((worker) => worker.says(/"started"/)));
  console.log(`${workerCount} workers, ${seconds} s, load of the machine ${nodeLoad()}`);
  const store = await openRedis({ url: redis.url, host: nodeHost });
  for (const [i, rule] of rules.entries()) await measure(store, server.url, `provider-${i}`, rule);
  await store.close();
  await Promise.all(workers.map(({ child, ended }) => (child.kill("SIGTERM"), ended)));
  await server.stop();
} finally {
  cleanUp();
  await redis.stop();
}

async function measure(store: Store, url: string, name: string, { rate, burst }: Rule): Promise<void> {
  const before = calls().length;
  const grants = new Grants(store, name);
  const limits = { [name]: { rate, burst } };
  const nodes = [{ id: "call", handler: "call", limit: name }];
  await postJson(`${url}/v1/workflows?allow_missing_handlers=true`, { name, limits, nodes });
  const count = Math.ceil(rate * (seconds + 15) + burst);
  const starts = postJson(`${url}/v1/workflows/${name}/executions`, {
    inputs: Array.from({ length: count }, () => ({})),
  });
  let acceptedAtMs = Infinity;
  void starts.then(() => (acceptedAtMs = Date.now()));
  let fewest = Infinity;
  while (Date.now() < acceptedAtMs + seconds * 1_000) {
    await sleep(250);
    const { items } = await getJson<{ items: { name: string; kind: string; waiting: number }[] }>(`${url}/v1/limits`);
    const own = items.find((one) => one.name === name);
    if (Date.now() > acceptedAtMs) fewest = Math.min(fewest, own?.waiting ?? 0);
    await grants.look();
  }
  const endMs = acceptedAtMs + seconds * 1_000;
  const granted = grants.times.filter((atMs) => atMs <= endMs);
  const made = calls()
    .slice(before)
    .filter((atMs) => atMs <= endMs);
  const shown = (times: readonly number[]): string => {
    const first = times.filter((atMs) => atMs <= acceptedAtMs).length;
    const allowed = [burst + (rate * (acceptedAtMs - times[0]!)) / 1_000, rate * seconds] as const;
    const [early, share] = [first / allowed[0], (times.length - first) / allowed[1]].map((part) =>
      (part * 100).toFixed(1),
    );
    const most = excess(times, rate).toFixed(1);
    return `at most ${most} above rate · t; of what is allowed ${early} % while all was accepted, ${share} % after`;
  };
  const late = made.map((atMs, i) => atMs - (granted[i] ?? atMs)).sort((a, b) => a - b);
  const at = (part: number): string => `${Math.round(late[Math.floor(part * (late.length - 1))]!)} ms`;
  console.log(`${rate}/s with a burst of ${burst}, never fewer than ${fewest} in line`);
  console.log(`  grants  ${shown(granted)}; ${lostIn(granted, { rate, burst })}`);
  console.log(`  calls   ${shown(made)}; after their grant P50 ${at(0.5)}, P99 ${at(0.99)}, most ${at(1)}`);
  while (calls().length - before < count) await sleep(100);
}

/** The times of all calls so far, in order. */
function calls(): readonly number[] {
  const texts = Array.from({ length: workerCount }, (_, worker) => {
    try {
      return readFileSync(callsOf(worker), "utf8").trimEnd().split("\n");
    } catch {
      return [];
    }
  });
  return texts
    .flat()
    .filter((text) => text !== "")
    .map(Number)
    .sort((a, b) => a - b);
}

/** How many there were above `rate · t` in the worst of all windows; a burst of that many explains it. */
function excess(times: readonly number[], rate: number): number {
  let most = 0;
  let least = Infinity;
  for (const [i, atMs] of times.entries()) {
    const paced = (rate * atMs) / 1_000;
    least = Math.min(least, i - paced);
    most = Math.max(most, i + 1 - paced - least);
  }
  return most;
}

/** A bucket that is full takes no more: what the gate does not grant within burst / rate is lost for good. */
function lostIn(times: readonly number[], { rate, burst }: Rule): string {
  let level = burst;
  let [lost, pauses, longestMs] = [0, 0, 0];
  for (const [i, atMs] of times.entries()) {
    const pauseMs = atMs - (times[i - 1] ?? atMs);
    longestMs = Math.max(longestMs, pauseMs);
    const filled = level + (rate * pauseMs) / 1_000;
    if (filled > burst) [lost, pauses] = [lost + filled - burst, pauses + 1];
    level = Math.min(burst, filled) - 1;
  }
  const longest = `the longest ${Math.round(longestMs)} ms`;
  return `${lost.toFixed(0)} lost in ${pauses} pauses that filled the bucket, ${longest}`;
}

function nodeLoad(): string {
  return readFileSync("/proc/loadavg", "utf8").split(" ")[0]!;
}
