import { expect, test } from "vitest";
import { BatchBuilder } from "./batch.ts";
import { DEFAULT_SHIPPING } from "./settings.ts";
import { Unshipped } from "./unshipped.ts";

/** A batch with one event of each of these. */
function batch(...written: readonly (readonly [entity: string, version: number])[]): BatchBuilder {
  const builder = new BatchBuilder(1, 0, { partitionCount: 1 });
  for (const [entity, version] of written) builder.events(entity, [{ kind: "anything", atMs: 0 }], version, 1);
  return builder;
}

test("an entity that goes on while it is shipped is still behind", () => {
  const unshipped = new Unshipped(0, DEFAULT_SHIPPING);
  const first = batch(["execution/a", 1], ["execution/b", 1]);
  unshipped.form(first, 0);
  unshipped.committed(first, 0);
  const shipped = [
    { entity: "execution/a", version: 1 },
    { entity: "execution/b", version: 1 },
  ];
  expect(unshipped.behindAfter(shipped)).toBe(0);
  unshipped.form(batch(["execution/b", 2]), 1);
  expect(unshipped.behindAfter(shipped)).toBe(1);
});

test("what was shipped before, and is to be taken off the list, is not behind", () => {
  const unshipped = new Unshipped(0, DEFAULT_SHIPPING);
  const first = batch(["execution/a", 1], ["execution/b", 1]);
  unshipped.form(first, 0);
  unshipped.committed(first, 0);
  unshipped.shipped("execution/a", 1, null, 1);
  expect(unshipped.size).toBe(2);
  expect(unshipped.behindAfter([])).toBe(1);
  expect(unshipped.behindAfter([{ entity: "execution/a", version: 1 }])).toBe(1);
  expect(unshipped.behindAfter([{ entity: "execution/b", version: 1 }])).toBe(0);
});

test("the letters of an earlier tenure are shipped too when the entity goes on before the list is read", () => {
  const unshipped = new Unshipped(0, DEFAULT_SHIPPING);
  const next = batch(["execution/a", 5]);
  unshipped.form(next, 0);
  unshipped.committed(next, 0);
  unshipped.inherit([{ list: "unshipped/0", id: "execution/a", entity: "execution/a", atMs: 0, text: "{}" }], 0);
  expect(unshipped.ripe(DEFAULT_SHIPPING.windowMs)).toEqual([{ entity: "execution/a", letters: true }]);
});
