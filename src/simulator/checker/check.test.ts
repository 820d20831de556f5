import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { check, INVARIANTS } from "./check.ts";
import { CLEAN_WORLDS, plainWorld } from "./clean-worlds.ts";
import { CONTROL_WORLDS } from "./control-worlds.ts";
import { GATE_WORLDS } from "./gate-worlds.ts";
import { change } from "./test-world.ts";

describe("the checker", () => {
  for (const [name, world] of Object.entries({ ...CLEAN_WORLDS, ...CONTROL_WORLDS, ...GATE_WORLDS })) {
    it(`finds nothing wrong in a world that is right: ${name}`, () => {
      expect(check(world())).toEqual([]);
    });
  }

  it("names every invariant once, and each has a broken world that it reports first", () => {
    const ids = INVARIANTS.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    const tests = readdirSync(import.meta.dirname).filter((file) => file.endsWith(".test.ts"));
    const text = tests.map((file) => readFileSync(`${import.meta.dirname}/${file}`, "utf8")).join("\n");
    expect(ids.filter((id) => !text.includes(`["${id}", `) && !text.includes(`\n      "${id}",\n`))).toEqual([]);
  });

  it("says in one sentence what is wrong, and where", () => {
    const [violation, ...more] = check(change(plainWorld(), "commit", 2, { wakes: [] }));
    expect(more).toEqual([]);
    expect(violation).toEqual({
      invariant: "I27",
      message:
        "It has ended, and the store still wakes an owner for it [execution e1, commit 0/2, entry 17 of the history]",
      execution: "e1",
    });
  });

  it("tells a story that is broken everywhere with a bounded number of violations", () => {
    const world = plainWorld();
    const history = Array.from({ length: 2_000 }, () => world.history).flat();
    expect(check({ ...world, history }).length).toBeLessThan(20 * INVARIANTS.length);
  });
});
