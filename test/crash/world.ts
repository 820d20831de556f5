import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../src/simulator/random.ts";
import { type Failpoint, failpointOf, OUTSIDE } from "./failpoints.ts";
import { RETENTION_DAYS } from "../world/history.ts";
import { People } from "../world/people.ts";
import { RemoteWorker } from "./remote-worker.ts";
import { filesOf, Server } from "./server.ts";
import { StoreCopy } from "./store-copy.ts";
import { NO_VIEWS, viewAll, type Views } from "../world/views.ts";

export interface WorldOptions {
  readonly seed: number;
  /** Where it dies, kill by kill. */
  readonly failpoints: readonly string[];
  readonly folder: string;
  readonly mutant?: string | undefined;
}

/** One life of the process. */
export interface Life {
  readonly pid: number;
  /** By the clock that all processes share. */
  readonly startedAt: number;
  /** When it listened; undefined if it died before. */
  readonly listenedAt: number | undefined;
  readonly clockMs: number;
  /** What killed it; undefined if it was stopped in order. */
  readonly killedAt: string | undefined;
}

/** What a world leaves behind, besides its files. */
export interface Remainder {
  readonly people: People;
  readonly remote: RemoteWorker;
  readonly lives: readonly Life[];
  readonly bornAt: number;
  readonly healedAt: number;
  readonly quietAt: number;
  /** What everybody sees at the end, and after another start. */
  readonly views: Views;
  readonly viewsAgain: Views;
  /** What is stored between the two, and after them. */
  readonly between: StoreCopy;
  readonly end: StoreCopy;
  /** What is stored when all of it should have been removed; undefined if nobody asked for that. */
  readonly removed: StoreCopy | undefined;
  /** What was wrong already while it ran. */
  readonly wrong: readonly string[];
}

/** How often a life is tried until it dies where it should, and how many rounds of work each gets for it. */
const MAX_LIVES = 4;
const MAX_ROUNDS = 4;
/** How long we wait for what should come. */
interface Patience {
  /** A process that does not do within this what it should never does, and a world that still moves never rests. */
  readonly enoughMs: number;
  /** A world in peace in which nothing moves for this long is stuck. */
  readonly stuckMs: number;
}
const PATIENCE: Patience = { enoughMs: 120_000, stuckMs: 40_000 };
/** With a deliberate bug in it, it may turn in circles for ever, and we do not wait as long. */
const MUTANT_PATIENCE: Patience = { enoughMs: 25_000, stuckMs: 2_500 };
const TICK_MS = 25;
/** How long after the start of its work or of its stop a kill from outside comes, at most. */
const SOON_MS = 300;
const HOUR_MS = 3_600_000;
const LONG_AFTER_MS: number = (RETENTION_DAYS + 1) * 24 * HOUR_MS;

/** The real process over a store on disk, killed again and again while people use it, then left in peace. */
export async function runWorld(options: WorldOptions): Promise<Remainder> {
  const world = new CrashWorld(options);
  return world.run();
}

class CrashWorld {
  readonly #options: WorldOptions;
  readonly #patience: Patience;
  readonly #random: Random;
  readonly #people: People;
  readonly #remote: RemoteWorker;
  readonly #lives: Life[] = [];
  readonly #wrong: string[] = [];

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#patience = options.mutant === undefined ? PATIENCE : MUTANT_PATIENCE;
    this.#random = new Random(options.seed);
    this.#people = new People(options.seed, this.#random.fork());
    this.#remote = new RemoteWorker(this.#people.client, options.seed, this.#random.fork());
  }

  async run(): Promise<Remainder> {
    const bornAt = this.#now();
    for (const name of this.#options.failpoints) if (!isRemoval(name)) await this.#dieAt(name);
    const healedAt = this.#now();
    const views = await this.#inPeace(() => this.#rest());
    const between = this.#copy("between");
    const viewsAgain = await this.#inPeace(() => this.#settle());
    const quietAt = this.#now();
    const end = this.#copy("end");
    this.#people.leave();
    const removed = await this.#removeAll();
    this.#remote.leave();
    const { wrong: refused, client } = this.#people;
    const wrong = [...this.#wrong, ...refused, ...client.incidents, ...this.#remote.wrong];
    const times = { bornAt, healedAt, quietAt };
    const witnesses = { people: this.#people, remote: this.#remote, lives: this.#lives };
    return { ...witnesses, ...times, views, viewsAgain, between, end, removed, wrong };
  }

  #copy(name: string): StoreCopy {
    const { folder } = this.#options;
    return new StoreCopy(filesOf(folder).store, join(folder, name));
  }

  #now(): number {
    return this.#people.client.now();
  }

  // ── dying ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** `name`, or `name@3` for its third hit. */
  async #dieAt(place: string): Promise<void> {
    const [name, wanted] = place.split("@") as [string, string?];
    const failpoint = failpointOf(name);
    const drawn = this.#random.integer(1, failpoint?.most ?? 1);
    const hit = wanted === undefined ? drawn : Number(wanted);
    for (let i = 0; i < MAX_LIVES; i++) {
      if (failpoint === undefined) return this.#killFromOutside(OUTSIDE[name]!, name);
      // Something has to be left undone by the life before.
      if (failpoint.during === "recovery") await this.#killFromOutside("work", "outside.work", true);
      if (await this.#livesUntil(failpoint, i === 0 ? hit : 1)) return;
    }
    this.#wrong.push(`${name} was not reached in ${MAX_LIVES} lives`);
  }

  /** A life that is to end at a failpoint; answers whether it did. */
  async #livesUntil({ name, during }: Failpoint, hit: number): Promise<boolean> {
    const server = this.#start(this.#drawClock(during), { name, hit });
    for (let round = 0; round < MAX_ROUNDS && server.exit === undefined; round++) {
      if (during !== "start" && during !== "removal") {
        if ((await this.#listens(server)) === undefined) break;
        this.#people.startSome(during === "stop");
      }
      if (during === "stop") {
        await this.#slowWork(server);
        await sleep(this.#random.integer(0, SOON_MS));
        server.kill("SIGTERM");
      }
      await this.#until(() => server.exit !== undefined || (during === "work" && this.#people.areDone));
      if (during !== "work") break;
    }
    if (server.exit === undefined) {
      server.kill("SIGKILL");
      await this.#ended(server, "outside.work");
      return false;
    }
    const { code, signal } = server.exit;
    const isThere = signal === "SIGKILL" && this.#diedAt(server) === name;
    if (!isThere && code !== 0) this.#wrong.push(`${name}: it ended by itself, ${code ?? signal}: ${said(server)}`);
    await this.#ended(server, isThere ? name : undefined);
    return isThere;
  }

  async #killFromOutside(during: Failpoint["during"], name: string, atWork = during === "stop"): Promise<void> {
    const server = this.#start(this.#drawClock(during));
    if (during === "start") await sleep(this.#random.integer(0, 2 * SOON_MS));
    else {
      await this.#listens(server);
      this.#people.startSome(true);
      if (atWork) await this.#slowWork(server);
      await sleep(this.#random.integer(20, SOON_MS));
    }
    if (during === "stop") {
      server.kill("SIGTERM");
      await sleep(this.#random.integer(0, SOON_MS));
    }
    const isAlive = server.exit === undefined;
    server.kill("SIGKILL");
    await this.#ended(server, isAlive ? name : undefined);
  }

  /** Until something was accepted that takes its time: a task of it will be out for a while. */
  async #slowWork(server: Server): Promise<void> {
    const { runs } = this.#people;
    const isSlow = (run: (typeof runs)[number]): boolean =>
      run.kind.definition.name === "slow" && run.id !== "" && !run.isOver;
    await this.#until(() => server.exit !== undefined || runs.some(isSlow));
  }

  /** The failpoint at which a process died, by its own account. Another of its threads may have had the last word. */
  #diedAt({ pid }: Server): string | undefined {
    const lines = readFileSync(filesOf(this.#options.folder).log, "utf8").split("\n");
    const last = lines.findLast((line) => line.includes(`"pid":${pid},"kind":"died"`));
    return last === undefined ? undefined : (JSON.parse(last) as { name: string }).name;
  }

  // ── living ────────────────────────────────────────────────────────────────────────────────────────────────────

  #start(clockMs: number, death?: { readonly name: string; readonly hit: number }): Server {
    const { folder, mutant } = this.#options;
    const server = new Server({
      folder,
      mutant,
      clockMs,
      startedAt: this.#now(),
      ...(death !== undefined && { death }),
    });
    this.#people.client.use(server);
    return server;
  }

  /** Mostly right; now and then somebody has set the clock while the process was down. */
  #drawClock(during: Failpoint["during"]): number {
    return during === "removal" ? LONG_AFTER_MS : this.#random.pick([0, 0, 0, 0, -HOUR_MS, HOUR_MS]);
  }

  async #listens(server: Server): Promise<string | undefined> {
    const { enoughMs } = this.#patience;
    const url = await Promise.race([server.url, sleep(enoughMs, "late" as const)]);
    if (url !== "late") return url;
    this.#wrong.push(`a process did not listen within ${enoughMs} ms: ${said(server)}`);
    return undefined;
  }

  async #ended(server: Server, killedAt: string | undefined): Promise<void> {
    await server.exited;
    const { pid, startedAt, listenedAt, clockMs } = server;
    this.#lives.push({ pid, startedAt, listenedAt, clockMs, killedAt });
    this.#wrong.push(...server.complaints.filter(isSerious));
  }

  async #until(fits: () => boolean): Promise<void> {
    const untilMs = performance.now() + this.#patience.enoughMs;
    while (!fits() && performance.now() < untilMs) await sleep(TICK_MS);
  }

  /** A life that nobody ends before its time. Answers what everybody sees at the end of it. */
  async #inPeace(work: () => Promise<void>): Promise<Views> {
    const server = this.#start(0);
    const url = await this.#listens(server);
    if (url === undefined) throw new Error(`it does not start: ${said(server)}`);
    await work();
    const views = await this.#lookAtAll();
    const signal = this.#random.pick(["SIGTERM", "SIGKILL"] as const);
    server.kill(signal);
    await this.#ended(server, undefined);
    return views;
  }

  /** Whoever gets no answer asks again: of what is broken there may never be a view. */
  async #lookAtAll(): Promise<Views> {
    const { enoughMs } = this.#patience;
    const views = await Promise.race([viewAll(this.#people), sleep(enoughMs, undefined)]);
    if (views === undefined) this.#wrong.push(`not everything could be read within ${enoughMs} ms`);
    return views ?? NO_VIEWS;
  }

  /** Until everything is over, or nothing moves any more. */
  async #rest(): Promise<void> {
    // Whatever has happened, it takes new work as before.
    this.#people.startSome(false);
    const { enoughMs, stuckMs } = this.#patience;
    let seen = "";
    let movedAtMs = performance.now();
    const untilMs = movedAtMs + enoughMs;
    while (!this.#people.isAllOver) {
      const now = this.#progress();
      if (now !== seen) movedAtMs = performance.now();
      seen = now;
      if (performance.now() > Math.min(movedAtMs + stuckMs, untilMs)) {
        this.#wrong.push(...this.#people.stuck());
        return;
      }
      await sleep(TICK_MS);
    }
    // What follows on the end, such as calling back what still runs.
    await this.#settle();
  }

  /** Long after the end of everything nothing of it is left, however often the process dies while it removes it. */
  async #removeAll(): Promise<StoreCopy | undefined> {
    // In the order of their names: pieces are swept up when there is nothing else to remove.
    const names = this.#options.failpoints.filter(isRemoval).sort();
    if (names.length === 0) return undefined;
    for (const name of names) await this.#dieAt(name);
    const server = this.#start(LONG_AFTER_MS);
    await this.#listens(server);
    const untilMs = performance.now() + this.#patience.enoughMs;
    for (;;) {
      const copy = this.#copy("removed");
      if (copy.leftOvers().length === 0 || performance.now() > untilMs) {
        server.kill("SIGTERM");
        await this.#ended(server, undefined);
        return copy;
      }
      copy.close();
      await sleep(8 * TICK_MS);
    }
  }

  /** Until the process has written nothing for a while. */
  async #settle(): Promise<void> {
    const untilMs = performance.now() + this.#patience.enoughMs;
    for (let seen = ""; seen !== this.#progress(); await sleep(8 * TICK_MS)) {
      if (performance.now() > untilMs) {
        this.#wrong.push("everything is over, and it still writes");
        return;
      }
      seen = this.#progress();
    }
  }

  /** Every commit and every result is told to the log. */
  #progress(): string {
    const { log } = filesOf(this.#options.folder);
    return `${statSync(log, { throwIfNoEntry: false })?.size ?? 0} ${this.#people.runs.filter(({ id }) => id !== "").length}`;
  }
}

function isRemoval(place: string): boolean {
  return failpointOf(place.split("@")[0]!)?.during === "removal";
}

/** What a process may have to say when it finds its predecessor dead is no reason to worry. */
function isSerious(line: string): boolean {
  return !/^\s*$/.test(line);
}

function said({ complaints }: Server): string {
  return complaints.slice(-5).join(" ").slice(0, 2_000);
}
