import { entityKey, partitionOf } from "../core/entity.ts";
import type { ExecutionEvent } from "../core/execution/events.ts";
import type { Letter, Retry } from "../core/message.ts";
import type { Workflow } from "../definition/workflow.ts";
import type { Requests } from "../inbox/requests.ts";
import { contentHash } from "../json/hash.ts";
import type { Json } from "../json/json.ts";
import type { Store } from "../store/contract.ts";
import { SIGNALS } from "./generate-control.ts";
import type { Command, HistoryEntry } from "./history.ts";
import { editedConfig, type Glance, glanceAt } from "./glance.ts";
import type { SimProcess } from "./process.ts";
import type { Random } from "./random.ts";
import { Reading } from "./reading.ts";
import type { Timeline } from "./timeline.ts";

/** A process through which people ask for things. */
export interface Client {
  readonly process: SimProcess;
  readonly requests: Requests;
  readonly store: Store;
}

/** What people need of the world they live in. */
export interface Town {
  readonly timeline: Timeline;
  definition(hash: string): Workflow | undefined;
  /** Takes note of a definition that somebody brings. */
  define(hash: string, workflow: Workflow): void;
  record(entry: HistoryEntry): void;
  /** No more trouble is to come: people now finish what they have begun. */
  readonly isCalm: boolean;
}

type Answer = "ok" | "refused" | "overloaded" | "unknown";

/** So many requests for one execution are under way at once; whoever gets no answer does not ask for ever. */
const MOST_AT_ONCE = 4;
const MOST_TRIES = 12;

/** After so many generations people leave an execution alone. */
const MOST_GENERATIONS = 4;

/**
 * Those who look after executions: they send signals, decide reviews, pause, resume, retry, replay and cancel, at the
 * wrong time and twice. They see only what the store shows, children included, of which nobody else knows.
 */
export class People {
  private readonly town: Town;
  private readonly random: Random;
  private readonly client: Client;
  /** By execution, the version at which nothing was left to do about it. */
  private readonly content = new Map<string, number>();
  private readonly reading = new Reading();
  /** By the events that were read, what they look like. */
  private readonly glances = new WeakMap<readonly ExecutionEvent[], Glance>();
  /** Ends that somebody has made up his mind about. */
  private readonly settled = new Set<string>();
  private underWay = 0;
  private readonly asking = new Map<string, number>();

  constructor(town: Town, random: Random, client: Client) {
    this.town = town;
    this.random = random;
    this.client = client;
  }

  get isBusy(): boolean {
    return this.underWay > 0;
  }

  /** Nobody has anything in mind with an execution as it is now. */
  isContentWith(execution: string, version: number): boolean {
    return this.content.get(execution) === version;
  }

  start(): void {
    void this.loop();
  }

  private async loop(): Promise<void> {
    for (;;) {
      await this.client.process.host.sleep(this.random.integer(300, this.town.isCalm ? 1_000 : 2_500));
      try {
        const page = await this.client.store.queries.headers({ limit: 500 });
        const executions = page.items.flatMap(({ entity }) =>
          entity.startsWith("execution/") ? [entity.slice("execution/".length)] : [],
        );
        const chosen = this.town.isCalm ? executions : executions.filter(() => this.random.chance(0.4));
        for (const execution of chosen) await this.consider(execution);
      } catch {
        // No answer: nobody has seen anything.
      }
    }
  }

  private async consider(execution: string): Promise<void> {
    const { store } = this.client;
    const entity = entityKey("execution", execution);
    const partition = partitionOf(entity, store.capabilities.partitionCount);
    const [loaded] = await store.journal.load([{ partition, entity, aboveVersion: 0 }]);
    const events = this.reading.read(execution, loaded!.records) as readonly ExecutionEvent[];
    const glance = this.glances.get(events) ?? glanceAt(execution, events, (hash) => this.town.definition(hash));
    if (glance === undefined) return;
    this.glances.set(events, glance);
    const { isCalm } = this.town;
    const isLeft = glance.isQuarantined && (isCalm || this.random.chance(0.9));
    if (isLeft) return void this.content.set(execution, glance.version);
    if (glance.isEnded) await this.afterEnd(glance);
    else if (glance.isStarted) this.whileOpen(glance);
    else if (this.random.chance(isCalm ? 0.5 : 0.01)) this.ask(execution, { kind: "trigger" });
    if (glance.isEnded) this.content.set(execution, glance.version);
  }

  // ── while it runs ───────────────────────────────────────────────────────────────────────────────────────────────

  private whileOpen(glance: Glance): void {
    const { random } = this;
    const { isCalm } = this.town;
    for (const review of glance.reviews) {
      if (random.chance(isCalm ? 0.5 : 0.25)) this.decide(glance, review);
    }
    for (const each of glance.stalled) if (random.chance(isCalm ? 0.5 : 0.25)) this.raise(glance, each);
    for (const name of glance.signals) {
      if (random.chance(isCalm ? 0.3 : 0.2)) this.signal(glance.execution, name, random.chance(0.2) ? 2 : 1);
    }
    for (const name of glance.laterSignals) if (random.chance(0.05)) this.signal(glance.execution, name, 1);
    if (glance.isPaused) {
      if (random.chance(isCalm ? 1 : 0.4)) this.ask(glance.execution, { kind: "resume" });
      if (random.chance(0.1)) this.ask(glance.execution, { kind: "pause" });
      return;
    }
    if (isCalm) return;
    if (random.chance(0.05)) this.ask(glance.execution, { kind: "pause" });
    if (random.chance(0.02)) this.ask(glance.execution, { kind: "resume" });
    if (random.chance(glance.isChild ? 0.03 : 0.015)) this.ask(glance.execution, { kind: "cancel" });
    if (random.chance(0.01)) this.ask(glance.execution, { kind: "trigger" });
    if (random.chance(0.02)) this.ask(glance.execution, { kind: "retry", scope: "failed" });
    if (random.chance(0.02)) this.signal(glance.execution, "for nobody", 1);
  }

  /** Signals of different content, so that which one was taken can be told. */
  private signal(execution: string, name: string, count: number): void {
    for (let i = 0; i < count; i++) {
      const data = { json: { value: this.random.integer(0, 9), id: this.random.hex(6), name } };
      this.ask(execution, { kind: "signal", name, data });
    }
  }

  /** Sends a signal before anybody can be waiting for it. */
  signalEarly(execution: string): void {
    this.signal(execution, this.random.pick(SIGNALS), this.random.integer(1, 3));
  }

  private decide({ execution, generation }: Glance, { instance, hasForm }: Glance["reviews"][number]): void {
    const { random } = this;
    const decide = (decision: "approve" | "reject", of = generation): void => {
      const data: Json = hasForm && random.chance(0.8) ? { ok: true, note: random.hex(4) } : { note: random.hex(4) };
      const comment: { comment?: string } = random.chance(0.3) ? { comment: `because ${random.hex(4)}` } : {};
      // By the second letter of what he says: so there are two, and nothing more is drawn.
      const by = /^[0-7]/.test((data as { readonly note: string }).note) ? "one" : "another";
      const isAsProposed = by === "one" && decision === "approve" && comment.comment === undefined;
      const said = isAsProposed ? null : data;
      this.ask(execution, { kind: "decideReview", instance, generation: of, decision, data: said, ...comment }, by);
      if (comment.comment === undefined) return;
      this.ask(execution, { kind: "assignReview", instance, generation: of, assignees: [comment.comment] });
    };
    decide(random.pick(["approve", "reject"]));
    // A colleague is as quick, and of another mind.
    if (random.chance(0.3)) decide(random.pick(["approve", "reject"]));
    if (generation > 1 && random.chance(0.2)) decide("reject", generation - 1);
  }

  /** More for a budget that is used up, though perhaps not enough; or nothing, and its node has to do without. */
  private raise({ execution, generation }: Glance, { instance, limits }: Glance["stalled"][number]): void {
    const { random } = this;
    const more = Object.entries(limits).map(([unit, limit]) => [unit, limit + random.integer(1, 100)] as const);
    const isRaised = random.chance(0.8);
    const data = isRaised ? Object.fromEntries(more) : null;
    const decision = isRaised ? "approve" : "reject";
    this.ask(execution, { kind: "decideReview", instance, generation, decision, data });
  }

  // ── once it is over ─────────────────────────────────────────────────────────────────────────────────────────────

  private async afterEnd(glance: Glance): Promise<void> {
    const { random } = this;
    const { execution, generation } = glance;
    const name = `${execution}:${generation}`;
    if (this.settled.has(name)) return;
    const letters = await this.openLetters(execution);
    this.settled.add(name);
    if (random.chance(0.05)) this.ask(execution, { kind: "cancel" });
    if (random.chance(0.03)) this.signal(execution, random.pick(SIGNALS), 1);
    if (random.chance(0.03)) this.ask(execution, { kind: "resume" });
    const [first] = letters;
    if (first !== undefined && random.chance(0.1)) this.ask(execution, { kind: "discardLetter", letter: first.id });
    if (generation >= MOST_GENERATIONS) return;
    const isWell = glance.status === "completed";
    const wish = glance.isChild ? 0.1 : isWell ? 0.2 : 0.6;
    if (!random.chance(wish)) return;
    const retries = random.chance(0.35) ? 2 : 1;
    for (let i = 0; i < retries; i++) this.again(glance, letters);
  }

  private again(glance: Glance, letters: readonly Letter[]): void {
    const { random } = this;
    const { execution, status, nodes } = glance;
    const from = random.pick(nodes).id;
    const edited = random.chance(0.3) ? editedConfig(glance, from, random) : undefined;
    const edits: Partial<Retry> = {
      ...(edited !== undefined && { config: edited }),
      ...(random.chance(0.1) && { input: { json: { n: random.integer(0, 6) } } }),
    };
    const isWell = status === "completed";
    const retry = random.weighted<WithoutRequest<Command>>([
      [isWell ? 0.3 : 5, { kind: "retry", scope: "failed" }],
      [3, { kind: "retry", scope: "descendants", from, ...edits }],
      [2, { kind: "retry", scope: "node", from, ...edits }],
      [
        letters.length > 0 ? 3 : 0,
        { kind: "retry", scope: "letters", letters: letters.filter(() => random.chance(0.7)) },
      ],
      [status === "failed" || status === "partial" ? 2 : 0.2, { kind: "trigger" }],
    ]);
    this.ask(execution, retry);
    // Somebody thinks better of it, while what it has begun is still on its way.
    if (random.chance(0.15)) this.askLater(execution, { kind: "cancel" }, random.integer(0, 3_000));
  }

  /** The dead letters of an execution that nobody has dealt with. */
  private async openLetters(execution: string): Promise<Letter[]> {
    const entity = entityKey("execution", execution);
    const { items } = await this.client.store.queries.deadLetters({ limit: 100, entity });
    return items.flatMap(({ id, class: kind, queue, text }) => {
      const { status } = JSON.parse(text) as { status?: string };
      // Now and then somebody takes one that was replayed, or one of the shell's own.
      const isOpen = status === "open" || (status === "replayed" && this.random.chance(0.2));
      return isOpen ? [{ id, class: kind, queue, text }] : [];
    });
  }

  // ── asking ──────────────────────────────────────────────────────────────────────────────────────────────────────

  private askLater(execution: string, command: WithoutRequest<Command>, afterMs: number): void {
    this.underWay++;
    this.town.timeline.after(afterMs, () => {
      this.underWay--;
      this.ask(execution, command);
    });
  }

  /** More signals than anybody keeps. */
  async flood(execution: string): Promise<void> {
    for (let i = 0; i < 104; i++) {
      const data = { json: { value: i, id: this.random.hex(6), name: "for nobody" } };
      await this.askUntilKnown(execution, { kind: "signal", name: "for nobody", data });
    }
  }

  /** Asks for something in the background, until it is known what has come of it. */
  ask(execution: string, command: WithoutRequest<Command>, by?: string): void {
    const open = this.asking.get(execution) ?? 0;
    if (open >= MOST_AT_ONCE) return;
    this.asking.set(execution, open + 1);
    this.underWay++;
    void this.askUntilKnown(execution, command, false, by).finally(() => {
      this.underWay--;
      this.asking.set(execution, this.asking.get(execution)! - 1);
    });
  }

  async askUntilKnown(
    execution: string,
    command: WithoutRequest<Command>,
    twice = false,
    by = "client",
  ): Promise<Answer> {
    const { client, town, random } = this;
    const request = random.hex(8);
    const body = { ...command, request } as Command;
    const { kind } = body;
    const to = { to: entityKey("execution", execution), by, id: `${kind}:${request}` };
    let said: { outcome: Answer; code?: string; answer?: Json } = { outcome: "unknown" };
    for (let attempt = 0; attempt < MOST_TRIES; attempt++) {
      town.record({ log: "client", kind: "command", at: town.timeline.now, execution, request, command: body, by });
      said = describeOutcome(await client.requests.send({ ...to, body }, 3_000));
      town.record({
        log: "client",
        kind: "answered",
        at: town.timeline.now,
        execution,
        request,
        command: kind,
        ...said,
      });
      if (said.outcome === "ok" || said.outcome === "refused") {
        if (!twice) break;
        // The same once more: it must get the same answer.
        twice = false;
        continue;
      }
      await client.process.host.sleep(500);
    }
    return said.outcome;
  }
}

export type WithoutRequest<Body> = Body extends unknown ? Omit<Body, "request"> : never;

export function describeOutcome(outcome: Awaited<ReturnType<Requests["send"]>>): {
  outcome: Answer;
  code?: string;
  answer?: Json;
} {
  if (outcome.kind !== "answered") return { outcome: outcome.kind };
  if ("ok" in outcome.answer) return { outcome: "ok", answer: outcome.answer.ok };
  return { outcome: "refused", code: outcome.answer.refused };
}

export function bodyHashOf(definition: string, input: Json): string {
  return contentHash(JSON.stringify([definition, input]));
}
