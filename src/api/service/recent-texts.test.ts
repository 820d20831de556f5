import { expect, test } from "vitest";
import { RecentTexts } from "./recent-texts.ts";

test("the same bytes are found again, as long as they are about the same", () => {
  const recent = new RecentTexts<string>();
  const text = Buffer.from("abc");
  recent.set(text, "json 1", "first");
  expect(recent.get(Buffer.from("abc"), "json 1")).toBe("first");
  expect(recent.get(Buffer.from("abc"), "json 2")).toBeUndefined();
  expect(recent.get(Buffer.from("abd"), "json 1")).toBeUndefined();
  expect(recent.get("abc", "json 1")).toBeUndefined();
  // What is kept is a copy.
  text[0] = 0x7a;
  expect(recent.get(Buffer.from("abc"), "json 1")).toBe("first");
  expect(recent.get(text, "json 1")).toBeUndefined();
});

test("of many lengths, and of what is long, not all is kept", () => {
  const recent = new RecentTexts<number>();
  for (let length = 1; length <= 1_000; length++) recent.set(Buffer.alloc(length), "", length);
  const found = Array.from({ length: 1_000 }, (_, i) => recent.get(Buffer.alloc(i + 1), "")).filter(Boolean);
  expect(found.length).toBeLessThanOrEqual(64);
  expect(found).toContain(1_000);
  recent.set(Buffer.alloc(100_000), "", 1);
  expect(recent.get(Buffer.alloc(100_000), "")).toBeUndefined();
});
