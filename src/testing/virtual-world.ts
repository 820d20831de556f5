import { Service } from "../api/service/service.ts";
import { MACHINES } from "../core/machines.ts";
import type { TaskText } from "../core/execution/prepare.ts";
import { type MemoryStore, openMemory } from "../drivers/memory/memory-store.ts";
import { Engine } from "../engine/engine.ts";
import type { EngineSettings } from "../engine/settings.ts";
import type { Host } from "../host/host.ts";
import { SimProcess } from "../simulator/process.ts";
import { Random } from "../simulator/random.ts";
import { Timeline } from "../simulator/timeline.ts";
import type { Store } from "../store/contract.ts";
import type { Handler } from "../worker/handler.ts";
import type { LogEntry } from "../worker/delivery.ts";
import { Worker, type WorkerSettings } from "../worker/worker.ts";

const YEAR_MS = 31_536_000_000;
const HOUR_MS = 3_600_000;

/**
 * In one process on a store in memory every wake-up arrives, so nobody has to look again before long. Time that passes
 * in a test then costs as much as what happens in it, however long it is.
 */
const ENGINE: Partial<EngineSettings> = { leaseMs: YEAR_MS, renewMs: HOUR_MS, idleMs: HOUR_MS, checkWhole: true };
const WORKER: Partial<WorkerSettings> = {
  slots: 1_000,
  leaseMs: YEAR_MS,
  pollMs: HOUR_MS,
  startReportMs: HOUR_MS,
  heartbeatMs: HOUR_MS,
};

/** How many rounds of the event loop a request may take before time has to pass for it. */
const ROUNDS = 50;

export interface WorldOptions {
  readonly seed: number;
  /** What the clocks of the world show at the beginning. */
  readonly startAtMs: number;
  /** How long, in real time, to wait for a function before virtual time passes without it. */
  readonly patienceMs: number;
  readonly handlers: ReadonlyMap<string, Handler>;
  readonly queues: readonly string[];
  readonly logged: (task: TaskText, entry: LogEntry) => void;
}

/** One life of the process: it ends with a crash, and the next one begins with what the store holds. */
interface Life {
  readonly process: SimProcess;
  readonly memory: MemoryStore;
  readonly service: Service;
  /** Functions that are running, and that time waits for. */
  readonly running: Set<Promise<unknown>>;
}

/**
 * The production engine, worker and service over a store in memory, in a time of their own that stands still unless it
 * is told to pass. Functions of the user run in real time; virtual time waits for them.
 */
export class VirtualWorld {
  readonly #options: WorldOptions;
  readonly #timeline = new Timeline();
  readonly #random: Random;
  #life: Life | undefined;
  #lives = 0;
  #isBooting = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  get service(): Service {
    return this.#current.service;
  }

  get memory(): MemoryStore {
    return this.#current.memory;
  }

  get host(): Host {
    return this.#current.process.host;
  }

  get #current(): Life {
    if (this.#life === undefined) throw new Error("the world has not begun, or is closed");
    return this.#life;
  }

  /** Starts the process on what the store holds. */
  async boot(): Promise<void> {
    const before = this.#life;
    const process = new SimProcess(`process-${++this.#lives}`, this.#timeline, this.#random.fork());
    process.wallOffsetMs = this.#options.startAtMs;
    const host: Host = {
      ...process.host,
      // No jitter: a test that waits for a backoff knows how long it is.
      random: () => 0,
      // Nobody waits for an hour to see whether the partition is theirs already.
      sleep: (ms, signal) => process.host.sleep(this.#isBooting ? Math.min(ms, 1) : ms, signal),
    };
    const memory = openMemory({ host, volatileTasks: true });
    if (before !== undefined) inherit(memory, before.memory);
    const service = new Service({ store: patient(memory), host });
    const life: Life = { process, memory, service, running: new Set() };
    this.#life = life;
    const engine = new Engine({ store: memory, host, machines: MACHINES, settings: ENGINE });
    const handlers = new Map([...this.#options.handlers].map(([name, handler]) => [name, watched(handler, life)]));
    const { queues, logged } = this.#options;
    const worker = new Worker({ store: memory, host, handlers, queues, settings: WORKER, observer: { logged } });
    this.#isBooting = true;
    service.start();
    engine.start();
    worker.start();
    while (memory.data.partitions[0]!.nonce === null || isHeldByAnother(memory, engine.name)) await this.#pass(1);
    this.#isBooting = false;
    await this.#pass(1);
  }

  /** The process dies as by `kill -9`: what was not committed is gone, and nothing of it has any effect any more. */
  async crash(): Promise<void> {
    const { process, memory } = this.#current;
    process.kill();
    await this.boot();
    await memory.close();
  }

  async close(): Promise<void> {
    const { process, memory, service } = this.#current;
    this.#life = undefined;
    service.stop();
    process.kill();
    await memory.close();
  }

  /** Waits for the answer to a request, which may set things going. */
  async until<T>(asked: Promise<T>): Promise<T> {
    let isDone = false;
    const noted = asked.finally(() => (isDone = true)).catch(() => undefined);
    for (let rounds = 0; !isDone; rounds++) {
      await this.#pass(rounds < ROUNDS ? 0 : 1);
      await this.#functions(() => isDone);
    }
    await noted;
    return asked;
  }

  /** Lets everything happen that can happen without time passing. */
  async settle(): Promise<void> {
    do {
      await this.#pass(0);
      await this.#functions(() => false);
      await this.#pass(0);
    } while (this.#current.running.size > 0);
  }

  /** Lets time pass, and everything happen that happens meanwhile. */
  async advance(ms: number): Promise<void> {
    await this.settle();
    const untilMs = this.#timeline.now + ms;
    for (;;) {
      await this.#timeline.runUntil(untilMs, () => this.#current.running.size > 0);
      if (this.#current.running.size === 0) break;
      await this.settle();
    }
    await this.settle();
  }

  async #pass(ms: number): Promise<void> {
    await this.#timeline.runUntil(this.#timeline.now + ms);
    await round();
    await round();
  }

  /** Waits for the functions that are running, in real time; one that does not end is left alone after a while. */
  async #functions(isEnough: () => boolean): Promise<void> {
    const { running } = this.#current;
    while (running.size > 0 && !isEnough()) {
      const waited = [...running];
      const isPatient = await soonest(waited, this.#options.patienceMs);
      if (!isPatient) for (const one of waited) running.delete(one);
      await this.#pass(0);
    }
  }
}

/** A handler of which the world knows when it runs, and that does nothing any more once its process is dead. */
function watched(handler: Handler, life: Life): Handler {
  return (call) => {
    if (!life.process.alive) return new Promise(() => {});
    const running = Promise.resolve(handler(call));
    const over = running.then(
      () => undefined,
      () => undefined,
    );
    life.running.add(over);
    void over.then(() => life.running.delete(over));
    return running;
  };
}

/** The same store for somebody who looks for replies every second. */
function patient(memory: MemoryStore): Store {
  const { capabilities, partitions, inbox, journal, tasks, records, queries } = memory;
  return {
    capabilities,
    partitions,
    inbox: {
      append: (messages) => inbox.append(messages),
      read: (requests, waitMs) => inbox.read(requests, waitMs),
      replies: (process) => inbox.replies(process, HOUR_MS),
    },
    journal,
    tasks,
    records,
    queries,
    close: () => memory.close(),
  };
}

/** What a disk would have kept; and the lock of a process is gone with it. */
function inherit(memory: MemoryStore, before: MemoryStore): void {
  const data = before.dump();
  for (const partition of data.partitions) partition.leaseUntilMs = 0;
  data.registrations.clear();
  memory.restore(data);
  memory.restart();
}

function isHeldByAnother(memory: MemoryStore, engine: string): boolean {
  return memory.data.partitions.some(({ owner }) => owner !== engine);
}

/** False if none of them ended within the time. */
async function soonest(promises: readonly Promise<unknown>[], timeoutMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), timeoutMs)));
  const ended = Promise.race(promises).then(() => true as const);
  try {
    return await Promise.race([ended, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Everything that promises have set off has happened when the event loop comes round. */
function round(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
