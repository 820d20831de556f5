import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import { Concealment } from "./concealment.ts";

const SECRET = 'p"ss wörd/+=';

function concealing(...secrets: readonly string[]): Concealment {
  const concealment = new Concealment();
  for (const secret of secrets) concealment.add(secret);
  return concealment;
}

describe("a secret is cut out of a text", () => {
  test.each<[string, string, string]>([
    ["as it is", `it is ${SECRET}!`, "it is ***!"],
    ["twice", `${SECRET}${SECRET}`, "******"],
    ["in JSON within the text", JSON.stringify({ a: SECRET }), '{"a":"***"}'],
    ["in a URL", `?q=${encodeURIComponent(SECRET)}&x`, "?q=***&x"],
    ["in a form", `q=${new URLSearchParams([["", SECRET]]).toString().slice(1)}`, "q=***"],
  ])("%s", (_, text, concealed) => {
    expect(concealing(SECRET).text(text)).toBe(concealed);
  });

  test("in a query that escapes more than others do", () => {
    const secret = "p!ss~w0rd'";
    expect(concealing(secret).text(new URLSearchParams({ key: secret }).toString())).toBe("key=***");
  });

  test.each(["", "u", "us", "user:", "a:b:"])("in base64, after %o", (before) => {
    for (const encoding of ["base64", "base64url"] as const) {
      const text = Buffer.from(`${before}s3cr3t-t0ken-value`).toString(encoding);
      const shown = concealing("s3cr3t-t0ken-value").text(`Basic ${text}`);
      expect(shown).toContain("***");
      expect(shown.length).toBeLessThan(text.length / 2 + "Basic ".length);
    }
  });

  test("also without the line end it was read with", () => {
    expect(concealing("s3cret\n").text("Bearer s3cret")).toBe("Bearer ***");
  });

  test("whole, when another one is a part of it", () => {
    expect(concealing("abcd", "abcdefgh").text("abcdefgh abcd")).toBe("*** ***");
  });

  test("unless it is so short that it is in every text", () => {
    expect(concealing("", "no", "yes").text("no news, yes")).toBe("no news, yes");
  });

  test("without being taken for a pattern", () => {
    expect(concealing("$&.*").text("a$&.*b")).toBe("a***b");
  });
});

test("a secret is cut out of keys and values of data, however deep, and nothing else changes", () => {
  const data: Json = { "k-s3cret": ["s3cret", 1, null, true, { deep: "a s3cret b" }], other: "text" };
  expect(concealing("s3cret").json(data)).toEqual({
    "k-***": ["***", 1, null, true, { deep: "a *** b" }],
    other: "text",
  });
});

test("digits that come back as a number are cut out, and no other number is", () => {
  const data: Json = { pin: 48_151_623, longer: 481_516_234, year: 2026 };
  expect(concealing("48151623", "2026").json(data)).toEqual({ ...data, pin: "***" });
});

test("data without anything to conceal is the same data", () => {
  const data: Json = { a: ["b"] };
  expect(concealing().json(data)).toBe(data);
});
