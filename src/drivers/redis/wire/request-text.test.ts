import * as fc from "fast-check";
import { expect, test } from "vitest";
import { type Request, RequestText } from "./request-text.ts";

/** By the book: every argument with its length in bytes. */
function byTheBook(requests: readonly Request[]): Buffer {
  const parts = requests.flatMap((request) => [
    Buffer.from(`*${request.length}\r\n`),
    ...request.flatMap((argument) => {
      const bytes = Buffer.from(argument);
      return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from("\r\n")];
    }),
  ]);
  return Buffer.concat(parts);
}

function sent(text: RequestText, requests: readonly Request[]): Buffer {
  return Buffer.concat(text.pieces(requests).map(({ text, encoding }) => Buffer.from(text, encoding)));
}

const argument = fc.oneof(
  fc.string({ unit: "binary-ascii" }),
  fc.string({ unit: "binary" }),
  // Half of a pair by itself.
  fc.constant("\ud800 and \udc00"),
);

test("requests are written by the book, whatever is in them and whatever was written before", () => {
  const turns = fc.array(fc.array(fc.array(argument, { minLength: 1, maxLength: 5 }), { maxLength: 6 }), {
    maxLength: 4,
  });
  fc.assert(
    fc.property(turns, (turns) => {
      const text = new RequestText();
      for (const requests of turns) expect(sent(text, requests).equals(byTheBook(requests))).toBe(true);
    }),
  );
});

test("many requests go in several pieces, and nothing of them is lost", () => {
  const requests = Array.from({ length: 500 }, (_, i) => ["RPUSH", `key:${i}`, (i === 250 ? "é" : "e").repeat(700)]);
  const text = new RequestText();
  expect(text.pieces(requests).map(({ encoding }) => encoding)).toEqual(
    expect.arrayContaining(["latin1", "utf8", "latin1"]),
  );
  expect(sent(text, requests).equals(byTheBook(requests))).toBe(true);
});

test("nothing to write is no piece", () => {
  expect(new RequestText().pieces([])).toEqual([]);
});
