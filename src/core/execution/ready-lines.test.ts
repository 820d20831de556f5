import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ENGINE_LINE, ReadyLines } from "./ready-lines.ts";

/** With priorities that fall, as those of a plan do. */
function linesOf(count: number): ReadyLines {
  const lines = Array.from({ length: count }, (_, line) => ({
    queue: line === ENGINE_LINE ? "" : `q${line}`,
    priority: line === ENGINE_LINE ? 0 : 100 - Math.floor(line / 3),
  }));
  return new ReadyLines(lines, Array.from(lines.keys()));
}

/** Who would have a turn, in order. */
function walk(ready: ReadyLines): number[] {
  return ready.inTurn.flatMap((line) => ready.of(line).toArray());
}

describe("lines of units that are ready", () => {
  test.each([1, 3, 16, 17, 200])("%i lines are walked by their turn, whoever comes and goes", (count) => {
    const step = fc.record({ push: fc.boolean(), line: fc.nat(count - 1), unit: fc.nat(30) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ready = linesOf(count);
        const model = Array.from({ length: count }, (): number[] => []);
        for (const { push, line, unit } of steps) {
          const units = model[line]!;
          if (push) units.push(unit);
          else if (units.includes(unit)) units.splice(units.indexOf(unit), 1);
          if (push) ready.push(line, unit);
          else ready.remove(line, unit);
          expect(walk(ready)).toEqual(model.flat());
          expect(ready.count).toBe(model.flat().length);
        }
        expect(ready.toArrays()).toEqual(model.filter((units) => units.length > 0));
        ready.clear();
        expect([ready.count, walk(ready)]).toEqual([0, []]);
      }),
    );
  });

  test("only those of many lines are looked at that somebody stands in", () => {
    const ready = linesOf(1_000);
    expect(ready.inTurn).toEqual([]);
    for (const line of [900, 3, 500]) ready.push(line, line);
    expect(ready.inTurn).toEqual([3, 500, 900]);
    ready.remove(500, 500);
    expect(ready.inTurn).toEqual([3, 900]);
  });

  test.each([3, 16, 40])("a line that is opened beside %i has its turn by its priority", (count) => {
    const ready = linesOf(count);
    ready.push(ENGINE_LINE, 1);
    ready.push(2, 2);
    const urgent = ready.find("urgent", 1_000);
    expect(ready.find("urgent", 1_000)).toBe(urgent);
    expect(ready.find("", 7)).toBe(ENGINE_LINE);
    ready.push(urgent, 3);
    ready.push(ready.find("last", -1), 4);
    expect(walk(ready)).toEqual([1, 3, 2, 4]);
    expect([ready.queueOf(urgent), ready.count]).toEqual(["urgent", 4]);
  });
});
