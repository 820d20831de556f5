import type { MemoryData } from "../drivers/memory/memory-data.ts";
import type { WorkerSettings } from "../worker/worker.ts";
import { fairWeather } from "./network.ts";
import type { SimProcess } from "./process.ts";
import type { Random } from "./random.ts";
import type { Ground } from "./network.ts";

type FaultKind =
  | "kill engine"
  | "stop engine"
  | "pause engine"
  | "sleep engine"
  | "cut engine"
  | "kill worker"
  | "stop worker"
  | "pause worker"
  | "cut worker"
  | "silence worker"
  | "store down"
  | "store full"
  | "bad weather"
  | "disorder"
  | "store clock"
  | "wall clock"
  | "store back"
  | "restart all"
  | "rubbish";

/** How often each fault is drawn, beside the others. */
const WEIGHTS: readonly (readonly [number, FaultKind])[] = [
  [5, "kill engine"],
  [2, "stop engine"],
  [4, "pause engine"],
  [1, "sleep engine"],
  [3, "cut engine"],
  [4, "kill worker"],
  [2, "stop worker"],
  [3, "pause worker"],
  [2, "cut worker"],
  [1, "silence worker"],
  [2, "store down"],
  [1, "store full"],
  [4, "bad weather"],
  [2, "disorder"],
  [2, "store clock"],
  [1, "wall clock"],
  [1, "rubbish"],
];

/** The world as the one who attacks it sees it. */
export interface Field extends Ground {
  readonly knobs: {
    readonly engines: number;
    readonly workers: number;
    readonly lossy: boolean;
    readonly volatileTasks: boolean;
  };
  readonly storeProcess: SimProcess;
  readonly history: readonly unknown[];
  readonly engines: readonly { readonly process: SimProcess; readonly engine: { stop(): Promise<void> } }[];
  readonly workers: readonly { readonly process: SimProcess; readonly worker: { stop(): Promise<void> } }[];
  startEngine(): void;
  startWorker(settings?: Pick<WorkerSettings, "heartbeatMs" | "startReportMs" | "limitedReportMs">): SimProcess;
}

/** Does everything that machines, networks and people do to a cluster. Each world gets some kinds of fault, not all. */
export class Nemesis {
  readonly counts = new Map<string, number>();
  private readonly world: Field;
  private readonly random: Random;
  private readonly keep: ReadonlySet<number> | undefined;
  private pending = 0;
  private healed = false;
  private readonly epochMs: number;
  private saved: { data: MemoryData; order: number } | null = null;

  constructor(world: Field, random: Random, keep: ReadonlySet<number> | undefined) {
    this.world = world;
    this.random = random;
    this.keep = keep;
    this.epochMs = world.storeProcess.wallOffsetMs;
    this.setClock(0);
  }

  get isPending(): boolean {
    return this.pending > 0;
  }

  /** Draws the faults of a world and when they strike. */
  plan(count: number, withinMs: number): void {
    const { random, world } = this;
    const { lossy, volatileTasks } = world.knobs;
    const kinds = WEIGHTS.filter(() => random.chance(0.6));
    const menu = kinds.length === 0 ? WEIGHTS : kinds;
    for (let i = 0; i < count; i++) {
      const special: FaultKind | undefined =
        lossy && i < 2 ? "store back" : volatileTasks && i < 3 ? "restart all" : undefined;
      const kind = special ?? random.weighted(menu);
      const at = random.integer(500, withinMs);
      const own = random.fork();
      if (this.keep !== undefined && !this.keep.has(i)) continue;
      this.pending++;
      world.timeline.after(at, () => {
        this.pending--;
        if (!this.healed) this.strike(kind, own);
      });
    }
    if (lossy) world.timeline.after(random.integer(1_000, withinMs / 2), () => this.save());
    this.supervise();
  }

  /** Everything is well again, and stays so. Whoever is stopped or asleep comes back in its own time. */
  heal(): void {
    this.healed = true;
    Object.assign(this.world.weather, fairWeather());
    // Somebody sets a clock that is behind; otherwise all dates would have to be waited for.
    const behindMs = this.epochMs - this.world.storeProcess.wallOffsetMs;
    if (behindMs > 0) this.setClock(behindMs);
  }

  private setClock(byMs: number): void {
    const { storeProcess, timeline } = this.world;
    storeProcess.wallOffsetMs += byMs;
    this.world.record({ log: "nemesis", kind: "clock", at: timeline.now, offsetMs: storeProcess.wallOffsetMs });
  }

  private note(kind: string, target: string): void {
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    this.world.record({ log: "nemesis", kind: "fault", at: this.world.timeline.now, fault: kind, target });
  }

  /** Whoever dies is started again, as any supervisor would. */
  private supervise(): void {
    const { world, random } = this;
    const engines = world.engines.filter(({ process }) => process.alive).length;
    const workers = world.workers.filter(({ process }) => process.alive).length;
    if (engines < world.knobs.engines) world.startEngine();
    if (workers < world.knobs.workers) world.startWorker();
    world.timeline.after(random.integer(300, 3_000), () => this.supervise());
  }

  private strike(kind: FaultKind, random: Random): void {
    const { world } = this;
    const engine = random.pick(world.engines.filter(({ process }) => process.alive));
    const worker = random.pick(world.workers.filter(({ process }) => process.alive));
    const target = kind.endsWith("engine") ? engine?.process : kind.endsWith("worker") ? worker?.process : undefined;
    if ((kind.endsWith("engine") || kind.endsWith("worker")) && target === undefined) return;
    this.note(kind, target?.name ?? "store");
    switch (kind) {
      case "kill engine":
      case "kill worker":
        return target!.kill();
      case "stop engine":
        return void engine.engine.stop().then(() => engine.process.kill());
      case "stop worker":
        return void worker.worker.stop().then(() => worker.process.kill());
      case "pause engine":
      case "pause worker":
        return target!.pause(random.integer(200, 12_000));
      case "sleep engine":
        return target!.putToSleep(random.integer(1_000, 20_000));
      case "cut engine":
      case "cut worker":
        return void world.weather.cutUntil.set(target!.name, world.timeline.now + random.integer(500, 10_000));
      case "silence worker":
        target!.kill();
        // It works, but never says that it is still there: tasks longer than its lease are lost again and again.
        return this.note(
          "silent",
          world.startWorker({ heartbeatMs: 1e9, startReportMs: 1e9, limitedReportMs: 1e9 }).name,
        );
      case "store down":
        world.weather.downUntil = world.timeline.now + random.integer(300, 5_000);
        return;
      case "store full":
        world.weather.fullUntil = world.timeline.now + random.integer(300, 4_000);
        return;
      case "bad weather":
        return this.badWeather(random);
      case "disorder":
        world.weather.disorder = 0.5;
        return world.timeline.after(random.integer(1_000, 8_000), () => (world.weather.disorder = 0));
      case "store clock":
        return this.setClock(random.pick([-3_600_000, -5_000, 3_000, 30_000, 3_600_000]));
      case "wall clock":
        for (const { process } of world.engines) process.wallOffsetMs += random.pick([-3_600_000, 3_600_000]);
        return;
      case "store back":
        return this.goBack();
      case "restart all":
        return this.restartAll();
      case "rubbish":
        return this.throwRubbish(random);
    }
  }

  /** Somebody writes into an inbox what no engine can read. */
  private throwRubbish(random: Random): void {
    const { memory } = this.world;
    const text = random.pick([
      `{"id":"${random.hex(8)}`,
      `{"id":"${random.hex(8)}","to":"execution/x","body":{"kind":"?"}}`,
    ]);
    void memory.inbox.append([
      { partition: random.integer(0, memory.capabilities.partitionCount - 1), start: false, text },
    ]);
  }

  private badWeather(random: Random): void {
    const { weather, timeline } = this.world;
    weather.loss = random.pick([0, 0.02, 0.2]);
    weather.duplication = random.pick([0, 0.1, 0.5]);
    weather.delay = random.pick([0, 0.02, 0.2]);
    timeline.after(random.integer(1_000, 8_000), () => {
      weather.loss = 0;
      weather.duplication = 0;
      weather.delay = 0;
    });
  }

  private save(): void {
    this.saved = { data: this.world.memory.dump(), order: this.world.history.length };
  }

  /** The store forgets what it had acknowledged: a replica that was behind became the primary. */
  private goBack(): void {
    const { world, saved } = this;
    if (saved === null) return this.save();
    world.memory.restore(saved.data);
    world.record({ log: "nemesis", kind: "rolledBack", at: world.timeline.now, toOrder: saved.order });
    this.save();
  }

  /** One process holds engine and queues: it dies, and with it every task that was only in its memory. */
  private restartAll(): void {
    const dead: SimProcess[] = [...this.world.engines, ...this.world.workers].map(({ process }) => process);
    for (const process of dead) process.kill();
    this.world.memory.restart();
    this.world.startEngine();
    this.world.startWorker();
  }
}
