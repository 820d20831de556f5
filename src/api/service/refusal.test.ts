import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ERRORS } from "../../errors/registry.ts";
import { Refusal, refusedByOwner } from "./refusal.ts";

/** Of a start whose id no API gives out. */
const NEVER_HERE = new Set(["INVALID_ID"]);

test("every code that an owner refuses with has its sentence", () => {
  const source = join(import.meta.dirname, "..", "..");
  const codes = readdirSync(source, { recursive: true, encoding: "utf8" })
    .filter((file) => /^(core|engine)\/.*\.ts$/.test(file) && !file.includes("test"))
    .flatMap((file) => [...readFileSync(join(source, file), "utf8").matchAll(/refused: "([A-Z_]+)"/g)])
    .map(([, code]) => code!)
    .filter((code) => !NEVER_HERE.has(code));
  expect(codes.length).toBeGreaterThan(10);
  expect(codes.filter((code) => !Object.hasOwn(ERRORS, code))).toEqual([]);
});

test("what the owner tells comes with the refusal; what nobody knows is a bug", () => {
  const execution = { execution_id: "x", status: "RUNNING", generation: 1 };
  const error = refusedByOwner("EXECUTION_OPEN", "x", { execution });
  expect(error).toBeInstanceOf(Refusal);
  expect(error).toMatchObject({ code: "EXECUTION_OPEN", kind: "conflict", more: { execution } });
  expect(refusedByOwner("NOT_FOUND", "x", {}).message).toBe('There is no execution "x".');
  expect(refusedByOwner("NOT_FOUND", "x", { detail: 'There is no node "a"' })).toMatchObject({
    more: { detail: 'There is no node "a"' },
  });
  expect(() => refusedByOwner("WHAT", "x", {})).toThrow(/nobody knows/);
});
