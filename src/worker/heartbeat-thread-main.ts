import { parentPort, workerData } from "node:worker_threads";
import { nodeHost } from "../host/node-host.ts";
import { heartbeatOf } from "./delivery.ts";
import type { BeatenTask, FromThread, HeartbeatModule, Heartbeats, ThreadData, ToThread } from "./heartbeat-thread.ts";

/** What runs in the thread of `HeartbeatThread`. */

interface Beaten {
  readonly task: BeatenTask;
  readonly addedAtMs: number;
  reported: boolean;
}

const { source, worker, settings } = workerData as ThreadData;
const tasks = new Map<string, Beaten>();

// Listening before anything is awaited: what is told meanwhile must not be missed.
parentPort!.on("message", ({ remove, add, reported }: ToThread) => {
  for (const token of remove) tasks.delete(token);
  const addedAtMs = nodeHost.monotonicMs();
  for (const task of add) tasks.set(task.token, { task, addedAtMs, reported: false });
  for (const token of reported) {
    const known = tasks.get(token);
    if (known !== undefined) known.reported = true;
  }
});

const { openHeartbeats } = (await import(source.module)) as HeartbeatModule;
await beat(await open());

/** The store may be away just now: then it is tried again, like every beat, for as long as the process lives. */
async function open(): Promise<Heartbeats> {
  for (;;) {
    try {
      return await openHeartbeats(source.options);
    } catch {
      await nodeHost.sleep(settings.startReportMs);
    }
  }
}

async function beat(heartbeats: Heartbeats): Promise<never> {
  let beatAtMs = nodeHost.monotonicMs();
  for (;;) {
    await nodeHost.sleep(settings.startReportMs);
    const nowMs = nodeHost.monotonicMs();
    const all = nowMs - beatAtMs >= settings.heartbeatMs;
    if (all) beatAtMs = nowMs;
    const due = [...tasks.values()].filter((one) => all || !one.reported);
    if (due.length > 0) await beatOnce(heartbeats, due, nowMs);
  }
}

async function beatOnce(heartbeats: Heartbeats, due: readonly Beaten[], nowMs: number): Promise<void> {
  const beats = due.map(({ task, reported, addedAtMs }) =>
    heartbeatOf(task, worker, reported ? undefined : nowMs - addedAtMs),
  );
  try {
    const { lost, cancelled } = await heartbeats.heartbeat(beats, settings.leaseMs);
    for (const one of due) one.reported = true;
    for (const token of lost) tasks.delete(token);
    const news: FromThread = { lost, cancelled };
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    if (lost.length > 0 || cancelled.length > 0) parentPort!.postMessage(news);
  } catch {
    // The next beat will tell; the lease lasts for three.
  }
}
