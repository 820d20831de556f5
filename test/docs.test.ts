import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { handlersPage } from "../scripts/write-handlers.ts";
import { statesPage } from "../scripts/write-states.ts";

const ROOT = join(import.meta.dirname, "..");

test("docs/states.md is what the move tables say (npm run docs writes it)", () => {
  expect(readFileSync(join(ROOT, "docs/states.md"), "utf8")).toBe(statesPage());
});

test("docs/handlers.md is what configs are checked by (npm run docs writes it)", () => {
  expect(readFileSync(join(ROOT, "docs/handlers.md"), "utf8")).toBe(handlersPage());
});
