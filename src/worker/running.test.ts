import { expect, test } from "vitest";
import type { LeasedTask } from "../store/contract.ts";
import { Delivery } from "./delivery.ts";
import { Running } from "./running.ts";

const leased = (token: string): LeasedTask => {
  return { token, ref: "", entity: "e/1", partition: 0, queue: "q", priority: 0, text: "" };
};
const deliveryOf = (token: string): Delivery => new Delivery(leased(token), 0);

test("whoever leaves, the others are found", () => {
  const running = new Running();
  const all = ["a", "b", "c", "d"].map(deliveryOf);
  for (const one of all) running.add(one);
  for (const place of [1, 3, 0, 2]) {
    running.remove(all[place]!);
    // Once more changes nothing.
    running.remove(all[place]!);
    for (const one of all) {
      const isThere = running.all.includes(one);
      expect(running.withToken(one.leased.token)).toBe(isThere ? one : undefined);
    }
  }
  expect(running.size).toBe(0);
});

test("a new lease is a new token", () => {
  const running = new Running();
  const one = deliveryOf("a");
  running.add(one);
  expect(running.withToken("a")).toBe(one);
  running.leaseAnew(one, leased("b"));
  expect([running.withToken("a"), running.withToken("b")]).toEqual([undefined, one]);
});

test("of two with one token the one that was not let go is meant", () => {
  const running = new Running();
  const [before, after] = [deliveryOf("a"), deliveryOf("a")];
  before.gone = "lost";
  running.add(after);
  running.add(before);
  expect(running.withToken("a")).toBe(after);
});
