import { readdirSync, readFileSync } from "node:fs";

/** Linux counts CPU time in hundredths of a second. */
const TICKS_PER_SECOND = 100;

interface Stat {
  readonly parent: number;
  /** Of the process and of its children that ended. */
  readonly cpuSeconds: number;
}

function statOf(pid: number): Stat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const ticks = [11, 12, 13, 14].reduce((sum, i) => sum + Number(fields[i]), 0);
    return { parent: Number(fields[1]), cpuSeconds: ticks / TICKS_PER_SECOND };
  } catch {
    return undefined; // It has ended.
  }
}

/** A process and all below it. */
function treeOf(root: number): readonly number[] {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const parent = statOf(pid)?.parent;
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const found: number[] = [];
  const open = [root];
  for (let pid = open.pop(); pid !== undefined; pid = open.pop()) {
    found.push(pid);
    open.push(...(children.get(pid) ?? []));
  }
  return found;
}

/** CPU seconds that a process and all below it have used. */
export function cpuSecondsOf(root: number): number {
  return treeOf(root).reduce((sum, pid) => sum + (statOf(pid)?.cpuSeconds ?? 0), 0);
}

/** Memory of a process and all below it; what they share counts once. */
export function memoryMiBOf(root: number): number {
  let kiB = 0;
  for (const pid of treeOf(root)) {
    try {
      kiB += Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0);
    } catch {
      // It has ended.
    }
  }
  return kiB / 1024;
}

/** CPU seconds of the whole machine, stolen ones included: what others used is the rest. */
export function machineCpuSeconds(): number {
  const fields = readFileSync("/proc/stat", "utf8").split("\n")[0]!.trim().split(/\s+/).slice(1).map(Number);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields;
  return (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND;
}

/** The process that started another one. */
export function parentOf(pid: number): number {
  const parent = statOf(pid)?.parent;
  if (parent === undefined) throw new Error(`there is no process ${pid}`);
  return parent;
}
