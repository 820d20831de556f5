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
  const left = new Set(all);
  for (const place of [1, 3, 0, 2]) {
    const gone = all[place]!;
    left.delete(gone);
    running.remove(gone);
    // Once more changes nothing.
    running.remove(gone);
    expect(new Set(running.all)).toEqual(left);
    expect(running.size).toBe(left.size);
    for (const one of all) expect(running.withToken(one.leased.token)).toBe(left.has(one) ? one : undefined);
  }
});

test("a new lease is a new token", () => {
  const running = new Running();
  const one = deliveryOf("a");
  running.add(one);
  expect(running.withToken("a")).toBe(one);
  running.leaseAnew(one, leased("b"));
  expect([running.withToken("a"), running.withToken("b")]).toEqual([undefined, one]);
});

test.each([
  ["was let go", (one: Delivery): unknown => (one.gone = "lost")],
  ["is settled and does not stop", (one: Delivery): unknown => (one.settled = true)],
])("of two with one token, of which one %s, the other is meant", (_, end) => {
  for (const isFirst of [true, false]) {
    const running = new Running();
    const [before, after] = [deliveryOf("a"), deliveryOf("a")];
    end(before);
    for (const one of isFirst ? [before, after] : [after, before]) running.add(one);
    expect(running.withToken("a")).toBe(after);
  }
});
