/**
 * Measures what a commit of the embedded store cannot do without, with nothing of ours in it: `npm run measure:hops`. A message to a thread,
 * 8 KiB that it writes and syncs, and its answer; right after each other, and after pauses as long as a short step takes: a
 * machine that has nothing to do for some milliseconds is slow to wake, and so is its disk.
 */
import { fdatasyncSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

const ROUNDS = 300;
const PAUSES_MS = [0, 2, 10];
const PAGE = Buffer.alloc(8192, 1);
/** Written over again and again: what grows has its length to be written as well. */
const FILE_BYTES = 8 * 1024 * 1024;

interface Answer {
  readonly arrivedMs: number;
  readonly syncMs: number;
  readonly leftMs: number;
}

function nowMs(): number {
  return performance.timeOrigin + performance.now();
}

function serve(file: string): void {
  const descriptor = openSync(file, "w");
  writeSync(descriptor, Buffer.alloc(FILE_BYTES));
  fsyncSync(descriptor);
  let place = 0;
  parentPort!.on("message", () => {
    const arrivedMs = nowMs();
    writeSync(descriptor, PAGE, 0, PAGE.length, place);
    place = (place + PAGE.length) % FILE_BYTES;
    const syncedFromMs = nowMs();
    fdatasyncSync(descriptor);
    const leftMs = nowMs();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    parentPort!.postMessage({ arrivedMs, syncMs: leftMs - syncedFromMs, leftMs } satisfies Answer);
  });
}

function middle(values: readonly number[]): string {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)]!.toFixed(3).padStart(8);
}

async function measure(worker: Worker, pauseMs: number): Promise<string> {
  const [sends, ways, syncs, backs, wholes]: number[][] = [[], [], [], [], []];
  for (let i = 0; i < ROUNDS; i++) {
    if (pauseMs > 0) await sleep(pauseMs);
    const { promise, resolve } = Promise.withResolvers<Answer>();
    worker.once("message", resolve);
    const sentMs = nowMs();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
    worker.postMessage(null);
    sends!.push(nowMs() - sentMs);
    const { arrivedMs, syncMs, leftMs } = await promise;
    const endedMs = nowMs();
    ways!.push(arrivedMs - sentMs);
    syncs!.push(syncMs);
    backs!.push(endedMs - leftMs);
    wholes!.push(endedMs - sentMs);
  }
  const columns = [sends, ways, syncs, backs, wholes].map((values) => middle(values!));
  return [`${pauseMs} ms`.padEnd(8), ...columns].join("  ");
}

if (isMainThread) {
  const folder = mkdtempSync(join(tmpdir(), "millrace-hops-"));
  const worker = new Worker(new URL(import.meta.url), { workerData: join(folder, "file") });
  try {
    await measure(worker, 0);
    console.log("p50, ms      sending     there      sync      back     whole");
    for (const pauseMs of PAUSES_MS) console.log(await measure(worker, pauseMs));
  } finally {
    await worker.terminate();
    rmSync(folder, { recursive: true });
  }
} else serve(workerData as string);
