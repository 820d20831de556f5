import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BIN, Child } from "../world/child.ts";
import { RETENTION_DAYS } from "../world/history.ts";
import { LEDGER_VARIABLE, type Plan, PLAN_VARIABLE } from "../world/plan.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { now } from "./now.ts";
import { PARTITIONS, type SharedStore } from "./stores.ts";

export type Role = "api" | "engine" | "worker" | "gateway";

export interface MemberOptions {
  readonly name: string;
  readonly role: Role;
  /** An engine with a worker beside it, in the same process. */
  readonly hasWorker: boolean;
  readonly store: SharedStore;
  readonly folder: string;
  readonly mutant: string | undefined;
  /** Where an API listens, or where a worker over HTTP finds one. */
  readonly apiPort: number;
}

/** One life of a member. */
export interface Life {
  readonly member: string;
  readonly role: Role;
  readonly pid: number;
  readonly log: string;
}

/** Shorter than by default, so that what is lost is found within a short world. */
export const HEARTBEAT_SECONDS = 1;
export const LEASE_SECONDS = 4;

const HERE = import.meta.dirname;
const HANDLERS = join(HERE, "..", "world", "handlers.ts");
const FAR_HANDLERS = join(HERE, "far-handlers.ts");
const SLOTS = ["--concurrency", "8"];
/** Who cannot start, as when its store is away, is started again by whoever looks after it. */
const AGAIN_MS = 300;
const STOP_WITHIN_MS = 60_000;
const TICK_MS = 25;
/** What a process ends with, and says, whose store is not there any more. */
const LOST_CODE = 6;
const LOST = /STORE_LOST/;
const WAITS = /there is no store yet/;

/** A process of the fleet, in all its lives, on its own way to the store. */
export class Member {
  readonly name: string;
  readonly role: Role;
  readonly proxy: FaultProxy;
  /** Its way to the archive, if there is one and it has to do with it. */
  readonly archiveProxy: FaultProxy | undefined;
  readonly lives: Life[] = [];
  /** What must not happen to a process. */
  readonly wrong: string[] = [];
  /** What it has said that somebody should look at, of all its lives. */
  readonly complaints: string[] = [];
  isPaused = false;
  child: Child | undefined;
  readonly #options: MemberOptions;
  #proxyPort = 0;
  #archivePort = 0;
  #isWanted = false;
  #expectsEnd = false;
  /** When its store was lost; undefined if it has one. */
  #lostAt: number | undefined;
  #hasEndedOfLoss = false;

  constructor(options: MemberOptions) {
    this.name = options.name;
    this.role = options.role;
    this.#options = options;
    const { service, archive } = options.store;
    this.proxy = new FaultProxy({ host: "127.0.0.1", port: service.port });
    const ships = archive !== undefined && (this.role === "engine" || this.role === "api");
    this.archiveProxy = ships ? new FaultProxy({ host: "127.0.0.1", port: archive.service.port }) : undefined;
  }

  get isReady(): boolean {
    return this.child?.exit === undefined && this.child?.listenedAt !== undefined && !this.isPaused;
  }

  /** Lives from now on, whatever happens to it. */
  async start(): Promise<void> {
    this.#proxyPort = await this.proxy.listen();
    this.#archivePort = (await this.archiveProxy?.listen()) ?? 0;
    this.#isWanted = true;
    this.#begin();
  }

  /** Ends this life by a signal; the next begins after a while. */
  async end(signal: "SIGKILL" | "SIGTERM", awayMs: number): Promise<void> {
    const { child } = this;
    if (child === undefined) return;
    this.#expectsEnd = true;
    this.#isWanted = false;
    child.kill(signal);
    const late = sleep(STOP_WITHIN_MS, "late" as const, { ref: false });
    if ((await Promise.race([child.exited, late])) === "late") {
      this.wrong.push(`${this.name} did not stop within ${STOP_WITHIN_MS} ms of ${signal}: ${this.#lastWords()}`);
      child.kill("SIGKILL");
      await child.exited;
    } else if (signal === "SIGTERM" && child.exit?.code !== 0 && child.listenedAt !== undefined) {
      this.wrong.push(`${this.name} was asked to stop, and ended with ${child.exit?.code}: ${this.#lastWords()}`);
    }
    await sleep(awayMs);
    this.#isWanted = true;
    this.#begin();
  }

  pause(): void {
    this.isPaused = true;
    this.child?.kill("SIGSTOP");
  }

  resume(): void {
    this.isPaused = false;
    this.child?.kill("SIGCONT");
  }

  /**
   * Its store loses everything now. It must end by itself and say why, also if it is away and starts again later. Who goes
   * by an API knows of no store, and waits.
   */
  loseStore(): void {
    if (this.role !== "gateway") this.#lostAt = now();
  }

  /** Until it has. */
  async endsOfLoss(): Promise<void> {
    const untilMs = performance.now() + STOP_WITHIN_MS;
    while (!this.#isStill && performance.now() < untilMs) await sleep(TICK_MS);
    if (!this.#isStill) this.wrong.push(`${this.name} was still there ${STOP_WITHIN_MS} ms after its store was lost`);
  }

  /** Whether nothing comes of it any more. A worker that starts now has no archive to ask, and waits for a store. */
  get #isStill(): boolean {
    if (this.#lostAt === undefined || this.#hasEndedOfLoss) return true;
    const { exit, listenedAt, complaints } = this.child!;
    const waits = exit === undefined && listenedAt === undefined && complaints.some((line) => WAITS.test(line));
    return this.role === "worker" && waits;
  }

  /** Somebody starts it while its store is not there. */
  async startsInVain(): Promise<void> {
    if (!this.#hasEndedOfLoss) return;
    this.#hasEndedOfLoss = false;
    this.#begin();
    await this.endsOfLoss();
  }

  /** Its store is there again. */
  startAgain(): void {
    this.#lostAt = undefined;
    if (this.#hasEndedOfLoss) this.#begin();
    this.#hasEndedOfLoss = false;
  }

  /** For good. */
  async leave(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    this.#isWanted = false;
    this.#expectsEnd = true;
    const { child } = this;
    if (child !== undefined && child.exit === undefined) {
      child.kill("SIGCONT");
      child.kill(signal);
      const late = sleep(STOP_WITHIN_MS, "late" as const, { ref: false });
      if ((await Promise.race([child.exited, late])) === "late") {
        this.wrong.push(`${this.name} did not stop within ${STOP_WITHIN_MS} ms: ${this.#lastWords()}`);
        child.kill("SIGKILL");
        await child.exited;
      }
    }
    await this.proxy.close();
    await this.archiveProxy?.close();
  }

  #begin(): void {
    const { folder, mutant, role, store } = this.#options;
    const file = join(folder, `${this.name}-${this.lives.length + 1}`);
    const log = `${file}.log`;
    const plan: Plan = { log, ...(mutant !== undefined && { mutant }) };
    this.#expectsEnd = false;
    const child = new Child({
      hook: join(HERE, "hook.ts"),
      args: this.#arguments(),
      cwd: folder,
      transcript: `${file}.txt`,
      env: {
        [PLAN_VARIABLE]: JSON.stringify(plan),
        [LEDGER_VARIABLE]: join(folder, "ledger"),
        MILLRACE_STORE: store.url(this.#proxyPort),
        MILLRACE_PARTITIONS: String(PARTITIONS),
        MILLRACE_RETENTION_DAYS: String(RETENTION_DAYS),
        WORKER_HEARTBEAT_INTERVAL: String(HEARTBEAT_SECONDS),
        WORKER_HEARTBEAT_TIMEOUT: String(LEASE_SECONDS),
        WORKER_GRACEFUL_SHUTDOWN_TIMEOUT: "0.2",
        ...(this.archiveProxy !== undefined && { MILLRACE_ARCHIVE: store.archive!.url(this.#archivePort) }),
      },
    });
    this.child = child;
    this.lives.push({ member: this.name, role, pid: child.pid, log });
    void child.exited.then(({ code, signal }) => this.#ended(child, code ?? signal));
  }

  #arguments(): readonly string[] {
    const { role, hasWorker, apiPort } = this.#options;
    switch (role) {
      case "api":
        return [BIN, "serve", "--roles", "api", "--port", String(apiPort)];
      case "engine":
        if (!hasWorker) return [BIN, "serve", "--roles", "engine"];
        return [BIN, "serve", "--roles", "engine,worker", "--handlers", HANDLERS, ...SLOTS];
      case "worker":
        return [BIN, "worker", "--handlers", HANDLERS, ...SLOTS];
      case "gateway":
        return [BIN, "worker", "--url", `http://127.0.0.1:${apiPort}`, "--handlers", FAR_HANDLERS, ...SLOTS];
    }
  }

  async #ended(child: Child, how: number | string | null): Promise<void> {
    this.complaints.push(...child.complaints);
    if (this.child !== child || this.#expectsEnd) return;
    // Who finds no store at all while it starts is started again, and then finds an empty one.
    const isPatient = child.listenedAt === undefined && !LOST.test(this.#lastWords());
    if (this.#lostAt !== undefined && !isPatient) {
      const isRight = how === LOST_CODE && LOST.test(this.#lastWords());
      if (!isRight) this.wrong.push(`${this.name} lost its store, and ended with ${how}: ${this.#lastWords()}`);
      this.#hasEndedOfLoss = true;
      return;
    }
    // Who has started once goes on, whatever its store does.
    if (child.listenedAt !== undefined) this.wrong.push(`${this.name} ended by itself, ${how}: ${this.#lastWords()}`);
    await sleep(AGAIN_MS);
    if (this.#isWanted && this.child === child) this.#begin();
  }

  #lastWords(): string {
    return this.child!.complaints.slice(-5).join(" ").slice(0, 1_000);
  }
}
