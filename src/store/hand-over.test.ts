import { expect, test } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { ReadRequest, Settlement, SettleOutcome } from "./contract.ts";
import { HandOver } from "./hand-over.ts";

const request: ReadRequest = { partition: 0, after: null, limit: 10, maxChars: 1000 };

function settlement(token: string, parts: Partial<Settlement> = {}): Settlement {
  return { ref: token, token, partition: 0, outcome: "completed", text: `"${token}"`, ...parts };
}

/** A hand-over whose long way writes down who took it, and a read that waits until it is let go. */
function setUp(): {
  readonly handOver: HandOver;
  readonly posted: string[];
  readonly woken: number[];
  readonly reading: (during: () => Promise<void> | void) => Promise<void>;
} {
  const posted: string[] = [];
  const woken: number[] = [];
  const settle = async (results: readonly Settlement[]): Promise<readonly SettleOutcome[]> => {
    posted.push(...results.map(({ token }) => token));
    return results.map(() => "posted");
  };
  const handOver = new HandOver({ host: nodeHost, settle, wake: (partitions) => void woken.push(...partitions) });
  const reading = (during: () => Promise<void> | void): Promise<void> =>
    handOver.whileReading([request], async () => during());
  return { handOver, posted, woken, reading };
}

test("a result takes the long way while nobody waits for it, and when it is no completion", async () => {
  const { handOver, posted, reading } = setUp();
  expect(await handOver.settle([settlement("a")])).toEqual(["posted"]);
  await reading(async () => {
    expect(await handOver.settle([settlement("b", { outcome: "failed" })])).toEqual(["posted"]);
    expect(await handOver.settle([settlement("c", { partition: 1 })])).toEqual(["posted"]);
  });
  expect(posted).toEqual(["a", "b", "c"]);
});

test("many results at once take the long way together", async () => {
  const { handOver, posted, reading } = setUp();
  const many = Array.from({ length: 17 }, (_, i) => settlement(`t${i}`));
  await reading(async () => {
    expect(await handOver.settle(many)).toEqual(many.map(() => "posted"));
  });
  expect(posted).toHaveLength(17);
});

test("of several results each is answered in its place, whichever way it went", async () => {
  const { handOver, posted, woken, reading } = setUp();
  let settling: Promise<readonly SettleOutcome[]> | undefined;
  await reading(() => {
    settling = handOver.settle([
      settlement("far", { partition: 1 }),
      settlement("near"),
      settlement("lost", { outcome: "failed" }),
    ]);
  });
  const given = handOver.given(request, []);
  expect(given.map((one) => one.settlement.token)).toEqual(["near"]);
  expect(woken).toEqual([0]);
  handOver.decided(given, "committed");
  expect(await settling).toEqual(["posted", "settled", "posted"]);
  expect(posted).toEqual(["far", "lost"]);
  expect(handOver.given(request, [])).toEqual([]);
});

test("what is in flight is not given again, and no more than the request has room for", async () => {
  const { handOver, reading } = setUp();
  await reading(() => void handOver.settle(["a", "b", "c"].map((token) => settlement(token))).catch(() => {}));
  const tokens = (parts: Partial<ReadRequest>, inFlight = 0): readonly string[] =>
    handOver
      .given({ ...request, ...parts }, handOver.given(request, []).slice(0, inFlight))
      .map((one) => one.settlement.token);
  expect(tokens({}, 1)).toEqual(["b", "c"]);
  expect(tokens({ limit: 1 })).toEqual(["a"]);
  expect(tokens({ maxChars: 7 })).toEqual(["a", "b"]);
  expect(tokens({ maxChars: 1 })).toEqual(["a"]);
  handOver.close();
});

test("a batch that is refused keeps what it was given for the next, one that is fenced gives it to the inbox", async () => {
  const { handOver, posted, reading } = setUp();
  let settling: Promise<readonly SettleOutcome[]> | undefined;
  await reading(() => {
    settling = handOver.settle([settlement("a")]);
  });
  handOver.decided(handOver.given(request, []), "refused");
  const again = handOver.given(request, []);
  expect(again).toHaveLength(1);
  handOver.decided(again, "fenced");
  expect(await settling).toEqual(["posted"]);
  // An outcome that comes late changes nothing.
  handOver.decided(again, "committed");
  expect(posted).toEqual(["a"]);
});

test("closing leaves nobody waiting, and nothing is taken afterwards", async () => {
  const { handOver, posted, reading } = setUp();
  let settling: Promise<readonly SettleOutcome[]> | undefined;
  await reading(async () => {
    settling = handOver.settle([settlement("a")]);
    settling.catch(() => {});
    handOver.close();
    expect(await handOver.settle([settlement("b")])).toEqual(["posted"]);
  });
  await expect(settling).rejects.toThrow("closed before");
  expect(posted).toEqual(["b"]);
});
