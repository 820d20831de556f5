/**
 * Measures how the engine grows with the workflow: `node scripts/measure-size.ts [shape nodes]`.
 *
 * Runs chains, fans and random graphs to their end in the memory engine, with data on every edge, and prints the time,
 * the time for 1,000 nodes and the peak memory. Each runs in a process of its own, so that the memory is its own.
 */
import { spawnSync } from "node:child_process";
import { entityKey } from "../src/core/entity.ts";
import type { Workflow, WorkflowNode } from "../src/definition/workflow.ts";
import { nodeHost } from "../src/host/node-host.ts";
import { Random } from "../src/simulator/random.ts";
import { type MemoryEngine, memoryEngine } from "../test/support/memory-engine.ts";
import { node, workflow } from "../test/support/workflows.ts";

type Shape = "chain" | "fan" | "random" | "retries";

const ROWS: readonly (readonly [Shape, number])[] = [
  ["chain", 1_000],
  ["chain", 10_000],
  ["chain", 100_000],
  ["fan", 1_000],
  ["fan", 10_000],
  ["fan", 100_000],
  ["random", 2_000],
  ["random", 20_000],
  ["random", 100_000],
];

/**
 * A workflow in which each node is given the numbers of its parents and gives their sum and one, and the number of its
 * last node, worked out without the engine: it is right only if every node was.
 */
function shaped(shape: Shape, count: number): { readonly definition: Workflow; readonly last: number } {
  const random = new Random(42);
  const nodes: WorkflowNode[] = [];
  const numbers = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const parents = parentsOf(shape, i, count, random);
    nodes.push(reader(i, parents, shape));
    numbers[i] = sum(parents.map((parent) => numbers[parent]!));
  }
  return { definition: workflow(nodes, { on_error: "fail_branch" }), last: numbers.at(-1)! };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => (total + number) % 1_000_003, 1);
}

function parentsOf(shape: Shape, i: number, count: number, random: Random): number[] {
  if (i === 0) return [];
  if (shape === "chain") return [i - 1];
  if (shape === "fan" || shape === "retries") {
    return i < count - 1 ? [0] : Array.from({ length: count - 2 }, (_, k) => k + 1);
  }
  const parents = new Set<number>();
  for (let k = random.integer(1, 4); k > 0; k--) parents.add(random.integer(Math.max(0, i - 200), i - 1));
  return [...parents];
}

function reader(i: number, parents: readonly number[], shape: Shape): WorkflowNode {
  const ids = parents.map((parent) => `n${parent}`);
  const retry = { max_attempts: 2, base_delay_seconds: 1, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
  return node(`n${i}`, ids, {
    config: { from: ids.map((id) => `{{ ${id}.n }}`) },
    ...(shape === "retries" && { retry }),
  });
}

async function measure(shape: Shape, count: number): Promise<void> {
  const engine = await memoryEngine(
    {
      step: ({ config, attempt, nodeId }) => {
        if (shape === "retries" && attempt === 1 && nodeId !== "n0") throw new Error("not yet");
        return { n: sum((config as { from: readonly number[] }).from) };
      },
    },
    { worker: { slots: 200 } },
  );
  // The engine has its partition and the code is warm before anything is measured.
  await engine.run(shaped("chain", 20).definition);
  const { definition, last } = shaped(shape, count);
  const startMs = performance.now();
  const id = await engine.start(definition);
  await ended(engine, entityKey("execution", id));
  const ms = performance.now() - startMs;
  const rssMiB = process.resourceUsage().maxRSS / 1024;

  // Reading it folds the whole journal once more, which is not what is measured.
  const state = await engine.read(id);
  await engine.stop();
  const output = state.runs[count - 1]?.output;
  const right = state.status === "completed" && output && "json" in output && (output.json as { n: number }).n === last;
  print(shape, String(count), ms.toFixed(0), ((ms * 1000) / count).toFixed(1), rssMiB.toFixed(0), right ? "" : "WRONG");
}

async function ended(engine: MemoryEngine, entity: string): Promise<void> {
  for (;;) {
    const { items } = await engine.store.queries.headers({ limit: 5 });
    if (items.some((header) => header.entity === entity && header.class !== "open")) return;
    await nodeHost.sleep(20);
  }
}

function print(...cells: readonly string[]): void {
  const [shape, ...numbers] = cells;
  console.log(shape!.padEnd(10) + numbers.map((cell) => cell.padStart(14)).join(""));
}

const [shape, count] = process.argv.slice(2);
if (shape !== undefined && count !== undefined) {
  await measure(shape as Shape, Number(count));
} else {
  print("shape", "nodes", "total ms", "ms per 1,000", "peak RSS MiB");
  const rows = shape === undefined ? ROWS : ROWS.filter(([name]) => name === shape);
  for (const [name, nodes] of rows) {
    const script = [import.meta.filename, name, String(nodes)];
    const { status, signal } = spawnSync(process.execPath, script, { stdio: "inherit", timeout: 600_000 });
    if (status !== 0) print(name, String(nodes), signal ?? `exit ${status}`);
  }
}
