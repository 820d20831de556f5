import { expect, test } from "vitest";
import { nodeHost } from "./node-host.ts";
import { drawnAtMs, timeId } from "./time-id.ts";

test("an id tells when it was drawn, and what is none does not", () => {
  const id = timeId({ ...nodeHost, wallMs: () => 1_750_000_000_123 });
  expect(drawnAtMs(id)).toBe(1_750_000_000_123);
  expect(drawnAtMs(id.toUpperCase())).toBe(1_750_000_000_123);
  for (const other of ["", "order-7", crypto.randomUUID(), `${id}0`, ` ${id}`])
    expect(drawnAtMs(other)).toBeUndefined();
});

test("ids of one process sort in the order in which they were drawn, also within a millisecond", () => {
  let nowMs = 2_000_000_000_000;
  const host = { ...nodeHost, wallMs: () => nowMs };
  const draw = (): string => timeId(host);
  const ids = Array.from({ length: 10_000 }, draw);
  nowMs -= 5;
  ids.push(draw());
  nowMs += 6;
  ids.push(draw(), draw());
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids.map((id) => id.slice(-17))).size).toBe(ids.length);
  const isVersion7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  expect(ids.filter((id) => !isVersion7.test(id))).toEqual([]);
  nowMs -= 60_000;
  expect(drawnAtMs(draw())).toBe(nowMs);
});
