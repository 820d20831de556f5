import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import { errorValue, MAX_ERROR_CHARS } from "./error-value.ts";
import { HandlerError } from "./handler.ts";

const circular: { self?: unknown } = {};
circular.self = circular;

class Nasty extends Error {
  override get message(): string {
    throw new Error("not even the message");
  }
}

const unreadable = new Proxy(
  {},
  {
    getPrototypeOf: () => {
      throw new Error("no prototype");
    },
  },
);

describe("whatever is thrown becomes an error value", () => {
  test.each<[string, unknown, string, string, boolean]>([
    ["an error", new Error("broke"), "HANDLER_ERROR", "broke", true],
    ["an error without a message", new Error(""), "HANDLER_ERROR", "Error", true],
    ["an error of a kind that repeats itself", new SyntaxError("broke"), "HANDLER_ERROR", "broke", false],
    ["a range error", new RangeError("broke"), "HANDLER_ERROR", "broke", false],
    ["a handler's own error", new HandlerError("HTTP_503", "busy", { retryable: true }), "HTTP_503", "busy", true],
    ["a handler's own final error", new HandlerError("HTTP_404", "gone"), "HTTP_404", "gone", false],
    ["undefined", undefined, "HANDLER_ERROR", "The handler threw undefined", true],
    ["null", null, "HANDLER_ERROR", "The handler threw null", true],
    ["a text", "oops", "HANDLER_ERROR", "The handler threw oops", true],
    ["a number", 7, "HANDLER_ERROR", "The handler threw 7", true],
    ["an object", { a: 1 }, "HANDLER_ERROR", 'The handler threw {"a":1}', true],
    ["a circle", circular, "HANDLER_ERROR", "The handler threw [object Object]", true],
    ["a big number", 10n, "HANDLER_ERROR", "The handler threw [object BigInt]", true],
    ["a symbol", Symbol("s"), "HANDLER_ERROR", "The handler threw Symbol(s)", true],
    [
      "an error whose message throws",
      new Nasty(),
      "HANDLER_ERROR",
      "The handler threw something that cannot be read",
      true,
    ],
    [
      "something that cannot be looked at",
      unreadable,
      "HANDLER_ERROR",
      "The handler threw something that cannot be read",
      true,
    ],
    ["a NUL and half a pair", new Error("a\0b\ud800"), "HANDLER_ERROR", "a\u2400b\ufffd", true],
  ])("%s", (_, thrown, code, message, retryable) => {
    expect(errorValue(thrown)).toEqual({ code, message, retryable });
  });

  test("a handler's own error from another copy of the package is the same", () => {
    const theirs = Object.assign(new Error("busy"), { name: "HandlerError", code: "HTTP_503", retryable: true });
    expect(errorValue(theirs)).toEqual({ code: "HTTP_503", message: "busy", retryable: true });
  });

  test.each<[string, unknown]>([
    [
      "that throw when they are read",
      Object.defineProperty({}, "a", { enumerable: true, get: () => JSON.parse("{") as Json }),
    ],
    ["in a circle", circular],
    ["with a NUL", { text: "a\0b" }],
    ["of 10 MB", "x".repeat(10_000_000)],
  ])("details %s are left out, and the rest is kept", (_, details) => {
    const error = new HandlerError("E", "m", { retryable: true, details: details as Json });
    expect(errorValue(error)).toEqual({ code: "E", message: "m", retryable: true });
  });

  test("details of a handler's own error are kept", () => {
    const error = new HandlerError("E", "m", { retryable: true, details: { n: 1 } });
    expect(errorValue(error)).toEqual({ code: "E", message: "m", retryable: true, details: { n: 1 } });
  });

  test.each([
    ["an error of 10 MB", new Error("é".repeat(10_000_000))],
    ["a text of 10 MB", "x".repeat(10_000_000)],
    ["a handler's own error of 10 MB", new HandlerError("E", "x".repeat(10_000_000))],
    ["one that is cut within a pair", new Error(`${"x".repeat(MAX_ERROR_CHARS - 1)}😀😀`)],
  ])("%s is cut", (_, thrown) => {
    const { message } = errorValue(thrown);
    expect(message).toHaveLength(MAX_ERROR_CHARS + 1);
    expect(message.endsWith("…") && message.isWellFormed()).toBe(true);
  });
});
