import { RE2JS } from "re2js";
import { expect, test } from "vitest";
import { patternSize } from "./pattern-size.ts";

test.each([
  "",
  "a",
  "^abc$",
  "a|b|c",
  "(a(b)c)",
  "(?:ab)*c+d?",
  "[a-z]",
  "[]a]",
  "[^\\]{}()]{20}",
  "[[:alpha:]-]{3}",
  "\\p{Greek}{5}",
  "\\{3}",
  "\\(x{2}",
  "^.{1,1000}$",
  "a{2,}",
  "(?i:ab){7}",
  "(?P<name>x{3}){3}",
  "((a{1,10}){1,10}){1,10}",
  "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?",
  "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
  "^(25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(\\.(25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})){3}$",
])("%s is about as large as its program", (pattern) => {
  const exact = RE2JS.compile(pattern).programSize();
  expect(patternSize(pattern)).toBeGreaterThanOrEqual(exact - 3);
  expect(patternSize(pattern)).toBeLessThanOrEqual(3 * exact + 3);
});

test("what asks for a million steps is known without making them", () => {
  expect(patternSize(`(${"a".repeat(990)}){1000}`)).toBeGreaterThan(990_000);
  expect(patternSize("(".repeat(500))).toBeGreaterThan(500);
  expect(patternSize(")".repeat(500))).toBeGreaterThan(0);
});
