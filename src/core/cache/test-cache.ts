import type { Json } from "../../json/json.ts";
import type { Trial } from "../execution/test-execution.ts";
import { entityId, entityKind } from "../entity.ts";
import type { Context } from "../machine.ts";
import type { Message } from "../message.ts";
import type { CacheEvent } from "./events.ts";
import { cacheMachine } from "./machine.ts";
import { CACHE_KIND, type CacheState } from "./state.ts";

/** All keys of a cache and the executions that use it, with mail that goes to and fro until nobody has any. */
export class CacheTrial {
  readonly states: Map<string, CacheState> = new Map();
  readonly events: CacheEvent[] = [];
  private readonly trials = new Map<string, Trial>();
  private readonly read = new Map<Trial, number>();
  private readonly blobs = new Map<string, Json>();
  nowMs = 1_000_000;

  /** Takes part from now on. */
  join(...trials: readonly Trial[]): this {
    for (const trial of trials) {
      this.trials.set(`execution/${trial.id}`, trial);
      this.read.set(trial, 0);
    }
    return this.deliver();
  }

  at(ms: number): this {
    this.nowMs = 1_000_000 + ms;
    return this.deliver();
  }

  deliver(): this {
    for (let isMore = true; isMore;) {
      isMore = false;
      for (const [trial, read] of this.read) {
        for (const { scope, hash, text } of trial.blobs)
          if (scope !== undefined) this.blobs.set(`${scope} ${hash}`, JSON.parse(text) as Json);
        const mail = trial.mail.slice(read).filter(({ to }) => entityKind(to) === CACHE_KIND);
        this.read.set(trial, trial.mail.length);
        for (const message of mail) this.take(message);
        isMore ||= mail.length > 0;
      }
    }
    return this;
  }

  state(key: string): CacheState {
    return this.states.get(key) ?? cacheMachine.create(entityId(key), undefined);
  }

  private take(message: Message): void {
    const { to } = message;
    let state = this.states.get(to);
    if (state === undefined && !cacheMachine.isStart(message.body)) return;
    state ??= cacheMachine.create(entityId(to), undefined);
    this.states.set(to, state);
    this.apply(to, cacheMachine.decide(state, message, this.context(to)));
    for (;;) {
      const decision = cacheMachine.advance(this.states.get(to)!, this.context(to));
      this.apply(to, decision);
      if (decision.events.length === 0) break;
    }
    if (cacheMachine.hasWork(this.states.get(to)!)) throw new Error("it says that it has something to do");
  }

  private apply(key: string, decision: ReturnType<typeof cacheMachine.decide>): void {
    for (const event of decision.events) {
      const state = this.states.get(key)!;
      cacheMachine.evolve(state, event);
      cacheMachine.check(state, true);
      const text = cacheMachine.snapshot(state);
      const restored = cacheMachine.restore(state.id, undefined, text);
      if (cacheMachine.snapshot(restored) !== text)
        throw new Error("a snapshot does not bring back what it was taken of");
      this.states.set(key, restored);
    }
    this.events.push(...decision.events);
    for (const { scope, hash, text } of decision.blobs ?? []) {
      this.trials.get(scope ?? "")?.fetched.set(hash, JSON.parse(text) as Json);
    }
    for (const message of decision.mail ?? []) {
      const trial = this.trials.get(message.to);
      trial?.send(message.body);
      trial?.settle();
    }
  }

  private context(key: string): Context {
    return {
      nowMs: this.nowMs,
      deadlineMs: this.nowMs,
      calendarMs: this.nowMs,
      nonce: "nonce",
      maxEvents: 256,
      random: () => 0,
      room: () => 0,
      fetched: (hash) => this.blobs.get(`${key} ${hash}`),
    };
  }
}
