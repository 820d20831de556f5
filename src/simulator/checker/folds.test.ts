import { describe } from "vitest";
import { plainWorld } from "./clean-worlds.ts";
import { change, itReports, remain } from "./test-world.ts";

const FOLD = { entity: "execution/e1", whole: "h", fromSnapshot: "h", again: "h" };

describe("folds", () => {
  itReports([
    [
      "I5",
      "a snapshot is not what the journal gives",
      () => remain(plainWorld(), { folds: [{ ...FOLD, fromSnapshot: "x" }] }),
    ],
    [
      "I5",
      "a snapshot is ahead of the journal",
      () => change(plainWorld(), "commit", 1, { snapshots: [{ entity: FOLD.entity, version: 6 }] }),
    ],
    ["I42", "a journal folds to two states", () => remain(plainWorld(), { folds: [{ ...FOLD, again: "x" }] })],
  ]);
});
