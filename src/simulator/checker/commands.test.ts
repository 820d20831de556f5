import { describe } from "vitest";
import { cancelledWorld, plainWorld } from "./clean-worlds.ts";
import { change, drop, itReports } from "./test-world.ts";

describe("commands", () => {
  itReports([
    [
      "I43",
      "an answered cancel is not in the journal",
      () => change(cancelledWorld(), "answered", 0, { request: "r9" }),
    ],
    ["I43", "a refusal is not in the journal", () => change(plainWorld(), "answered", 0, { request: "r9" })],
    ["I43", "nobody sent the cancel", () => drop(cancelledWorld(), "command", 0)],
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
  ]);
});
