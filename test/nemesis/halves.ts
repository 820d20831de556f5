import { entityKind } from "../../src/core/entity.ts";
import type { Survivors } from "./survivors.ts";

/**
 * An execution and its limit, or who has done some work and who got its result from the cache, agree by mail: each has its
 * half in a journal of its own. A loss may take one half and leave the other. These are the findings that this explains, each
 * only for those of whom something is really missing, and only for what was out before the loss; whatever is left behind in
 * the end, or granted twice by what a limit itself remembers, is none of them.
 */
export function isOfHalves(finding: string, { lost, wereOut }: Survivors): boolean {
  const behind = new Set(lost.map(({ entity }) => entity));

  // More are out than may be: the limit has forgotten that it let them through, or they that they came back.
  const crowd = /^I39 (\d+) tasks are out at (\S+), and (\d+) may be: ([^[]*)/.exec(finding);
  if (crowd !== null) {
    const [, out, gate, most, tasks] = crowd;
    const excused = tasks!.split(", ").filter((task) => {
      return wereOut.has(task.trim()) && (behind.has(gate!) || behind.has(task.split(" ")[0]!));
    });
    return Number(out) - Number(most) <= excused.length;
  }

  // It was let through, and the limit has forgotten that.
  const slipped = /^I39a It went out after (\d+) of (\d+) gates \[execution (\S+), node (\S+),/.exec(finding);
  if (slipped !== null) {
    const [, passed, all, execution, node] = slipped;
    const gates = [...behind].filter((entity) => entityKind(entity) === "gate").length;
    return wereOut.has(`execution/${execution} ${node}`) && Number(all) - Number(passed) <= gates;
  }

  // What was used is counted by who remembers that it was let through.
  const uncounted = /^I38b (\S+) has not counted (\S+) \d+, which was out/.exec(finding);
  if (uncounted !== null) return behind.has(uncounted[1]!);
  const unheard = /^I38b \S+ has counted (\S+) \d+, which was not out/.exec(finding);
  if (unheard !== null) return behind.has(unheard[1]!);

  const from = /^I46 Its result is said to be that of (\S+), which has done no such work/.exec(finding)?.[1];
  return from !== undefined && behind.has(`execution/${from}`);
}
