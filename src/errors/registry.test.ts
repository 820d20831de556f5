import { expect, test } from "vitest";
import { MillraceError } from "./millrace-error.ts";
import { ERRORS, quote } from "./registry.ts";

test("an error carries its code, kind, details and sentence", () => {
  const error = new MillraceError("CYCLE_DETECTED", { path: ["a", "b", "a"] });
  expect(error).toMatchObject({ code: "CYCLE_DETECTED", kind: "invalid", details: { path: ["a", "b", "a"] } });
  expect(error.message).toBe("Nodes depend on each other in a circle: a → b → a.");
  expect(error).toBeInstanceOf(Error);
});

test("every code is upper case, and every kind is one that the API can map", () => {
  const kinds = new Set(
    "malformed invalid tooLarge conflict notFound notAllowed unsupported unauthenticated forbidden rateLimited".split(
      " ",
    ),
  );
  for (const kind of ["unavailable", "internal", "warning", "failed"]) kinds.add(kind);
  for (const [code, { kind }] of Object.entries(ERRORS)) {
    expect(code).toMatch(/^[A-Z][A-Z_]+$/);
    expect(kinds).toContain(kind);
  }
});

test("a name in a message is quoted, escaped and never a page long", () => {
  expect(quote('a"b\n')).toBe('"a\\"b\\n"');
  expect(quote("x".repeat(10_000)).length).toBeLessThan(90);
});
