import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuSecondsOf, machineCpuSeconds, memoryMiBOf } from "./accounting.ts";
import type { Measured, TurnOrder, TurnWord } from "./turn.ts";

const ROOT = join(import.meta.dirname, "..");
const MEMORY_EVERY_MS = 500;
/** A contender that has said nothing for so long has failed. */
const PATIENCE_MS = 180_000;

/** What came of one turn, and what it used. */
export interface TurnResult {
  readonly measured: Measured;
  /** CPU seconds by process: `node` for all that run our code, and the servers by name. */
  readonly cpuSeconds: Readonly<Record<string, number>>;
  /** At its highest, over all processes. */
  readonly peakMiB: number;
  /** Cores that anything else on this machine used meanwhile. */
  readonly othersCores: number;
}

/**
 * Forks a turn, waits until it is warm, and counts what it uses until it has measured.
 *
 * @param tree whose sources are to run
 */
async function runTurn(order: Omit<TurnOrder, "servers">, urls: Urls, moreMs = 0, tree = ROOT): Promise<TurnResult> {
  const folder = mkdtempSync(join(tmpdir(), "millrace-bench-"));
  const child = fork(
    join(tree, "bench", "turn.ts"),
    [JSON.stringify({ ...order, servers: { ...urls, folder } } satisfies TurnOrder)],
    {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      // What the peers' own dependencies are warned of is not ours to tell.
      env: { ...process.env, NODE_NO_WARNINGS: "1" },
    },
  );
  const exited = once(child, "exit");
  const gaveUp = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS + moreMs);
  const over = new AbortController();
  const heard = async (): Promise<TurnWord> => {
    const ended = exited.then(([code]): never => {
      throw new Error(`${order.entry} ended with ${code} on ${order.shape}`);
    });
    const [word] = (await Promise.race([once(child, "message"), ended])) as [TurnWord];
    return word;
  };
  try {
    const warm = await heard();
    if (warm.kind !== "warm") throw new Error("a turn that was not warm has measured");
    const count = counter({ node: child.pid!, ...warm.servers }, over.signal);
    child.send("go");
    const done = await heard();
    const used = count();
    child.send("counted");
    await exited;
    if (done.kind !== "measured") throw new Error("a turn was warm twice");
    return { measured: done.result, ...used };
  } finally {
    clearTimeout(gaveUp);
    over.abort();
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One that fails is left out, and said so; the others are not thrown away for it. */
export async function attempt(...given: Parameters<typeof runTurn>): Promise<TurnResult | undefined> {
  try {
    return await runTurn(...given);
  } catch (error) {
    process.stderr.write(`  failed: ${String(error)}\n`);
    return undefined;
  }
}

export interface Urls {
  readonly redis: string;
  readonly postgres: string;
}

/** Counts from now until it is called. One that is not, since the turn has failed, ends with it: its timer would keep the whole run from ending. */
function counter(processes: Readonly<Record<string, number>>, over: AbortSignal): () => Omit<TurnResult, "measured"> {
  const names = Object.keys(processes);
  const cpu = (): number[] => names.map((name) => cpuSecondsOf(processes[name]!));
  let peakMiB = 0;
  const look = (): void => {
    peakMiB = Math.max(
      peakMiB,
      names.reduce((sum, name) => sum + memoryMiBOf(processes[name]!), 0),
    );
  };
  const timer = setInterval(look, MEMORY_EVERY_MS);
  over.addEventListener("abort", () => clearInterval(timer), { once: true });
  const before = cpu();
  const machineBefore = machineCpuSeconds();
  const startedMs = performance.now();
  return () => {
    const used = cpu().map((seconds, i) => seconds - before[i]!);
    const seconds = (performance.now() - startedMs) / 1000;
    const all = used.reduce((sum, one) => sum + one, 0);
    const othersCores = Math.max(0, (machineCpuSeconds() - machineBefore - all) / seconds);
    look();
    const cpuSeconds = Object.fromEntries(names.map((name, i) => [name, used[i]!]));
    return { cpuSeconds, peakMiB, othersCores };
  };
}
