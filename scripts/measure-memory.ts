/**
 * Measures what runs take in memory: `node scripts/measure-memory.ts [case …]`.
 *
 * One execution of 100,000 nodes in an embedded engine on a file, written with its SDK or sent over HTTP by another process;
 * 100,000 executions that wait for a signal; and 50,000 that have ended. Each case has a process of its own, and is held against the
 * same process before it. *resident* is what the system counts, *heap* what V8 and its buffers have left after a full
 * collection. The peak of the heap is the largest of such looks, a second apart; garbage belongs to the resident peak, which is
 * of another run without them.
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { embedded, workflow, type Workflow } from "../src/sdk/index.ts";

const NODES = 100_000;
const LAYER = 100;
const BULK = 5_000;
const LOOK_MS = 1_000;
const CASES = ["fan by SDK", "layers by SDK", "fan over HTTP", "layers over HTTP", "waiting", "ended"];

/** What a process takes, in bytes. */
interface Size {
  readonly resident: number;
  readonly heap: number;
}

type Order =
  | { readonly kind: "size" }
  /** From now on the most is kept, with or without looks at the heap. */
  | { readonly kind: "watch"; readonly looks: boolean }
  | { readonly kind: "peak" }
  | { readonly kind: "run"; readonly shape: string };

/** For each node the one before it, if there is one: one node with all the others behind it, or a hundred chains side by side. */
function parentsOf(shape: string): readonly (number | undefined)[] {
  return Array.from({ length: NODES }, (_, i) => {
    if (shape === "fan") return i === 0 ? undefined : 0;
    return i < LAYER ? undefined : i - LAYER;
  });
}

function definition(shape: string): string {
  const nodes = parentsOf(shape).map((parent, i) => {
    const config = parent === undefined ? { from: 0 } : { from: `{{ n${parent}.n }}` };
    return { id: `n${i}`, handler: "step", config, dependencies: parent === undefined ? [] : [`n${parent}`] };
  });
  return JSON.stringify({ name: shape, nodes });
}

function built(shape: string): Workflow<Readonly<Record<string, never>>, { readonly last: { readonly n: number } }> {
  const wf = workflow(shape);
  const first = (i: number) => wf.node(`n${i}`, {}, () => ({ n: 1 }));
  const handles: ReturnType<typeof first>[] = [];
  // The output is a node too, and there may be no more than that many.
  for (const [i, parent] of parentsOf(shape).slice(0, -1).entries()) {
    if (parent === undefined) handles.push(first(i));
    else handles.push(wf.node(`n${i}`, { after: { one: handles[parent]! } }, ({ one }) => ({ n: one.n + 1 })));
  }
  return wf.output({ last: handles.at(-1)! });
}

// ── the process that is measured ──────────────────────────────────────────────────────────────────────────────────

function heapNow(): number {
  gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function serve(dataDir: string): Promise<void> {
  const engine = await embedded({ dataDir, port: 0, concurrency: 200, handlers: { step: () => ({ n: 1 }) } });
  let peakHeap = 0;
  const obey = async (order: Order): Promise<Size | null> => {
    switch (order.kind) {
      case "size":
        // What was let go of in a collection may let go of more.
        for (let i = 0; i < 3; i++, await sleep(50)) gc!();
        return { resident: process.memoryUsage.rss(), heap: heapNow() };
      case "watch":
        // The system counts the most that was resident anew.
        writeFileSync("/proc/self/clear_refs", "5");
        if (order.looks) setInterval(() => (peakHeap = Math.max(peakHeap, heapNow())), LOOK_MS).unref();
        return null;
      case "peak": {
        const most = /VmHWM:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))![1]!;
        return { resident: Number(most) * 1024, heap: peakHeap };
      }
      case "run":
        await engine.run(built(order.shape));
        return null;
    }
  };
  process.on("message", (order) => void obey(order as Order).then((found) => process.send!(found)));
  process.on("disconnect", () => process.exit());
  process.send!({ url: engine.url });
}

// ── the one that measures ─────────────────────────────────────────────────────────────────────────────────────────

interface Measured {
  readonly url: string;
  readonly tell: (order: Order) => Promise<Size>;
}

async function inProcess<Found>(work: (measured: Measured) => Promise<Found>): Promise<Found> {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-memory-"));
  const child: ChildProcess = fork(import.meta.filename, ["serve", dataDir], { execArgv: ["--expose-gc"] });
  try {
    const died = once(child, "exit").then(() => Promise.reject(new Error("the process that is measured has died")));
    died.catch(() => {});
    const heard = async (): Promise<unknown> => ((await Promise.race([once(child, "message"), died])) as [unknown])[0];
    const { url } = (await heard()) as { readonly url: string };
    const tell = async (order: Order): Promise<Size> => {
      child.send(order);
      return (await heard()) as Size;
    };
    return await work({ url, tell });
  } finally {
    // It writes to the folder until it is gone.
    const isGone = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    if (child.connected) child.disconnect();
    await isGone;
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function post(url: string, body: string): Promise<{ readonly execution_id: string }> {
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as { readonly execution_id: string };
}

async function ended(url: string, id: string): Promise<void> {
  for (;;) {
    const { status } = (await (await fetch(`${url}/v1/executions/${id}`)).json()) as { readonly status: string };
    if (status === "COMPLETED") return;
    if (status !== "RUNNING") throw new Error(status);
    await sleep(500);
  }
}

const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`.padStart(9);

/** One execution: what the process takes at its peak, above what it took when it had nothing to do. */
async function measureOne(name: string): Promise<void> {
  const [shape, , way] = name.split(" ");
  const once = (looks: boolean): Promise<readonly Size[]> =>
    inProcess(async ({ url, tell }) => {
      const idle = await tell({ kind: "size" });
      await tell({ kind: "watch", looks });
      if (way === "SDK") await tell({ kind: "run", shape: shape! });
      else await ended(url, (await post(`${url}/v1/workflow?start=true`, definition(shape!))).execution_id);
      const peak = await tell({ kind: "peak" });
      return [idle, peak, await tell({ kind: "size" })];
    });
  const [idle, peak, after] = await once(false);
  const [idleSeen, peakSeen] = await once(true);
  console.log(
    `${name.padEnd(18)} resident ${mib(idle!.resident)} idle, ${mib(peak!.resident - idle!.resident)} more at its peak;`,
    `heap ${mib(idle!.heap)} idle, ${mib(peakSeen!.heap - idleSeen!.heap)} more at its peak, ${mib(after!.heap - idle!.heap)} after it`,
  );
}

const CROWDS: Readonly<Record<string, { readonly count: number; readonly node: object }>> = {
  waiting: { count: 100_000, node: { id: "w", handler: "wait", config: { signal: "go" } } },
  ended: { count: 50_000, node: { id: "s", handler: "step", config: {} } },
};

/** Many small ones: what each of the second half adds, when the first has made what is there once. */
async function measureMany(name: string): Promise<void> {
  const { count, node } = CROWDS[name]!;
  await inProcess(async ({ url, tell }) => {
    await post(`${url}/v1/workflows`, JSON.stringify({ name, nodes: [node] }));
    const inputs = JSON.stringify({ inputs: Array.from({ length: BULK }, () => ({})) });
    const sizes = [await tell({ kind: "size" })];
    for (let made = 0; made < count; made += BULK) {
      await post(`${url}/v1/workflows/${name}/executions`, inputs);
      if (made + BULK === count / 2) sizes.push(await settled(tell));
    }
    sizes.push(await settled(tell));
    const [none, half, all] = sizes as [Size, Size, Size];
    const each = (role: keyof Size, from: Size, of: number): string => `${Math.round((all[role] - from[role]) / of)} B`;
    console.log(
      `${name.padEnd(18)} ${count.toLocaleString("en")}: resident ${each("resident", none, count)} each, ${each("resident", half, count / 2)} of the second half;`,
      `heap ${each("heap", none, count)}, ${each("heap", half, count / 2)}`,
    );
  });
}

/** After a moment: what was just decided is still being written. */
async function settled(tell: Measured["tell"]): Promise<Size> {
  await sleep(2_000);
  return tell({ kind: "size" });
}

const [, , ...args] = process.argv;
if (args[0] === "serve") await serve(args[1]!);
else for (const name of args.length > 0 ? args : CASES) await (name in CROWDS ? measureMany(name) : measureOne(name));
