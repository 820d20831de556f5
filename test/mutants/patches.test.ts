import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { MUTANTS } from "./mutants.ts";

const SRC = join(import.meta.dirname, "..", "..", "src");

test("every mutant has a name of its own", () => {
  expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
});

test.each(MUTANTS.map((mutant) => [mutant.name, mutant] as const))("%s still fits the sources", (_name, mutant) => {
  for (const { file, find, put } of mutant.patches) {
    const source = readFileSync(join(SRC, file), "utf8");
    expect(source.split(find).length - 1, `${file}: ${find}`).toBe(1);
    expect(put).not.toBe(find);
  }
});
