import { describe } from "vitest";
import type { World } from "../history.ts";
import { cancelledWorld, plainWorld } from "./clean-worlds.ts";
import { change, drop, itReports } from "./test-world.ts";

/** The tally's only record, with its event changed or repeated. */
function counted(times: number, status = "completed"): World {
  const event = { kind: "childCounted", atMs: 1_020, child: "execution/e1:1", status } as never;
  const events = Array.from({ length: times }, () => event);
  return change(plainWorld(), "commit", 3, { records: [{ entity: "tally/t", version: 1, events }] });
}

function mailed(patch: Readonly<Record<string, string>>, times = 1): World {
  const body = {
    kind: "childEnded",
    child: "execution/e1",
    generation: 1,
    instance: "e1",
    status: "completed",
    ...patch,
  };
  const mail = Array.from({ length: times }, (_, i) => ({ to: "tally/t", id: `m${i}`, body }));
  return change(plainWorld(), "commit", 2, { mail });
}

describe("commands and children", () => {
  itReports([
    [
      "I43",
      "an answered cancel is not in the journal",
      () => change(cancelledWorld(), "cancelled", 0, { request: "r9" }),
    ],
    ["I43", "a refusal is not in the journal", () => change(plainWorld(), "cancelled", 0, { request: "r9" })],
    ["I43", "nobody sent the cancel", () => drop(cancelledWorld(), "cancel", 0)],
    [
      "I43",
      "a cancel is decided twice",
      () => {
        const world = cancelledWorld();
        const again = world.history.find((entry) => entry.kind === "commit")!;
        const event = {
          kind: "commandRefused",
          atMs: 1_000,
          command: "cancel",
          request: "r1",
          by: "",
          code: "X",
        } as const;
        const records = [{ entity: "execution/e1", version: 6, events: [event] }];
        const more = { seq: 2, records, tasks: [], wakes: [] };
        return { ...world, history: [...world.history, { ...again, ...more }] };
      },
    ],
    ["I45", "the parent is not told", () => mailed({}, 0)],
    ["I45", "the parent is told twice", () => mailed({}, 2)],
    ["I45", "the parent is told another status", () => mailed({ status: "failed" })],
    ["I45", "the parent never counts it", () => counted(0)],
    ["I45", "the parent counts it twice", () => counted(2)],
    ["I45", "the parent counts another status", () => counted(1, "failed")],
  ]);
});
