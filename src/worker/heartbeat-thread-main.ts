import { parentPort, workerData } from "node:worker_threads";
import { nodeHost } from "../host/node-host.ts";
import { heartbeatOf } from "./delivery.ts";
import type { BeatenTask, FromThread, HeartbeatModule, Heartbeats, ThreadData, ToThread } from "./heartbeat-thread.ts";

/** What runs in the thread of `HeartbeatThread`. */

interface Lot {
  /** Its tasks, until somebody had to look. */
  text: string;
  readonly addedAtMs: number;
  /** By token, from then on. */
  tasks: Map<string, Beaten> | undefined;
}

interface Beaten {
  readonly task: BeatenTask;
  readonly lot: Lot;
  reported: boolean;
}

const { source, worker, settings } = workerData as ThreadData;
const lots = new Map<number, Lot>();

// Listening before anything is awaited: what is told meanwhile must not be missed.
parentPort!.on("message", ({ ended, remove, add, reported }: ToThread) => {
  for (const number of ended) lots.delete(number);
  for (const [number, token] of remove) tasksOf(number).delete(token);
  if (add !== null) lots.set(add.number, { text: add.tasks, addedAtMs: nodeHost.monotonicMs(), tasks: undefined });
  for (const [number, token] of reported) {
    const known = tasksOf(number).get(token);
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
    const due = beaten().filter((one) => all || !one.reported);
    const isDone = due.length === 0 || (await beatOnce(heartbeats, due, nowMs));
    // A sign of life, for who beats instead where there is none.
    if (all && isDone) tell({ lost: [], cancelled: [] });
  }
}

function tell(news: FromThread): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort!.postMessage(news);
}

function tasksOf(number: number): Map<string, Beaten> {
  const lot = lots.get(number);
  if (lot === undefined) return new Map();
  if (lot.tasks === undefined) {
    const tasks = JSON.parse(lot.text) as readonly BeatenTask[];
    lot.text = "";
    lot.tasks = new Map(tasks.map((task) => [task.token, { task, lot, reported: false }]));
  }
  return lot.tasks;
}

/** Each task once: one that has come again is in a later lot, and may be in its first one still. */
function beaten(): readonly Beaten[] {
  const last = new Map<string, Beaten>();
  for (const number of lots.keys()) {
    for (const [token, one] of tasksOf(number)) {
      last.get(token)?.lot.tasks?.delete(token);
      last.set(token, one);
    }
  }
  return [...last.values()];
}

async function beatOnce(heartbeats: Heartbeats, due: readonly Beaten[], nowMs: number): Promise<boolean> {
  const beats = due.map(({ task, reported, lot }) =>
    heartbeatOf(task, worker, reported ? undefined : nowMs - lot.addedAtMs),
  );
  try {
    const { lost, cancelled } = await heartbeats.heartbeat(beats, settings.leaseMs);
    for (const one of due) one.reported = true;
    const gone = new Set(lost);
    for (const { task, lot } of due) if (gone.has(task.token)) lot.tasks?.delete(task.token);
    if (lost.length > 0 || cancelled.length > 0) tell({ lost, cancelled });
    return true;
  } catch {
    // The next beat will tell; the lease lasts for three.
    return false;
  }
}
