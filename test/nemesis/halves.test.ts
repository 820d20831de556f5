import { expect, test } from "vitest";
import { isOfHalves } from "./halves.ts";
import type { Survivors } from "./survivors.ts";

const FEW = "gate/concurrency:default:few";
const crowd = `I39 3 tasks are out at ${FEW}, and 2 may be: execution/a n, execution/b n, execution/c n [commit 1/2, entry 3 of the history]`;
const slipped = "I39a It went out after 3 of 4 gates [execution a, node n, commit 1/2, entry 3 of the history]";
const uncounted = `I38b gate/budget:default:b has not counted execution/a 9, which was out`;
const counted = `I38b gate/budget:default:b has counted execution/a 9, which was not out`;
const cached = "I46 Its result is said to be that of a, which has done no such work [execution b, node n]";

/** The finding, of whom something was lost, who was out before, and whether the loss explains it. */
const CASES: readonly (readonly [string, readonly string[], readonly string[], boolean])[] = [
  [crowd, [FEW], ["execution/b n"], true],
  [crowd, ["execution/b"], ["execution/b n"], true],
  [crowd, [FEW], [], false],
  [crowd, [], ["execution/b n"], false],
  [crowd, ["execution/a"], ["execution/b n"], false],
  [crowd.replace("3 tasks", "4 tasks"), [FEW], ["execution/b n"], false],
  [slipped, [FEW], ["execution/a n"], true],
  [slipped, [FEW], [], false],
  [slipped, ["execution/a"], ["execution/a n"], false],
  [slipped.replace("3 of", "2 of"), [FEW], ["execution/a n"], false],
  [uncounted, ["gate/budget:default:b"], [], true],
  [uncounted, ["execution/a"], [], false],
  [counted, ["execution/a"], [], true],
  [counted, ["gate/budget:default:b"], [], false],
  [cached, ["execution/a"], [], true],
  [cached, ["execution/b"], [], false],
  [`I39b At ${FEW} this still is held: execution/a 11`, [FEW, "execution/a"], ["execution/a n"], false],
  [`I38a ${FEW} has let 3 calls through, and 2 may be spent`, [FEW, "execution/a"], ["execution/a n"], false],
];

test.each(CASES)("%s, with %j lost and %j out before: %j", (finding, lost, wereOut, isExplained) => {
  const survivors = { lost: lost.map((entity) => ({ entity })), wereOut: new Set(wereOut) };
  expect(isOfHalves(finding, survivors as unknown as Survivors)).toBe(isExplained);
});
