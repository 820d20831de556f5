import { expect, test } from "vitest";
import { Random } from "../../simulator/random.ts";
import type { GateAsk } from "../message.ts";
import { gateMachine } from "./machine.ts";
import type { GateRule } from "./rule.ts";
import { GateTrial } from "./test-gate.ts";

const RATES = [0.3, 1, 3.3, 10, 100];
const BURSTS = [0.5, 1, 1.5, 2, 3, 7.7, 20];
const WORKFLOWS = ["one", "two", "three"];

function rateOf(random: Random): GateRule {
  return { kind: "rate", perSecond: random.pick(RATES), burst: random.pick(BURSTS) };
}

/** A rate under everything that may happen to one. */
class Story {
  readonly gate: GateTrial;
  readonly #random: Random;
  readonly #rule: GateRule;
  #ms = 0;
  #asks = 0;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.#rule = rateOf(this.#random);
    this.gate = new GateTrial(this.#rule);
    this.gate.maxEvents = this.#random.pick([1, 2, 256]);
  }

  goOn(): void {
    const random = this.#random;
    this.pass(random.integer(0, random.pick([0, 50, 1_000, 15_000])));
    const what = random.integer(0, 99);
    if (what < 45) this.#ask();
    else if (what < 75) this.#begin();
    else if (what < 82) this.#command("override", random.chance(0.3) ? null : rateOf(random));
    else if (what < 86) {
      this.#command("trip");
      this.pass(20_000);
      this.#command("reset");
    }
  }

  pass(ms: number): void {
    this.gate.at((this.#ms += ms));
  }

  #ask(): void {
    const random = this.#random;
    const asks = Array.from({ length: random.integer(1, 4) }, (): GateAsk => {
      const priority = random.pick([0, 0, 3]);
      return { ask: ++this.#asks, node: "n", cost: random.pick([0.2, 1, 1, 2, 5, 100]), priority };
    });
    const workflow = random.pick(WORKFLOWS);
    this.gate.acquire(`execution/${workflow}-${random.integer(1, 3)}`, asks, this.#rule, workflow);
  }

  #begin(): void {
    const { held, lapsed } = this.gate.state;
    const out = [...held.values(), ...lapsed.values()];
    if (out.length === 0) return;
    const { execution, ask } = this.#random.pick(out);
    this.gate.returns(execution, [ask], this.#random.chance(0.1) ? { closeForMs: 3_000 } : {});
  }

  #command(action: "trip" | "reset" | "override", rule?: GateRule | null): void {
    this.gate.send({
      kind: "gateCommand",
      request: `r${this.#ms}-${action}`,
      action,
      ...(rule !== undefined && { rule }),
    });
  }

  /** Lets time go on to the next wake, and everybody begin who is out. */
  settle(): void {
    const { gate } = this;
    const wakeMs = gateMachine.nextWakeMs(gate.state);
    if (wakeMs !== null) this.pass(Math.max(0, wakeMs - gate.nowMs));
    const out = [...gate.state.held.values(), ...gate.state.lapsed.values()];
    for (const { execution, ask } of out) gate.returns(execution, [ask]);
  }
}

test("whatever happens to a rate, everybody is let through once those before have begun", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const story = new Story(seed);
    for (let i = 0; i < 60; i++) story.goOn();
    const { state } = story.gate;
    const sum = [...state.held.values()].reduce((costs, { cost = 1 }) => costs + cost, 0);
    expect([seed, state.unbegun]).toEqual([seed, expect.closeTo(sum, 6)]);
    for (let round = 0; round < 2_000 && story.gate.state.line.length > 0; round++) story.settle();
    expect([seed, story.gate.state.line.length]).toEqual([seed, 0]);
  }
});
