/**
 * One turn of one contender, in a process of its own: starts it, warms it up, waits for the word, measures, and ends.
 * Whoever forked it counts what it uses between the word and the answer.
 */
import { once } from "node:events";
import { analyze } from "./contenders/postgres-server.ts";
import type { Contender, Entry, Servers } from "./contender.ts";
import { entryNamed } from "./entries.ts";
import { Probe, type Stamp } from "./probe.ts";
import { type Shape, shapeNamed } from "./shapes.ts";

export interface TurnOrder {
  readonly entry: string;
  readonly shape: string;
  readonly measure: Measure;
  readonly servers: Servers;
}

export type Measure =
  | { readonly kind: "throughput"; readonly warmSeconds: number; readonly seconds: number }
  | { readonly kind: "latency"; readonly warmRuns: number; readonly runs: number };

/** What a turn tells, in this order. */
export type TurnWord =
  | { readonly kind: "warm"; readonly servers: Contender["servers"] }
  | { readonly kind: "measured"; readonly result: Measured };

export type Measured =
  | { readonly kind: "throughput"; readonly executions: number; readonly seconds: number }
  | {
      readonly kind: "latency";
      /** From the end of a node's last parent to its own beginning. */
      readonly edgesMs: readonly number[];
      /** From the submit to the result. */
      readonly wholesMs: readonly number[];
      /** From the submit to the beginning of the first node. */
      readonly firstsMs: readonly number[];
      /** What is not the handlers' own time, for each step. */
      readonly overheadsMs: readonly number[];
    };

/** Between two executions, so that nothing of the one is left to do in the other. */
const PAUSE_MS = 2;

async function throughput(contender: Contender, probe: Probe, entry: Entry, seconds: number): Promise<Measured> {
  const steps = probe.shape.nodes.length;
  const chunk = Math.max(1, Math.round(entry.chunkSteps / steps));
  const window = Math.max(chunk, Math.round(entry.windowSteps / steps));
  probe.reset();
  const startedMs = performance.now();
  let submitted = 0;
  while (performance.now() - startedMs < seconds * 1000) {
    await probe.until(submitted + chunk - window);
    await contender.submit(chunk);
    submitted += chunk;
  }
  await probe.until(submitted);
  await contender.settled();
  return { kind: "throughput", executions: submitted, seconds: (performance.now() - startedMs) / 1000 };
}

async function latency(contender: Contender, probe: Probe, runs: number): Promise<Measured> {
  const edgesMs: number[] = [];
  const wholesMs: number[] = [];
  const firstsMs: number[] = [];
  const overheadsMs: number[] = [];
  for (let i = 0; i < runs; i++) {
    probe.reset();
    const submittedMs = performance.timeOrigin + performance.now();
    await Promise.all([contender.runOne(), probe.until(1)]);
    const wholeMs = performance.timeOrigin + performance.now() - submittedMs;
    const stamps = new Map(probe.takeStamps().map((stamp) => [stamp.node, stamp]));
    wholesMs.push(wholeMs);
    firstsMs.push(stamps.get(probe.shape.nodes[0]!.id)!.startedMs - submittedMs);
    edgesMs.push(...edgesOf(probe.shape, stamps));
    const busyMs = [...stamps.values()].reduce((sum, { startedMs, endedMs }) => sum + endedMs - startedMs, 0);
    overheadsMs.push((wholeMs - busyMs) / probe.shape.nodes.length);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return { kind: "latency", edgesMs, wholesMs, firstsMs, overheadsMs };
}

function edgesOf({ nodes }: Shape, stamps: ReadonlyMap<string, Stamp>): readonly number[] {
  return nodes.flatMap(({ id, after }) => {
    if (after.length === 0) return [];
    const readyMs = Math.max(...after.map((parent) => stamps.get(parent)!.endedMs));
    return [stamps.get(id)!.startedMs - readyMs];
  });
}

function tell(word: TurnWord): void {
  process.send!(word);
}

// Nobody is left to tell.
process.on("disconnect", () => process.exit());
const { entry: name, shape, measure, servers } = JSON.parse(process.argv[2]!) as TurnOrder;
const entry = entryNamed(name);
const probe = new Probe(shapeNamed(shape), measure.kind === "latency");
const contender = await entry.start(probe, servers);
if (measure.kind === "throughput") await throughput(contender, probe, entry, measure.warmSeconds);
else await latency(contender, probe, measure.warmRuns);
if (contender.servers["postgres"] !== undefined) await analyze(servers.postgres);
tell({ kind: "warm", servers: contender.servers });
await once(process, "message");
const result =
  measure.kind === "throughput"
    ? await throughput(contender, probe, entry, measure.seconds)
    : await latency(contender, probe, measure.runs);
const counted = once(process, "message");
tell({ kind: "measured", result });
await counted;
await contender.close();
// Some peers leave timers and connections behind that nobody needs any more.
process.exit();
