import { DEFINITION_SCOPE, entityId, entityKey, entityKind, partitionOf } from "../core/entity.ts";
import { executionMachine } from "../core/execution/machine.ts";
import type { ExecutionState } from "../core/execution/state.ts";
import { cacheMachine } from "../core/cache/machine.ts";
import { gateMachine } from "../core/gate/machine.ts";
import type { GateState } from "../core/gate/state.ts";
import type { Machine, MachineEvent } from "../core/machine.ts";
import type { Workflow } from "../definition/workflow.ts";
import { openMemory, type MemoryStore } from "../drivers/memory/memory-store.ts";
import { Engine } from "../engine/engine.ts";
import type { EngineSettings } from "../engine/settings.ts";
import { Requests } from "../inbox/requests.ts";
import type { Json } from "../json/json.ts";
import type { CommitBatch, Store } from "../store/contract.ts";
import { Worker, type WorkerSettings } from "../worker/worker.ts";
import { CANARY } from "./generate-config.ts";
import { type HandlerMood, simulatedHandler } from "./handlers.ts";
import type { HistoryEntry, World } from "./history.ts";
import { type Field, Nemesis } from "./nemesis.ts";
import { connect, fairWeather, type Weather } from "./network.ts";
import { type Client, People, type Town } from "./people.ts";
import { SimProcess } from "./process.ts";
import { Random } from "./random.ts";
import { Reading } from "./reading.ts";
import { remainsOf } from "./remains.ts";
import { Submitters } from "./submitters.ts";
import { tallyMachine } from "./tally.ts";
import { drawKeeping, type Keeping, Tidying } from "./tidying.ts";
import { Timeline } from "./timeline.ts";

export interface ScheduleOptions {
  readonly seed: number;
  /** Run this one, instead of generated ones. */
  readonly workflow?: Workflow;
  readonly input?: Json;
  /** What its handlers give, by node; generated ones give something of their own. */
  readonly samples?: Readonly<Record<string, Json>>;
  readonly executions?: number;
  readonly faults?: number;
  /** Only these faults, by their place in the plan of the seed: how a failure is shrunk. */
  readonly keepFaults?: ReadonlySet<number>;
}

export interface ScheduleResult {
  readonly world: World;
  readonly steps: number;
  readonly faults: ReadonlyMap<string, number>;
  readonly simulatedMs: number;
  /** Assertions of our own code that failed. */
  readonly bugs: readonly string[];
}

/** How long faults go on, and how long a healed world has to come to rest. */
const FAULTS_MS = 40_000;
const REST_MS = 3 * 3_600_000;
/** A world in which more than this happens turns in circles: ten times what the busiest was ever seen to do. */
const MOST_STEPS = 300_000;
const MOST_STEPS_PER_SECOND = 1_500;
/** Partition time starts somewhere in real time, so that nothing depends on its being small. */
const EPOCH_MS = 1_750_000_000_000;

const QUEUES = ["step", "fast", "slow"];
const NEWER_FORMAT = 1_000;

/** Everything that is drawn once for a world. */
interface Knobs {
  readonly partitions: number;
  readonly engines: number;
  readonly workers: number;
  readonly liveness: boolean;
  readonly lossy: boolean;
  readonly volatileTasks: boolean;
  readonly poison: "none" | "throws" | "kills";
  /** Two releases run side by side, and only the newer can read what it writes. */
  readonly mixedReleases: boolean;
  readonly engine: Partial<EngineSettings>;
  readonly queuesCommits: boolean;
  readonly maxBatchEntries: number;
  readonly slowness: number;
  readonly mood: HandlerMood;
}

/**
 * How often what lives for ever says all it is, of a randomness of its own: in half of the worlds all the time. The number
 * spares the worlds that have names.
 */
function renewalOf(seed: number): number {
  const random = new Random(seed ^ 0x51120991);
  return random.pick([2, 5, 20, 2_000, 2_000, 2_000]);
}

/** How long after its last use a gate is removed, of a randomness of its own; null where gates stay. */
function gateRetentionOf(seed: number): number | null {
  const random = new Random(seed ^ 0x1f843425);
  return random.pick([1_000, 10_000, 60_000, null, null, null]);
}

/** Whether it is the store that a poisoned execution fails at, of a randomness of its own that spares worlds with names. */
function isPoisonToStore(seed: number, poison: Knobs["poison"]): boolean {
  return poison === "throws" && new Random(seed ^ 0x2b60d6ec).chance(0.5);
}

/** Whether a second commit may follow the first at once, of a randomness of its own. */
function queuesCommits(seed: number): boolean {
  return new Random(seed ^ 0x6b21c4f7).chance(0.4);
}

function drawKnobs(random: Random): Omit<Knobs, "queuesCommits"> {
  const lossy = random.chance(0.1);
  const volatileTasks = !lossy && random.chance(0.15);
  const maxEvents = random.pick([2, 4, 16, 256]);
  return {
    partitions: volatileTasks ? 1 : random.pick([1, 1, 2, 4]),
    engines: volatileTasks ? 1 : random.integer(1, 3),
    workers: random.integer(1, 3),
    liveness: random.chance(0.4),
    lossy,
    volatileTasks,
    poison: lossy
      ? "none"
      : random.weighted([
          [16, "none" as const],
          [1, "throws" as const],
          [1, "kills" as const],
        ]),
    mixedReleases: !lossy && random.chance(0.08),
    engine: {
      window: random.pick([1, 2, 5, 1000]),
      maxResidents: random.pick([1, 1, 3, 10_000]),
      snapshotEvents: random.pick([3, 10, 1000]),
      maxEvents,
      maxWakes: random.pick([1, 5, 200]),
      horizonMs: random.pick([2_000, 60_000]),
      checkWhole: true,
    },
    maxBatchEntries: Math.max(maxEvents * 2, random.pick([8, 40, 1000])),
    slowness: random.pick([0.05, 0.3]),
    mood: {
      failing: random.pick([0, 0.1, 0.3]),
      fatal: random.pick([0, 0.02, 0.1]),
      hanging: random.pick([0, 0, 0.03]),
      killing: random.pick([0, 0, 0.02]),
      slow: random.pick([0, 0.1, 0.4]),
      large: random.pick([0, 0, 0.05]),
    },
  };
}

/** One world, from its seed to its end. */
export async function runSchedule(options: ScheduleOptions): Promise<ScheduleResult> {
  const simulation = new Simulation(options);
  return simulation.run();
}

/** A simulated cluster: production engines, workers and requests over one store, a network between, and a nemesis. */
export class Simulation implements Field, Town {
  readonly timeline = new Timeline();
  readonly random: Random;
  readonly weather: Weather = fairWeather();
  readonly memory: MemoryStore;
  readonly knobs: Knobs;
  readonly storeProcess: SimProcess;
  readonly history: HistoryEntry[] = [];
  readonly engines: { process: SimProcess; engine: Engine }[] = [];
  readonly workers: { process: SimProcess; worker: Worker }[] = [];

  readonly mayHoldMail: boolean;
  heldMail = 0;
  readonly nonces = new Map<number, string>();
  readonly refused = new Set<string>();

  private readonly options: ScheduleOptions;
  private readonly definitions = new Map<string, Workflow>();
  private readonly people: People;
  private readonly submitters: Submitters;
  private readonly poisoned = new Set<string>();
  private readonly isPoisonToStore: boolean;
  private readonly nemesis: Nemesis;
  private readonly bugs: string[] = [];
  private isHealed = false;
  private keeping: Keeping = { retentionMs: null, keepEnded: null };
  private names = 0;
  private steps = 0;

  constructor(options: ScheduleOptions) {
    this.options = options;
    this.random = new Random(options.seed);
    const knobs = drawKnobs(this.random.fork());
    const engine = { ...knobs.engine, renewEvents: renewalOf(options.seed), followEntries: 1 };
    this.knobs = { ...knobs, engine, queuesCommits: queuesCommits(options.seed) };
    this.storeProcess = new SimProcess("store", this.timeline, this.random.fork());
    this.storeProcess.wallOffsetMs = EPOCH_MS;
    const { partitions, volatileTasks, lossy, queuesCommits: queues } = this.knobs;
    this.mayHoldMail = !lossy;
    this.isPoisonToStore = isPoisonToStore(options.seed, this.knobs.poison);
    this.memory = openMemory({ host: this.storeProcess.host, partitions, volatileTasks, queuesCommits: queues });
    this.nemesis = new Nemesis(this, this.random.fork(), options.keepFaults);
    this.people = new People(this, this.random.fork(), this.client());
    this.submitters = new Submitters(this, this.people, { ...options, forgets: lossy }, EPOCH_MS);
  }

  get isCalm(): boolean {
    return this.isHealed;
  }

  define(hash: string, workflow: Workflow): void {
    this.definitions.set(hash, workflow);
  }

  /** A definition that somebody submitted, or that an engine has stored for the inside of a map. */
  definition(hash: string): Workflow | undefined {
    let workflow = this.definitions.get(hash);
    const text = workflow === undefined ? this.memory.data.records.get(DEFINITION_SCOPE)?.get(hash) : undefined;
    if (text !== undefined) this.definitions.set(hash, (workflow = JSON.parse(text) as Workflow));
    return workflow;
  }

  get slowness(): number {
    return this.knobs.slowness;
  }

  bug(message: string): void {
    this.bugs.push(message);
  }

  record(entry: HistoryEntry): void {
    this.history.push(entry);
  }

  async run(): Promise<ScheduleResult> {
    const { knobs } = this;
    for (let i = 0; i < knobs.engines; i++) this.startEngine();
    for (let i = 0; i < knobs.workers; i++) this.startWorker();
    const count = this.options.executions ?? this.random.integer(5, 10);
    this.submitters.start(count, [this.client(), this.client()], this.random);
    if (knobs.poison !== "none") this.poisoned.add(this.submitters.executions[0]!);
    this.startReader();
    this.people.start();
    this.nemesis.plan(this.options.faults ?? this.random.integer(10, 25), FAULTS_MS);
    const healAt = FAULTS_MS + 5_000;
    await this.go(knobs.liveness ? healAt : this.random.integer(FAULTS_MS / 2, FAULTS_MS + 20_000));
    if (knobs.liveness) {
      this.isHealed = true;
      this.nemesis.heal();
      // The upgrade is finished: the engines of the older release are gone, for good.
      if (knobs.mixedReleases) for (const { process } of this.engines) process.kill();
      this.record({ log: "nemesis", kind: "healed", at: this.timeline.now });
      await this.go(healAt + REST_MS);
      this.record({ log: "nemesis", kind: "quiet", at: this.timeline.now });
    }
    const world = this.world();
    // Where something was lost, or kills, some executions cannot be read any more.
    const isReadable = knobs.poison === "none" && !knobs.lossy;
    if (knobs.liveness && isReadable && this.isAtRest()) await this.tidyUp();
    return {
      world,
      steps: this.steps,
      faults: this.nemesis.counts,
      simulatedMs: this.timeline.now,
      bugs: this.bugs,
    };
  }

  /** After all that is judged has happened, and of a randomness of its own. */
  private async tidyUp(): Promise<void> {
    const random = new Random(this.options.seed ^ 0x2b992ddf);
    this.keeping = drawKeeping(random);
    for (const { process } of this.engines) process.kill();
    for (let i = 0; i < this.knobs.engines; i++) this.startEngine();
    await new Tidying(this, random, this.keeping).run();
  }

  private async go(until: number): Promise<void> {
    await this.timeline.runUntil(until, () => {
      this.steps++;
      if (this.steps % 64 !== 0) return false;
      const most = MOST_STEPS + (this.timeline.now / 1_000) * MOST_STEPS_PER_SECOND;
      if (this.steps > most) throw new Error(`${this.steps} things have happened: something turns in circles`);
      return this.isAtRest();
    });
  }

  /** Nothing is left to do, for anybody. */
  private isAtRest(): boolean {
    if (this.submitters.isBusy || this.nemesis.isPending || this.people.isBusy || this.heldMail > 0) return false;
    const { data } = this.memory;
    if (data.tasks.byToken.size > 0) return false;
    for (const [entity, { version }] of this.versions()) {
      if (!this.isGivenUp(entity) && !this.people.isContentWith(entityId(entity), version)) return false;
    }
    for (const partition of data.partitions) {
      if (partition.inbox.length > 0) return false;
      for (const entity of partition.wakes.at.keys()) if (!this.isGivenUp(entity)) return false;
    }
    for (const header of data.headers.values()) {
      if (header.class === "open" && isExecution(header.entity) && !this.isGivenUp(header.entity)) return false;
    }
    return true;
  }

  /** It was built to kill, and has: it stays where it is, unless somebody has let it go on since. */
  private isGivenUp(entity: string): boolean {
    if (!this.poisoned.has(entityId(entity))) return false;
    const records = this.memory.data.entities.get(entity)?.records ?? [];
    const last = (kind: string): number => records.findLastIndex(({ text }) => text.includes(`"kind":"${kind}"`));
    return last("quarantined") > last("released");
  }

  /** Whatever is no execution, and is still to be looked at. */
  private restless(): readonly string[] {
    return this.memory.data.partitions.flatMap(({ wakes }) => [...wakes.at.keys()].filter((key) => !isExecution(key)));
  }

  private *versions(): Iterable<readonly [string, { readonly version: number }]> {
    for (const [entity, { records }] of this.memory.data.entities) {
      const last = records.at(-1);
      if (last === undefined || !isExecution(entity)) continue;
      yield [entity, { version: last.version + last.count - 1 }];
    }
  }

  // ── processes ─────────────────────────────────────────────────────────────────────────────────────────────────

  process(kind: string): SimProcess {
    return new SimProcess(`${kind}-${++this.names}`, this.timeline, this.random.fork());
  }

  connect(process: SimProcess): Store {
    return connect(this, process, { maxBatchEntries: this.knobs.maxBatchEntries });
  }

  startEngine(): void {
    const process = this.process("engine");
    const store = this.connect(process);
    const newer = this.knobs.mixedReleases && (this.isHealed || this.random.chance(0.5));
    const machine = { ...(this.machineFor(process) as Machine), ...(newer && { eventFormat: NEWER_FORMAT }) };
    const machines: Machine[] = [machine, this.gateMachine(), cacheMachine, tallyMachine];
    const observer = {
      quarantined: (key: string, error: unknown) => {
        if (!this.poisoned.has(entityId(key))) this.bug(`${key} was quarantined: ${String(error)}`);
      },
    };
    const settings = { ...this.knobs.engine, ...this.keeping };
    const engine = new Engine({ store, host: process.host, machines, settings, observer });
    this.engines.push({ process, engine });
    engine.start();
  }

  /** The production machine; in part of the worlds gates go soon, which others do with the executions. */
  private gateMachine(): Machine {
    const afterMs = gateRetentionOf(this.options.seed);
    if (afterMs === null) return gateMachine;
    const expiresAtMs = (state: GateState): number | null => {
      const idleMs = gateMachine.idleSinceMs!(state);
      return idleMs === null ? null : idleMs + afterMs;
    };
    return { ...gateMachine, expiresAtMs };
  }

  /** The results of some executions are nothing that this store could write down. */
  isRejected({ records }: CommitBatch): boolean {
    if (!this.isPoisonToStore) return false;
    const isResult = ({ kind }: MachineEvent): boolean => kind === "taskCompleted";
    return records.some(
      ({ entity, text }) => this.poisoned.has(entityId(entity)) && (JSON.parse(text) as MachineEvent[]).some(isResult),
    );
  }

  /** The production machine; in a poisoned world one that throws, or kills its process, at certain executions. */
  private machineFor(process: SimProcess): Machine<ExecutionState> {
    const { poison } = this.knobs;
    if (poison === "none" || this.isPoisonToStore) return executionMachine;
    return {
      ...(executionMachine as unknown as Machine<ExecutionState>),
      decide: (state, message, context) => {
        if (this.poisoned.has(state.id) && message.body.kind === "taskCompleted") {
          if (poison === "kills") process.kill();
          throw new Error("poison");
        }
        return executionMachine.decide(state, message, context);
      },
    };
  }

  startWorker(settings: Partial<WorkerSettings> = {}): SimProcess {
    const process = this.process("worker");
    const store = this.connect(process);
    const killed = (): void => {
      this.record({
        log: "nemesis",
        kind: "fault",
        at: this.timeline.now,
        fault: "handler kills",
        target: process.name,
      });
    };
    const handler = simulatedHandler(process, this.knobs.mood, this.options.seed, killed, this.options.samples);
    const { name } = process;
    const record = this.record.bind(this);
    const entry = (token: string) => ({ log: "worker" as const, at: this.timeline.now, worker: name, token });
    const worker = new Worker({
      store,
      host: process.host,
      handlers: new Map([
        [
          "step",
          async (call) => {
            record({ ...entry(call.token), kind: "handlerStart", config: call.config, inputs: call.inputs });
            try {
              const output = await handler(call);
              record({ ...entry(call.token), kind: "handlerEnd", output, failed: false });
              return output;
            } catch (error) {
              record({ ...entry(call.token), kind: "handlerEnd", output: undefined, failed: true });
              throw error;
            }
          },
        ],
      ]),
      queues: QUEUES,
      secret: (secret) => (secret === "CANARY" ? CANARY : undefined),
      settings: { slots: 3, leaseMs: 4_000, heartbeatMs: 1_000, startReportMs: 500, graceMs: 2_000, ...settings },
      observer: {
        delivered: ({ token, execution, node, attempt, delivery, idempotencyKey }) =>
          record({ ...entry(token), kind: "delivered", execution, node, attempt, delivery, idempotencyKey }),
        settled: ({ token }, outcome) => record({ ...entry(token), kind: "settled", outcome }),
      },
    });
    this.workers.push({ process, worker });
    worker.start();
    return process;
  }

  // ── clients ───────────────────────────────────────────────────────────────────────────────────────────────────

  client(): Client {
    const process = this.process("client");
    const store = this.connect(process);
    const requests = new Requests(store, process.host);
    requests.start();
    return { process, requests, store };
  }

  /** Reads all the time through a process that owns nothing: never too much, never too little, never backwards. */
  private startReader(): void {
    const process = this.process("reader");
    const store = this.connect(process);
    const random = this.random.fork();
    const reading = new Reading();
    const loop = async (): Promise<void> => {
      for (;;) {
        await process.host.sleep(random.integer(200, 2_500));
        const execution = random.pick(random.chance(0.7) ? this.submitters.executions : this.everybody());
        const sentAfter = this.history.length;
        try {
          const entity = entityKey("execution", execution);
          const partition = partitionOf(entity, store.capabilities.partitionCount);
          const [loaded] = await store.journal.load([{ partition, entity, aboveVersion: 0 }]);
          const events = reading.read(execution, loaded!.records);
          const status = events.length === 0 ? "NONE" : statusIn(events);
          this.record({
            log: "client",
            kind: "read",
            at: this.timeline.now,
            reader: process.name,
            execution,
            found: events.length > 0,
            version: events.length,
            status,
            sentAfter,
          });
        } catch {
          // No answer: nothing was seen.
        }
      }
    };
    void loop();
  }

  /** Whatever is on the lists, children included. */
  private everybody(): readonly string[] {
    const listed = [...this.memory.data.headers.keys()].filter((entity) => entity.startsWith("execution/"));
    return listed.length === 0 ? this.submitters.executions : listed.map(entityId);
  }

  private world(): World {
    const { knobs } = this;
    for (const hash of this.memory.data.records.get(DEFINITION_SCOPE)?.keys() ?? []) this.definition(hash);
    const definitions = Object.fromEntries(this.definitions);
    return {
      seed: this.options.seed,
      definitions,
      published: this.submitters.published,
      history: [...this.history],
      remains: remainsOf(this.memory, definitions),
      liveness: knobs.liveness,
      restless: knobs.liveness ? this.restless() : [],
      lossy: knobs.lossy,
      volatileTasks: knobs.volatileTasks,
      poisoned: [...this.poisoned],
      secrets: { CANARY },
    };
  }
}

/** Only executions come to an end. */
function isExecution(entity: string): boolean {
  return entityKind(entity) === "execution";
}

function statusIn(events: readonly MachineEvent[]): string {
  const last = events.findLast(({ kind }) => kind === "executionEnded" || kind === "generationOpened");
  return last?.kind === "executionEnded" ? (last as MachineEvent & { status: string }).status.toUpperCase() : "OPEN";
}
