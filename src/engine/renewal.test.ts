import { expect, test } from "vitest";
import { fold } from "../core/fold.ts";
import { gateMachine } from "../core/gate/machine.ts";
import { type MessageBody, messageText } from "../core/message.ts";
import type { JournalRecord } from "../store/contract.ts";
import { TestWorld, withJournal } from "./test-engine.ts";

const GATE = "gate/concurrency:default:few";
const rule = { kind: "concurrency", limit: 3, onConflict: "queue" } as const;
const name = { kind: "concurrency", tenant: "default", name: "few" } as const;

/** One gate over a memory store that remembers everything that was ever committed. */
class GateWorld extends TestWorld {
  readonly committed: JournalRecord[] = [];
  private sent = 0;

  constructor() {
    const committed: JournalRecord[] = [];
    super({
      wrap: (memory) =>
        withJournal(memory, {
          commit: async (batches) => {
            const outcomes = await memory.journal.commit(batches);
            for (const [i, { kind }] of outcomes.entries()) {
              if (kind === "committed") committed.push(...batches[i]!.records.filter(({ entity }) => entity === GATE));
            }
            return outcomes;
          },
        }),
    });
    this.committed = committed;
  }

  /** Tells the gate something, and waits until it has been decided. */
  async tell(body: MessageBody): Promise<void> {
    const before = await this.memory.journal.watch(0, GATE, 0, 0);
    const message = { id: `m${++this.sent}`, to: GATE, by: "test", trace: "", tenant: "default", body };
    await this.memory.inbox.append([{ partition: 0, start: false, text: messageText(message) }]);
    await this.memory.journal.watch(0, GATE, before, 10_000);
  }

  ask(execution: string, ask: number): Promise<void> {
    return this.tell({ kind: "gateAcquire", name, rule, execution, asks: [{ ask, node: "n" }] });
  }

  giveBack(execution: string, ask: number): Promise<void> {
    return this.tell({ kind: "gateReturn", execution, asks: [ask] });
  }

  async left(): Promise<readonly JournalRecord[]> {
    const [loaded] = await this.memory.journal.load([{ partition: 0, entity: GATE, aboveVersion: 0 }]);
    return loaded!.records;
  }
}

const stateOf = (records: readonly JournalRecord[]): string =>
  gateMachine.snapshot(fold(gateMachine, gateMachine.create("concurrency:default:few", undefined), records));

test("the journal of a gate that lives for ever stays short, and says what the whole of it said", async () => {
  const world = new GateWorld();
  const settings = { renewEvents: 20, snapshotEvents: 50 };
  try {
    let engine = world.engine(settings, gateMachine);
    await world.ask("execution/holds", 1);
    for (let ask = 1; ask <= 60; ask++) {
      await world.ask("execution/e", ask);
      await world.giveBack("execution/e", ask);
      if (ask % 25 !== 0) continue;
      // Whoever comes next knows as much.
      await world.stop(engine);
      engine = world.engine(settings, gateMachine);
    }
    await world.stop(engine);
    const left = await world.left();
    const count = left.reduce((sum, { count: events }) => sum + events, 0);
    expect(world.committed.reduce((sum, { count: events }) => sum + events, 0)).toBeGreaterThan(180);
    expect(count).toBeLessThan(50);
    expect(stateOf(left)).toBe(stateOf(world.committed));
    expect(stateOf(left)).toContain("execution/holds");
  } finally {
    await world.close();
  }
});
