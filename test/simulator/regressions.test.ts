import { describe, expect, test } from "vitest";
import { judge } from "../../src/simulator/campaign.ts";
import type { ScheduleOptions } from "../../src/simulator/schedule.ts";

/**
 * Schedules that once failed, named for what they found. What a seed makes of a world changes when the generator does, so
 * each bug also has a mutant or a test of its own; these stay because they cost nothing.
 */
const FOUND: readonly (readonly [what: string, options: ScheduleOptions])[] = [
  ["a batch formed for one partition was dropped when the read of another failed", { seed: 1198 }],
  ["a renewal that failed while a commit was under way was nobody's to catch", { seed: 1 }],
  ["an execution blocked by the window was woken again and again, and never let through", { seed: 1214 }],
  ["a careful owner announced one item after the other and touched none", { seed: 1123 }],
  ["an owner that was only cut off was taken for dead, and an innocent execution quarantined", { seed: 1214 }],
  ["a death in one partition accused what another partition had announced", { seed: 736664362 }],
  ["a renewal overtaken by a commit looked like a store that had gone back", { seed: 1123 }],
  ["a store went back behind the write of a definition that was still cached", { seed: 1558 }],
  ["a task made again saw outputs that had come since", { seed: 736664711 }],
  ["a released entity was loaded while the commit that released it was under way", { seed: 90959 }],
  ["a message that followed the release of its entity in the same batch was dropped", { seed: 90959 }],
  ["a message id was given again after the store had gone back", { seed: 90647 }],
  ["an entity left memory between being looked for and being used, and its message with it", { seed: 738403641 }],
  ["an entity left memory so that its wake found nobody", { seed: 738404795 }],
  ["a worker that was told to stop waited for its next heartbeat", { seed: 80520 }],
  ["a deadline fired before the result was read that had been parked (in its queue)", { seed: 742859359 }],
  ["a deadline fired before the result was read that had been parked (while it ran)", { seed: 742864863 }],
  ["an execution was accepted on a definition that the store had lost, and its owner remembered", { seed: 742872856 }],
  ["a child took up a call although a later one had been called off", { seed: 777282827 }],
  ["two items of a map that a budget refused at once were taken for one that began too late", { seed: 809595647 }],
  ["a budget of the workflow around a map was taken for that of the node inside of it", { seed: 819360610 }],
  ["what another model had said too late was not taken for the same work", { seed: 820047017 }],
  ["an item that the cache answered in the commit of a failure was taken for one too", { seed: 815931121 }],
  ["a definition read for a batch that never was counted as stored after the store had gone back", { seed: 882350068 }],
  [
    "an execution was let out of quarantine for a cancel that was undone by what was read behind it, for ever",
    { seed: 539006364 },
  ],
  ["a task put back from the state began beside the delivery that had replaced it", { seed: 883350860 }],
  ["a call that began after it had been called off was counted at its rate", { seed: 23186038 }],
  [
    "an owner less behind the clock than the one before it was taken for one that let too much through",
    { seed: 627862546 },
  ],
  [
    "a task that was out when its execution was cancelled was taken to be out in the next generation",
    { seed: 731595048 },
  ],
  ["a call that began while it was decided that nobody waits for it was counted at its rate", { seed: 1802 }],
];

describe("schedules that once failed", () => {
  test.each(FOUND)("%s", async (_what, options) => {
    const { violations } = await judge(options);
    expect(violations).toEqual([]);
  });

  test("the same seed gives the same world", async () => {
    const { violations } = await judge({ seed: 100 });
    expect(violations.filter(({ invariant }) => invariant === "DETERMINISM")).toEqual([]);
  });
});
