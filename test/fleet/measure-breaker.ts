import { setTimeout as sleep } from "node:timers/promises";
import { cleanUp, getJson, postJson, serve } from "../cli/program.ts";
import { type Asked, type Mood, TroubledLlm } from "./troubled-llm.ts";

/**
 * What limits make of a model that fails, does not answer, or wants to be left alone: a real server with `llm` nodes
 * before a model of our own, which is in trouble for some seconds. Printed is what the model saw.
 *
 *     npm run measure:breaker
 */
const COUNT = 150;
const TROUBLE_MS = 7_000;
const OPEN_SECONDS = 2;
const RETRY_AFTER_SECONDS = 3;
const SLICE_MS = 250;

const breaker = { failure_rate: 0.5, window: 20, min_calls: 10, open_seconds: OPEN_SECONDS };
const llm = await TroubledLlm.start(150, RETRY_AFTER_SECONDS);
const server = await serve("memory:", [], {
  env: { OPENAI_BASE_URL: llm.url, OPENAI_API_KEY: "none", WORKER_CONCURRENCY: "40" },
});
try {
  console.log(`A breaker of ${JSON.stringify(breaker)}; the model is in trouble for ${TROUBLE_MS / 1_000} s.`);
  await trial("failing", { breaker, rate: 40, burst: 5 });
  await trial("silent", { breaker, concurrency: 20 });
  console.log(`A rate of 40/s; the model answers 429 with Retry-After: ${RETRY_AFTER_SECONDS} for a while.`);
  await trial("limiting", { rate: 40, burst: 5 });
  await server.stop();
} finally {
  cleanUp();
  llm.close();
}

interface Shown {
  readonly status: string;
  readonly nodes: Readonly<
    Record<string, { readonly status: string; readonly reason: string | null; readonly attempt: number }>
  >;
}

interface ShownLimit {
  readonly name: string;
  readonly kind: string;
  readonly waiting: number;
  readonly until: string | null;
}

async function trial(mood: Exclude<Mood, "well">, limit: object): Promise<void> {
  const name = `${mood}-model`;
  const retry = { max_attempts: 6, base_delay_seconds: 0.2, max_delay_seconds: 1 };
  const ask = {
    id: "ask",
    handler: "llm",
    limit: name,
    timeout_seconds: mood === "silent" ? 1 : 5,
    retry,
    config: { model: "m", prompt: "Is it?" },
  };
  await postJson(`${server.url}/v1/workflows`, { name, limits: { [name]: limit }, nodes: [ask] });
  const before = llm.asked.length;
  const inputs = Array.from({ length: COUNT }, () => ({}));
  const { items } = await postJson<{ items: { execution_id: string }[] }>(
    `${server.url}/v1/workflows/${name}/executions`,
    { inputs },
  );
  // Some go well first.
  while (llm.asked.length < before + 20) await sleep(5);
  llm.mood = mood;
  const troubleMs = performance.now();
  const limits = watchLimits(name);
  await sleep(mood === "limiting" ? 500 : TROUBLE_MS);
  llm.mood = "well";
  const wellMs = performance.now();
  const ends = await Promise.all(items.map(({ execution_id: id }) => ended(id)));
  const { most, openings } = await limits.stop();
  const asked = llm.asked.slice(before);
  const sum = ends.reduce((all, { nodes }) => all + nodes["ask"]!.attempt, 0);
  const completed = ends.filter(({ status }) => status === "COMPLETED").length;
  console.log(`\n${mood}`);
  for (const line of mood === "limiting" ? leftAlone(asked) : opened(asked, troubleMs, wellMs))
    console.log(`  ${line}`);
  console.log(`  closed ${openings} times, seen in GET /v1/limits; at most ${most} nodes waited there`);
  console.log(`  ${completed} of ${COUNT} completed; ${asked.length} calls came, ${sum} attempts were used`);
}

/** How a breaker met the trouble, and how it let go again. */
function opened(asked: readonly Asked[], troubleMs: number, wellMs: number): string[] {
  const bad = asked.filter(({ mood }) => mood !== "well").map(({ atMs }) => atMs - troubleMs);
  const firstPause = bad.findIndex((atMs, i) => i > 0 && atMs - bad[i - 1]! > OPEN_SECONDS * 500);
  const until = firstPause === -1 ? bad.length : firstPause;
  const probes = bad.slice(until).map((atMs) => `${(atMs / 1_000).toFixed(1)} s`);
  const well = asked.filter(({ mood, atMs }) => mood === "well" && atMs >= wellMs);
  const slices: number[] = [];
  for (const { atMs, others } of well) {
    const slice = Math.floor((atMs - well[0]!.atMs) / SLICE_MS);
    slices[slice] = Math.max(slices[slice] ?? 0, others + 1);
  }
  return [
    `opened after ${until} calls that failed, those under way included; the last came ${(bad[until - 1]! / 1_000).toFixed(1)} s into the trouble`,
    `then ${probes.length} probes while it lasted, at ${probes.join(", ") || "no time"}`,
    `the first call after it came ${((well[0]!.atMs - wellMs) / 1_000).toFixed(1)} s later; at a time in each ${SLICE_MS} ms since: ` +
      Array.from(slices, (most) => most ?? 0).join(" "),
  ];
}

/** How a rate kept away from who asked for it. */
function leftAlone(asked: readonly Asked[]): string[] {
  const limited = asked.filter(({ mood }) => mood === "limiting");
  const last = limited.at(-1)!;
  const next = asked.find(({ atMs }) => atMs > last.atMs + (RETRY_AFTER_SECONDS * 1_000) / 2);
  const pause = next === undefined ? "never" : `${((next.atMs - last.atMs) / 1_000).toFixed(1)} s`;
  return [
    `${limited.length} calls were answered with 429, those under way included; nobody called for ${pause} after the last`,
  ];
}

async function ended(id: string): Promise<Shown> {
  for (;;) {
    const shown = await getJson<Shown>(`${server.url}/v1/executions/${id}`);
    if (shown.status !== "RUNNING") return shown;
    await sleep(200);
  }
}

/** Looks at a limit until it is told to stop. */
function watchLimits(name: string): { stop(): Promise<{ readonly most: number; readonly openings: number }> } {
  let isOver = false;
  let most = 0;
  const closed = new Set<string>();
  const look = async (): Promise<void> => {
    while (!isOver) {
      const { items } = await getJson<{ items: readonly ShownLimit[] }>(`${server.url}/v1/limits`);
      for (const { waiting, until } of items.filter((one) => one.name === name)) {
        most = Math.max(most, waiting);
        if (until !== null) closed.add(until);
      }
      await sleep(50);
    }
  };
  const looking = look();
  return {
    stop: async () => {
      isOver = true;
      await looking;
      return { most, openings: closed.size };
    },
  };
}
