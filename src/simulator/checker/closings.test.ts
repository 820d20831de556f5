import { describe } from "vitest";
import { closedWorld } from "./gate-worlds.ts";
import { itReports } from "./test-world.ts";

describe("who has no more to give", () => {
  itReports([
    ["I38c", "a gate is not told that whoever is behind it has no more", () => closedWorld({ isTold: false })],
    ["I38c", "a gate is told, and stays open", () => closedWorld({ isMinded: false })],
  ]);
});
