import { afterEach, describe, expect, test } from "vitest";
import { node, workflow } from "../../test/support/workflows.ts";
import { nodeHost } from "../host/node-host.ts";
import { Owner } from "./owner.ts";
import { DEFAULT_SETTINGS } from "./settings.ts";
import { formatSuspicion, readSuspicion } from "./suspicion.ts";
import { TestWorld } from "./test-engine.ts";

const CAPABILITIES = {
  name: "test",
  partitionCount: 1,
  volatileTasks: false,
  volatileInbox: false,
  maxBatchEntries: 1000,
  maxBatchBytes: 1e6,
};

/** Who is accused after so many owners in a row were last seen at this item. */
function accused(deaths: number): string[] {
  let suspect: string | null = null;
  for (let i = 0; i < deaths; i++) {
    suspect = formatSuspicion({ next: "execution/x", deaths: readSuspicion(suspect, true) });
  }
  const fence = { partition: 0, incarnation: "i", epoch: 1, nonce: "n", seq: 0 };
  const tenure = { ...fence, lastTimeMs: 0, storeTimeMs: 0, strikes: 3, suspect };
  return [...new Owner(nodeHost, DEFAULT_SETTINGS, CAPABILITIES, tenure).suspects.keys()];
}

test("two owners that vanish at the same item may be chance, three are not", () => {
  expect([0, 1, 2, 3].map(accused)).toEqual([[], [], [], ["execution/x"]]);
});

test("an owner that takes its own partition anew has not died of anything", () => {
  const left = formatSuspicion({ next: "execution/x", deaths: new Map([["execution/x", 2]]) });
  expect([...readSuspicion(left, false)]).toEqual([["execution/x", 2]]);
});

describe("in an engine", () => {
  let world: TestWorld;
  afterEach(() => world.close());

  test("engines that vanish while they have nothing to do accuse nobody", async () => {
    world = new TestWorld();
    const first = world.engine();
    let calls = 0;
    const handler = (): Promise<null> | null => {
      if (++calls === 1) throw new Error("once");
      return new Promise<null>(() => {});
    };
    world.worker({ step: handler }, { leaseMs: 1e7 });
    const soon = { max_attempts: 3, base_delay_seconds: 0.05, max_delay_seconds: 1, exponential_base: 1, jitter: 0 };
    await world.start(workflow([node("a", [], { timeout_seconds: 3600, retry: soon })]), null, "X");
    await world.until("X", (events) => events.some(({ kind }) => kind === "taskStarted"));
    await world.stop(first);
    // From now on engines are killed, not stopped.
    world.memory.partitions.release = async () => {};
    for (let i = 0; i < 6; i++) {
      const engine = world.engine({ leaseMs: 100, renewMs: 20, idleMs: 20 });
      // Long enough to look at everything, too short to be careful no more.
      await world.host.sleep(250);
      await world.stop(engine);
      await world.host.sleep(150);
    }
    expect(await world.kinds("X")).not.toContain("quarantined");
  });
});
