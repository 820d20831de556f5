import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/simulator/random.ts";
import { drawNetworkFault, type Step } from "./fault-plan.ts";
import type { Member, Role } from "./member.ts";
import { now } from "./now.ts";
import { type LossKind, LOSSES, type Noted, type SharedStore } from "./stores.ts";

/** Something that was done to somebody. `until` is when all was well again with the one it was done to. */
export interface Blow {
  readonly kind: string;
  readonly target: string;
  readonly at: number;
  until: number;
  /** Of the process that it was done to. */
  readonly pid?: number;
}

/** The end of everything that a store has held. */
export interface StoreLoss {
  readonly at: number;
  readonly how: LossKind;
  /** What it had noted. */
  readonly noted: readonly Noted[];
  /** Somebody who has not noticed, and will not before it is over. */
  readonly sleeper: Member | undefined;
}

const TICK_MS = 25;
/** Between the last blow and the loss. */
const BEFORE_LOSS_MS = [0, 3_000] as const;
/** Between one blow and the next. */
const GAP_MS = [100, 900] as const;
/** How long somebody who was ended stays away. */
const AWAY_MS = [0, 1_200] as const;
/** Longer than the lease of a partition, and than that of a task. */
const PAUSE_MS = [4_500, 6_500] as const;
const FLAP_MS = 250;
/** Longer than it takes others to notice a death and go on. */
const CALM_MS = 7_000;
/** Whoever is not back by then never comes back. */
const PATIENCE_MS = 120_000;

/** Does to a fleet what a plan says, one blow after another; those that last go on meanwhile. */
export class Nemesis {
  readonly blows: Blow[] = [];
  /** Set when the store has lost everything. */
  loss: StoreLoss | undefined;
  readonly wrong: string[] = [];
  readonly #members: readonly Member[];
  readonly #store: SharedStore;
  readonly #random: Random;
  readonly #diary: string;
  readonly #underWay: Promise<void>[] = [];
  readonly #struck = new Set<Member>();
  #isStoreStruck = false;

  /** `diary` is a file for whoever wants to know afterwards. */
  constructor(members: readonly Member[], store: SharedStore, random: Random, diary: string) {
    this.#diary = diary;
    this.#members = members;
    this.#store = store;
    this.#random = random;
  }

  /** Until all of it was done and is over. */
  async strike(plan: readonly Step[], beforeLoss: () => Promise<void>): Promise<void> {
    for (const step of plan) {
      if (step.kind === "lose store") await beforeLoss();
      await this.#begin(step);
      await sleep(this.#random.integer(...GAP_MS));
    }
    await Promise.all(this.#underWay);
  }

  /** One after another, while all others are well: so it can be said how long it takes them to go on. */
  async strikeInCalm(bringWork: () => Promise<void>): Promise<void> {
    for (const role of ["engine", "worker", "worker"] as const) {
      await bringWork();
      const member = await this.#victim([role]);
      if (member === undefined) return;
      this.#lasts(member, `kill -9 ${role}`, () => member.end("SIGKILL", CALM_MS));
      await Promise.all(this.#underWay);
    }
  }

  async #begin(step: Step): Promise<void> {
    switch (step.kind) {
      case "kill":
      case "stop":
        return this.#end(step.kind, step.role);
      case "pause":
        return this.#pause(step.role);
      case "hold":
        return this.#hold(step.role);
      case "end store":
        return this.#endStore(step.how);
      case "end archive":
        return this.#endArchive(step.how);
      case "pause store":
        return this.#pauseStore();
      case "network":
        return this.#network();
      case "lose store":
        return this.#loseStore();
    }
  }

  /** While others are struck as well. One may sleep through all of it, or be cut off, and come back when all is over. */
  async #loseStore(): Promise<void> {
    await sleep(this.#random.integer(...BEFORE_LOSS_MS));
    const how = this.#random.pick(LOSSES);
    const sleeper = this.#random.chance(0.6) ? await this.#victim(["engine"]) : undefined;
    if (sleeper !== undefined && this.#random.chance(0.5)) sleeper.pause();
    else sleeper?.proxy.apply({ kind: "hold", direction: "up" });
    const at = now();
    for (const member of this.#members) member.loseStore();
    this.#lasts(undefined, `${how} ${this.#store.kind}`, async () => {
      const noted = await this.#store.lose!(how);
      this.loss = { at, how, noted, sleeper };
    });
  }

  async #end(kind: "kill" | "stop", role: Role): Promise<void> {
    const member = await this.#victim([role]);
    if (member === undefined) return;
    const signal = kind === "kill" ? "SIGKILL" : "SIGTERM";
    const name = kind === "kill" ? "kill -9" : "SIGTERM";
    this.#lasts(member, `${name} ${role}`, () => member.end(signal, this.#random.integer(...AWAY_MS)));
  }

  async #pause(role: Role): Promise<void> {
    const member = await this.#victim([role]);
    if (member === undefined) return;
    this.#lasts(member, `SIGSTOP ${role}`, async () => {
      member.pause();
      await sleep(this.#random.integer(...PAUSE_MS));
      member.resume();
    });
  }

  async #hold(role: Role): Promise<void> {
    // The others of its kind are well, and take over what it has.
    await this.#until(() => !this.#isStoreStruck && this.#struck.values().every((one) => one.role !== role));
    const member = await this.#victim([role]);
    if (member === undefined) return;
    this.#lasts(member, "hold up", async () => {
      member.proxy.apply({ kind: "hold", direction: "up" });
      await sleep(this.#random.integer(...PAUSE_MS));
      member.proxy.heal();
    });
  }

  async #network(): Promise<void> {
    // All ways to the store may be blocked at the moment: one of them must not be opened.
    await this.#until(() => !this.#isStoreStruck);
    const { name, fault, lastsMs, torn } = drawNetworkFault(this.#random);
    const member = await this.#victim(["api", "engine", "worker"]);
    if (member === undefined) return;
    const proxy = this.#random.chance(0.5) ? (member.archiveProxy ?? member.proxy) : member.proxy;
    const way = proxy === member.archiveProxy ? " to the archive" : "";
    this.#lasts(member, `${name}${way}`, async () => {
      if (fault === "flap") {
        for (let i = 0; i < lastsMs / FLAP_MS; i++) {
          proxy.cut();
          await sleep(FLAP_MS);
        }
        return;
      }
      proxy.apply(fault);
      await sleep(lastsMs);
      proxy.heal(torn);
    });
  }

  async #endStore(how: 0 | 1): Promise<void> {
    const [name, signal] = this.#store.ends[how]!;
    const { service } = this.#store;
    await this.#strikeStore(`${name} ${this.#store.kind}`, async () => {
      await service.end(signal);
      await sleep(this.#random.integer(...AWAY_MS));
      await service.begin();
    });
  }

  async #endArchive(how: 0 | 1): Promise<void> {
    const { archive } = this.#store;
    if (archive === undefined) return;
    const [name, signal] = archive.ends[how]!;
    await this.#strikeStore(`${name} archive`, async () => {
      await archive.service.end(signal);
      await sleep(this.#random.integer(...PAUSE_MS));
      await archive.service.begin();
    });
  }

  async #pauseStore(): Promise<void> {
    const { service, canPause, kind } = this.#store;
    await this.#strikeStore(`SIGSTOP ${kind}`, async () => {
      if (canPause) service.signal("SIGSTOP");
      else for (const { proxy } of this.#members) proxy.apply({ kind: "hold", direction: "both" });
      await sleep(this.#random.integer(...PAUSE_MS));
      if (canPause) service.signal("SIGCONT");
      else for (const { proxy } of this.#members) proxy.heal();
    });
  }

  async #strikeStore(kind: string, work: () => Promise<void>): Promise<void> {
    await this.#until(() => !this.#isStoreStruck && this.#struck.size === 0);
    this.#isStoreStruck = true;
    this.#lasts(undefined, kind, work);
  }

  /** Somebody in one of these roles to whom nothing is being done. */
  async #victim(roles: readonly Role[]): Promise<Member | undefined> {
    const able = (): readonly Member[] =>
      this.#members.filter((one) => roles.includes(one.role) && one.isReady && !this.#struck.has(one));
    await this.#until(() => able().length > 0);
    const members = able();
    if (members.length > 0) return this.#random.pick(members);
    this.wrong.push(`None of ${roles.join(", ")} was there within ${PATIENCE_MS} ms`);
    return undefined;
  }

  #lasts(member: Member | undefined, kind: string, work: () => Promise<void>): void {
    const pid = member?.child?.pid;
    const target = member?.name ?? this.#store.kind;
    const blow: Blow = { kind, target, at: now(), until: Infinity, ...(pid !== undefined && { pid }) };
    this.blows.push(blow);
    this.#note(`${kind} of ${target}`);
    if (member !== undefined) this.#struck.add(member);
    this.#underWay.push(this.#suffer(blow, member, work));
  }

  async #suffer(blow: Blow, member: Member | undefined, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.wrong.push(`${blow.kind} of ${blow.target} went wrong: ${String(error)}`);
    }
    blow.until = now();
    this.#note(`${blow.kind} of ${blow.target} is over`);
    if (member !== undefined) this.#struck.delete(member);
    else this.#isStoreStruck = false;
  }

  #note(what: string): void {
    const state = this.#members.map(({ name, isReady }) => (isReady ? name : `(${name})`)).join(" ");
    appendFileSync(this.#diary, `${new Date().toISOString()} ${what}; ${state}\n`);
  }

  async #until(fits: () => boolean): Promise<void> {
    const untilMs = performance.now() + PATIENCE_MS;
    while (!fits() && performance.now() < untilMs) await sleep(TICK_MS);
  }
}
