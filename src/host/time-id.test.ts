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
