import type { Pool } from "undici";
import { HANDLER } from "../contenders/millrace.ts";

/** Workers elsewhere, each with one request under way at a time. */
const WORKERS = 4;
/** Tasks in a lease, and results in a report. */
const MAX = 250;
const WAIT_MS = 1_000;

interface Leased {
  readonly tasks: readonly { readonly token: string }[];
}

interface Reported {
  readonly results: readonly { readonly accepted: boolean }[];
}

/** Does so many steps that wait, as workers in another language would: a lease, the work, one report of all results. */
export async function workRemotely(pool: Pool, steps: number): Promise<void> {
  let left = steps;
  // With the last result nobody waits for tasks any more: such a wait is no part of what the steps took.
  const done = new AbortController();
  const work = async (worker: string): Promise<void> => {
    while (left > 0) {
      const lease = { worker_id: worker, handlers: [HANDLER], max: MAX, wait_ms: WAIT_MS };
      const { tasks } = await post<Leased>(pool, "/v1/tasks/lease", lease, done.signal);
      if (tasks.length === 0) continue;
      const report = { results: tasks.map(({ token }) => ({ token, output: { n: 1 } })) };
      const { results } = await post<Reported>(pool, "/v1/tasks/complete", report, done.signal);
      if (!results.every(({ accepted }) => accepted)) throw new Error("a result was not accepted");
      left -= results.length;
    }
    done.abort();
  };
  const untilDone = async (worker: string): Promise<void> => {
    await work(worker).catch((error: unknown) => {
      if (!done.signal.aborted) throw error;
    });
  };
  await Promise.all(Array.from({ length: WORKERS }, (_, i) => untilDone(`bench-${i}`)));
}

async function post<Answer>(pool: Pool, path: string, body: object, signal: AbortSignal): Promise<Answer> {
  const headers = { "content-type": "application/json" };
  const answer = await pool.request({ method: "POST", path, headers, body: JSON.stringify(body), signal });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${text}`);
  return JSON.parse(text) as Answer;
}
