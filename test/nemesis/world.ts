import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../scripts/services/service.ts";
import { CACHE_KIND } from "../../src/core/cache/state.ts";
import { entityKind } from "../../src/core/entity.ts";
import { Random } from "../../src/simulator/random.ts";
import type { Store } from "../../src/store/contract.ts";
import { readLines } from "../world/checks.ts";
import { type Glances, glanceAt } from "../world/glances.ts";
import { KINDS } from "../world/kinds.ts";
import type { Told } from "../world/notes.ts";
import { People } from "../world/people.ts";
import { NO_VIEWS, viewAll, type Views } from "../world/views.ts";
import { ArchiveWatch } from "./archive-watch.ts";
import { drawLossPlan, drawPlan } from "./fault-plan.ts";
import { type Loss, outlive } from "./loss.ts";
import type { Mutant } from "./mutants.ts";
import { type Life, Member, type Role } from "./member.ts";
import { type Blow, Nemesis } from "./nemesis.ts";
import { now } from "./now.ts";
import { type Found, notShipped, readStore } from "./remains.ts";
import { type Noted, type SharedStore, startStore, type StoreKind } from "./stores.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly store: StoreKind;
  readonly folder: string;
  readonly mutant?: Mutant | undefined;
  /** Whether the world is struck once more in the calm, to take times. */
  readonly takesTimes?: boolean;
  /** Whether its store loses everything, and is made again from its archive. */
  readonly loses?: boolean | undefined;
}

/** What a world leaves behind, besides its files. */
export interface Remainder {
  readonly people: People;
  readonly lives: readonly Life[];
  readonly blows: readonly Blow[];
  readonly bornAt: number;
  readonly healedAt: number;
  readonly quietAt: number;
  /** What everybody sees at the end. */
  readonly views: Views;
  readonly found: Found;
  readonly noted: readonly Noted[];
  readonly hasArchive: boolean;
  readonly loss: Loss | undefined;
  /** What was wrong already while it ran. */
  readonly wrong: readonly string[];
}

const FLEET: readonly (readonly [name: string, role: Role, hasWorker?: true])[] = [
  ["api-1", "api"],
  ["api-2", "api"],
  ["engine-1", "engine"],
  // Results of a worker inside go a shorter way.
  ["engine-2", "engine", true],
  ["worker-1", "worker"],
  ["worker-2", "worker"],
  ["gateway-1", "gateway"],
];

const LOOK_MS = 300;
const TICK_MS = 50;
/** People come with new work this often, while not too much is open. */
const WORK_MS = 800;
const MOST_OPEN = 60;
/** What takes its time has begun by then, and has not ended. */
const SLOW_MS = 700;
/** How many executions are looked at before and after a loss. */
const GLANCES = 12;
/** How long people come with new work after it. */
const AFTER_LOSS_MS = 2_000;
const READY_WITHIN_MS = 120_000;
/** A world in peace in which nothing moves for this long is stuck; with a deliberate bug in it, we do not wait as long. */
const STUCK_MS = 60_000;
const MUTANT_STUCK_MS = 15_000;
/** Longer than the lease of a task that nobody wants any more. */
const EMPTY_WITHIN_MS = 60_000;
const VIEWED_WITHIN_MS = 120_000;
/** What a process may not say in any weather: that something is broken. */
const GRAVE =
  /"msg":"(?:quarantined|incident|repaired a wait|the store has lost commits|the archive had another history|the thread that kept the leases)/;

/** Real processes over a real store that all of them share, struck again and again while people use them. */
export async function runWorld(options: WorldOptions): Promise<Remainder> {
  const store = await startStore(options.store);
  try {
    return await new NemesisWorld(options, store).run();
  } finally {
    await store.service.stop();
    await store.archive?.service.stop();
  }
}

class NemesisWorld {
  readonly #options: WorldOptions;
  readonly #store: SharedStore;
  readonly #random: Random;
  /** Others, once the store was lost. */
  #people: People;
  readonly #wrong: string[] = [];
  #members: readonly Member[] = [];
  #isStruck = true;

  constructor(options: WorldOptions, store: SharedStore) {
    this.#options = options;
    this.#store = store;
    this.#random = new Random(options.seed);
    this.#people = new People(options.seed, this.#random.fork(), LOOK_MS, KINDS);
  }

  async run(): Promise<Remainder> {
    const bornAt = now();
    const nemesis = await this.#assemble();
    const { archive: watched } = this.#store;
    const watch = watched && new ArchiveWatch(() => watched.open());
    try {
      watch?.start();
      const working = this.#bringWork();
      const loss = await this.#suffer(nemesis, this.#random.fork());
      if (this.#options.takesTimes === true) {
        await this.#allReady();
        await nemesis.strikeInCalm(() => this.#bringSlowWork());
      }
      this.#isStruck = false;
      await working;
      const healedAt = now();
      await this.#allReady();
      const store = await this.#store.open();
      await this.#rest();
      await this.#emptied(store);
      await this.#shipped(store);
      const quietAt = now();
      const views = await this.#viewAll();
      await this.#disperse("SIGTERM");
      const archive = this.#store.archive?.open();
      const lives = this.#members.flatMap((member) => member.lives);
      const found = await readStore(store, archive, unlistedIn(lives.map(({ log }) => log)));
      await store.close();
      await archive?.close();
      const times = { bornAt, healedAt, quietAt };
      const { blows, wrong } = nemesis;
      return {
        people: this.#people,
        lives,
        blows,
        ...times,
        views,
        found,
        noted: await this.#store.noted(),
        hasArchive: this.#store.archive !== undefined,
        loss,
        wrong: [...this.#wrong, ...wrong, ...(watch?.wrong ?? []), ...this.#complaints()],
      };
    } finally {
      await watch?.stop();
      await this.#disperse("SIGKILL");
    }
  }

  async #suffer(nemesis: Nemesis, random: Random): Promise<Loss | undefined> {
    const { mutant, loses = false, folder } = this.#options;
    const drawn = loses ? drawLossPlan(random) : drawPlan(random, this.#store.archive !== undefined);
    let before: Glances = new Map();
    await nemesis.strike(mutant?.steps ?? drawn, async () => {
      const over = this.#people.runs.filter(({ isOver }) => isOver).slice(-GLANCES);
      before = await glanceAt(
        this.#people,
        over.map(({ id }) => id),
      );
    });
    if (nemesis.loss === undefined) return undefined;
    const first = this.#people;
    const bereaved = { store: this.#store, members: this.#members, folder, mutant: mutant?.name, random };
    const outlived = await outlive(nemesis.loss, bereaved);
    first.leave();
    // Who comes earlier than the workers is told that nobody can do what is asked for.
    await this.#allReady();
    const people = new People(this.#options.seed, this.#random.fork(), LOOK_MS, KINDS);
    people.goOnWith(first.runs, ({ id, isOver, kind, input }) => {
      const header = outlived.archived.headers.get(`execution/${id}`);
      return isOver && header?.status === kind.expected(input).status && header.class !== "open";
    });
    this.#people = people;
    this.#introduce();
    const after = await glanceAt(people, [...before.keys()]);
    await sleep(AFTER_LOSS_MS);
    this.#wrong.push(...first.wrong, ...first.client.incidents);
    return { ...nemesis.loss, ...outlived, first, seen: { before, after } };
  }

  async #assemble(): Promise<Nemesis> {
    const { folder } = this.#options;
    const mutant = this.#options.mutant?.name;
    const ports = [await freePort(), await freePort()];
    let apis = 0;
    this.#members = FLEET.map(([name, role, hasWorker = false]) => {
      const apiPort = ports[role === "api" ? apis++ : 0]!;
      return new Member({ name, role, hasWorker, store: this.#store, folder, mutant, apiPort });
    });
    for (const member of this.#members) await member.start();
    await this.#allReady();
    return new Nemesis(this.#members, this.#store, this.#random.fork(), join(folder, "diary.txt"));
  }

  async #allReady(): Promise<void> {
    const untilMs = performance.now() + READY_WITHIN_MS;
    while (performance.now() < untilMs) {
      this.#introduce();
      if (this.#members.every(({ isReady }) => isReady)) return;
      await sleep(TICK_MS);
    }
    const missing = this.#members.filter(({ isReady }) => !isReady).map(({ name }) => name);
    this.#wrong.push(`${missing.join(", ")} did not start within ${READY_WITHIN_MS} ms`);
  }

  /** Tells people who answers now. */
  #introduce(): void {
    if (this.#people.isOver) return;
    const apis = this.#members.filter(({ role }) => role === "api").flatMap(({ child }) => child ?? []);
    this.#people.client.use(...apis);
  }

  async #bringWork(): Promise<void> {
    let workAtMs = 0;
    while (this.#isStruck) {
      this.#introduce();
      const { runs } = this.#people;
      const isTime = performance.now() >= workAtMs;
      if (isTime && runs.filter(({ isOver }) => !isOver).length < MOST_OPEN) {
        workAtMs = performance.now() + WORK_MS;
        this.#people.startSome(false);
      }
      await sleep(TICK_MS);
    }
  }

  /** Until some of it is under way. */
  async #bringSlowWork(): Promise<void> {
    for (let i = 0; i < 3; i++) this.#people.startSome(true);
    await sleep(SLOW_MS);
  }

  /** Until everything is over, or nothing moves any more. */
  async #rest(): Promise<void> {
    // Whatever has happened, it takes new work as before.
    this.#people.startSome(true);
    const stuckMs = this.#options.mutant === undefined ? STUCK_MS : MUTANT_STUCK_MS;
    let seen = "";
    let movedAtMs = performance.now();
    while (!this.#people.isAllOver) {
      this.#introduce();
      const progress = this.#progress();
      if (progress !== seen) movedAtMs = performance.now();
      seen = progress;
      if (performance.now() - movedAtMs > stuckMs) {
        this.#wrong.push(...this.#people.stuck());
        return;
      }
      await sleep(TICK_MS);
    }
  }

  /** Until no task and no message is left, not even one that nobody wants any more. */
  async #emptied(store: Store): Promise<void> {
    const untilMs = performance.now() + (this.#options.mutant === undefined ? EMPTY_WITHIN_MS : MUTANT_STUCK_MS);
    for (let seen = ""; performance.now() < untilMs; await sleep(4 * TICK_MS)) {
      const progress = this.#progress();
      const { inbox, leased, queued } = await store.queries.counts();
      const isEmpty = inbox + leased + Object.values(queued).reduce((sum, count) => sum + count, 0) === 0;
      if (isEmpty && progress === seen) return;
      seen = progress;
    }
  }

  /** Until the archive has every journal as the store has it. */
  async #shipped(store: Store): Promise<void> {
    const archive = this.#store.archive?.open();
    if (archive === undefined) return;
    const untilMs = performance.now() + EMPTY_WITHIN_MS;
    for (;;) {
      const behind = await notShipped(store, archive);
      const isLate = performance.now() > untilMs;
      if (isLate) this.#wrong.push(...behind.map((entity) => `The archive does not have all of ${entity}`));
      if (behind.length === 0 || isLate) break;
      await sleep(4 * TICK_MS);
    }
    await archive.close();
  }

  async #viewAll(): Promise<Views> {
    const limitMs = this.#options.mutant === undefined ? VIEWED_WITHIN_MS : MUTANT_STUCK_MS;
    const late = new AbortController();
    const views = await Promise.race([viewAll(this.#people), sleep(limitMs, undefined, { signal: late.signal })]);
    late.abort();
    if (views !== undefined) return views;
    this.#wrong.push(`It could not be read within ${limitMs} ms what has come of it`);
    return NO_VIEWS;
  }

  /** Every commit and every result is told to a log. */
  #progress(): string {
    const { folder } = this.#options;
    const logs = readdirSync(folder).filter((file) => file.endsWith(".log"));
    return logs.map((file) => statSync(join(folder, file)).size).join(" ");
  }

  async #disperse(signal: "SIGTERM" | "SIGKILL"): Promise<void> {
    this.#isStruck = false;
    this.#people.leave();
    const members = this.#members;
    if (signal === "SIGTERM") await Promise.all(members.map((member) => member.leave(signal)));
    else for (const member of members) if (member.child?.exit === undefined) member.child?.kill(signal);
  }

  #complaints(): readonly string[] {
    const { wrong, client } = this.#people;
    const grave = this.#members.flatMap(({ name, complaints }) =>
      complaints.filter((line) => GRAVE.test(line)).map((line) => `${name} said: ${line.trim()}`),
    );
    return [...wrong, ...client.incidents, ...this.#members.flatMap((member) => member.wrong), ...grave];
  }
}

/** What owners have written of which nobody keeps a header, from what they told. */
function unlistedIn(logs: readonly string[]): ReadonlySet<string> {
  const sent = logs.flatMap((file) => readLines<Told>(file)).filter((told) => told.kind === "sent");
  const written = sent.flatMap(({ commit }) => commit.records.map(({ entity }) => entity));
  return new Set(written.filter((entity) => entityKind(entity) === CACHE_KIND));
}
