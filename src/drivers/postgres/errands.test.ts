import { describe, expect, test, vi } from "vitest";
import { nodeHost } from "../../host/node-host.ts";
import { leaseRequest, settlement, task } from "../../store/conformance/things.ts";
import type { LeasedTask, SettleOutcome } from "../../store/contract.ts";
import { type ErrandOptions, Errands } from "./errands.ts";
import { Seats } from "./seats.ts";

const leased = (token: string): LeasedTask => ({ ...task(token), ref: token });
const done = settlement(leased("done"), "completed");
const SEAT = { queues: ["queue"], max: 4, leaseMs: 1000 };
const ERRAND = { kind: "settle", from: "worker", id: 1, seat: SEAT, results: [done] };

/** One process, whose words to others are kept, with an owner elsewhere that is not there. */
function processOf(parts: Partial<ErrandOptions> = {}, isHeard = true) {
  const seats = new Seats();
  const said: object[] = [];
  const freed: string[] = [];
  const wakeUps: ErrandOptions["wakeUps"] = {
    name: "here",
    onErrand: () => {},
    ownerOf: (partition) => (partition === 0 ? "owner" : undefined),
    doubtOwner: vi.fn<() => void>(),
    hurry: (_, errand) => isHeard && said.push(errand) > 0,
    answer: (_, errand) => isHeard && said.push(errand) > 0,
  };
  const errands = new Errands({
    host: nodeHost,
    wakeUps,
    seats,
    settle: async (results) => results.map((): SettleOutcome => "settled"),
    free: async (tasks) => void freed.push(...tasks.map(({ token }) => token)),
    ...parts,
  });
  return { errands, seats, said, freed, wakeUps };
}

describe("a worker", () => {
  test("keeps places while it asks, and has in them what comes with the answer", async () => {
    const { errands, seats, said, wakeUps } = processOf();
    const wake = vi.fn<() => void>();
    const seat = seats.take(leaseRequest({ max: 2 }), wake);
    seat.wait();
    const settling = errands.settle([done]);
    expect(said).toMatchObject([{ kind: "settle", from: "here", seat: { max: 2 }, results: [{ token: "done" }] }]);
    expect(seat.hasRoom).toBe(false);
    wakeUps.onErrand({ kind: "settled", id: 1, outcomes: ["settled"], tasks: [leased("next")] });
    expect(await settling).toEqual(["settled"]);
    expect(wake).toHaveBeenCalledTimes(1);
    expect(await seat.rise()).toMatchObject([{ token: "next", ref: "next" }]);
  });

  test("is not woken by an answer that brings nothing, and has its places again", async () => {
    const { errands, seats, wakeUps } = processOf();
    const wake = vi.fn<() => void>();
    const seat = seats.take(leaseRequest({ max: 2 }), wake);
    seat.wait();
    const settling = errands.settle([done]);
    wakeUps.onErrand({ kind: "settled", id: 1, outcomes: ["posted"], tasks: [] });
    expect(await settling).toEqual(["posted"]);
    expect(wake).not.toHaveBeenCalled();
    expect(seat.reserve([task("a"), task("b"), task("c")])).toHaveLength(2);
  });

  test("is woken by what has come, though it has asked for more, and keeps no places for others meanwhile", async () => {
    const { errands, seats, wakeUps } = processOf();
    const wake = vi.fn<() => void>();
    const seat = seats.take(leaseRequest({ max: 16 }), wake);
    seat.wait();
    const settling = [errands.settle([done]), errands.settle([done])];
    wakeUps.onErrand({ kind: "settled", id: 1, outcomes: ["settled"], tasks: [leased("next")] });
    await settling[0];
    expect(wake).toHaveBeenCalledTimes(1);
    const risen = seat.rise();
    expect(seat.hasRoom).toBe(false);
    wakeUps.onErrand({ kind: "settled", id: 2, outcomes: ["settled"], tasks: [] });
    expect(await risen).toMatchObject([{ token: "next" }]);
  });

  test("of another process keeps no places in the seat that was taken for it here", async () => {
    const { errands, seats, said } = processOf();
    seats.takeForGuest(SEAT, () => true).wait();
    void errands.settle([done]);
    expect(said).toMatchObject([{ kind: "settle", seat: null }]);
    errands.close();
  });

  test("that is not answered goes the long way, has its places again, and asks that owner no more", async () => {
    const { errands, seats, wakeUps } = processOf({ host: { ...nodeHost, sleep: async () => {} } });
    const seat = seats.take(leaseRequest({ max: 1 }), () => {});
    seat.wait();
    expect(await errands.settle([done])).toBeUndefined();
    expect(seat.hasRoom).toBe(true);
    expect(wakeUps.doubtOwner).toHaveBeenCalledWith("owner");
  });

  test("frees the tasks of an answer that comes too late", async () => {
    const { wakeUps, freed } = processOf();
    wakeUps.onErrand({ kind: "settled", id: 7, outcomes: ["settled"], tasks: [leased("late")] });
    await vi.waitFor(() => expect(freed).toEqual(["late"]));
  });

  test("goes the long way with what only the store can judge, with many, and where nobody is known", async () => {
    const { errands, said } = processOf();
    const elsewhere = { ...done, partition: 1 };
    const failed = settlement(leased("failed"), "failed");
    for (const results of [[failed], [done, failed], [done, done, done, done, done], [elsewhere], [done, elsewhere]])
      expect(await errands.settle(results)).toBeUndefined();
    expect(said).toEqual([]);
  });

  test("that cannot be heard has its places again at once", async () => {
    const { errands, seats } = processOf({}, false);
    const seat = seats.take(leaseRequest({ max: 1 }), () => {});
    seat.wait();
    expect(await errands.settle([done])).toBeUndefined();
    expect(seat.hasRoom).toBe(true);
  });

  test("that closes waits for nobody", async () => {
    const { errands } = processOf({ host: { ...nodeHost, sleep: () => new Promise(() => {}) } });
    const settling = errands.settle([done]);
    errands.close();
    expect(await settling).toBeUndefined();
  });
});

describe("an owner's process", () => {
  /** Settles as a commit does that sends out these tasks: those for whom somebody waits are leased with it. */
  function committing(tokens: readonly string[], text = "{}") {
    const seats = new Seats();
    const settle = async (): Promise<readonly SettleOutcome[]> => {
      const seated = seats.reserve(tokens.map((token) => task(token, { text })));
      for (const one of seated.values()) one.seat.give(one.task, one.task.token);
      return ["settled"];
    };
    return { seats, settle };
  }

  test("leases the tasks of the commit to the one who asked, up to its room, and nobody has a seat afterwards", async () => {
    const { seats, settle } = committing(["a", "b", "c", "d", "e"]);
    const { wakeUps, said } = processOf({ seats, settle });
    wakeUps.onErrand(ERRAND);
    await vi.waitFor(() => expect(said).toHaveLength(1));
    expect(said).toMatchObject([{ kind: "settled", id: 1, outcomes: ["settled"] }]);
    expect((said[0] as { tasks: LeasedTask[] }).tasks.map(({ token }) => token)).toEqual(["a", "b", "c", "d"]);
    expect(seats.waiting()).toBeUndefined();
  });

  test("leases no more than an answer can carry", async () => {
    const { seats, settle } = committing(["a", "b", "c", "d"], JSON.stringify("é".repeat(1200)));
    const { wakeUps, said } = processOf({ seats, settle });
    wakeUps.onErrand(ERRAND);
    await vi.waitFor(() => expect(said).toHaveLength(1));
    expect(said).toMatchObject([{ tasks: [{ token: "a" }, { token: "b" }] }]);
    expect(Buffer.byteLength(JSON.stringify(said[0]))).toBeLessThan(7900);
  });

  test("frees what it has leased to one who cannot be told", async () => {
    const { seats, settle } = committing(["a"]);
    const { wakeUps, freed } = processOf({ seats, settle }, false);
    wakeUps.onErrand(ERRAND);
    await vi.waitFor(() => expect(freed).toEqual(["a"]));
  });

  test("says nothing where it could not settle, and frees what it has leased", async () => {
    const { seats, settle } = committing(["a"]);
    const failing = async (): Promise<never> => {
      await settle();
      throw new Error("the store is gone");
    };
    const { wakeUps, freed, said } = processOf({ seats, settle: failing });
    wakeUps.onErrand(ERRAND);
    await vi.waitFor(() => expect(freed).toEqual(["a"]));
    expect(said).toEqual([]);
    expect(seats.waiting()).toBeUndefined();
  });
});
