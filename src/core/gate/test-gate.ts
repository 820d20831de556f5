import type { Context, Decision } from "../machine.ts";
import type { GateAsk, GateReturn, Message, MessageBody } from "../message.ts";
import type { GateEvent } from "./events.ts";
import { gateMachine } from "./machine.ts";
import type { GateRule } from "./rule.ts";
import { snapshot } from "./snapshot.ts";
import type { GateState } from "./state.ts";

/** One gate under test, with a clock that the test moves. After every event it is restored from its snapshot. */
export class GateTrial {
  readonly rule: GateRule;
  readonly events: GateEvent[] = [];
  readonly mail: Message[] = [];
  state: GateState = gateMachine.create("g", undefined);
  nowMs = 1_000_000;
  maxEvents = 256;
  last: Decision<GateEvent> = { events: [] };
  private asked = 0;

  constructor(rule: GateRule) {
    this.rule = rule;
  }

  at(ms: number): this {
    this.nowMs = 1_000_000 + ms;
    return this.settle();
  }

  /** Asks of one execution, each with a number of its own. */
  ask(execution: string, count = 1, cost?: number): this {
    const asks = Array.from({ length: count }, (): GateAsk => {
      return { ask: ++this.asked, node: "n", ...(cost !== undefined && { cost }) };
    });
    return this.acquire(execution, asks);
  }

  acquire(execution: string, asks: readonly GateAsk[], rule: GateRule = this.rule, workflow?: string): this {
    const name = { kind: rule.kind, tenant: "default", name: "test" };
    const turn = { execution, ...(workflow !== undefined && { workflow }) };
    return this.send({ kind: "gateAcquire", name, rule, ...turn, asks });
  }

  /** One ask of an execution of a workflow, with a priority. */
  askAs(workflow: string, execution: string, priority = 0): this {
    const ask = { ask: ++this.asked, node: "n", ...(priority !== 0 && { priority }) };
    return this.acquire(execution, [ask], this.rule, workflow);
  }

  returns(execution: string, asks: readonly number[], more: Partial<GateReturn> = {}): this {
    return this.send({ kind: "gateReturn", execution, asks, ...more });
  }

  /** Everybody who was let through so far has begun, or come to an end. */
  begin(): this {
    for (const [execution, own] of Map.groupBy([...this.state.held.values()], (held) => held.execution)) {
      this.returns(
        execution,
        own.map(({ ask }) => ask),
      );
    }
    return this;
  }

  send(body: MessageBody): this {
    const message = { id: "m", to: "gate/g", by: "test", trace: "", tenant: "default", body };
    this.take(gateMachine.decide(this.state, message, this.context));
    return this.settle();
  }

  settle(): this {
    do this.take(gateMachine.advance(this.state, this.context));
    while (this.last.events.length > 0);
    if (gateMachine.hasWork(this.state)) throw new Error("it says that it has something to do, and does nothing");
    return this;
  }

  take(decision: Decision<GateEvent>): void {
    for (const event of decision.events) {
      gateMachine.evolve(this.state, event);
      gateMachine.check(this.state, true);
      const text = snapshot(this.state);
      this.state = gateMachine.restore("g", undefined, text);
      if (snapshot(this.state) !== text) throw new Error("a snapshot does not bring back what it was taken of");
    }
    this.events.push(...decision.events);
    this.mail.push(...(decision.mail ?? []));
    this.last = decision;
  }

  /** What was granted so far, in order, as `execution ask`. */
  get granted(): string[] {
    return this.events.flatMap((event) =>
      event.kind === "asksGranted" ? event.grants.map(({ execution, ask }) => `${execution}${ask}`) : [],
    );
  }

  get held(): string[] {
    return Array.from(this.state.held.values(), ({ execution, ask }) => `${execution}${ask}`);
  }

  get context(): Context {
    return {
      nowMs: this.nowMs,
      deadlineMs: this.nowMs,
      calendarMs: this.nowMs,
      nonce: "nonce",
      maxEvents: this.maxEvents,
      random: () => 0,
      room: () => 0,
      fetched: () => undefined,
    };
  }
}
