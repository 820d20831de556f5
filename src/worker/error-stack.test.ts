import { describe, expect, test } from "vitest";
import { Concealment } from "./concealment.ts";
import { errorStack, MAX_STACK_CHARS } from "./error-stack.ts";

const nothing = new Concealment();

function stacked(error: Error, stack: string | undefined): Error {
  return Object.defineProperty(error, "stack", { value: stack });
}

describe("the stack of what was thrown", () => {
  test("names its class, where it was thrown, and what caused it", () => {
    const stack = errorStack(new TypeError("no", { cause: new RangeError("far", { cause: "a wire" }) }), nothing)!;
    expect(stack).toMatch(/^TypeError: no\n {4}at .*error-stack\.test\.ts:\d+:\d+/);
    expect(stack).toMatch(/\ncaused by RangeError: far\n {4}at .*\ncaused by a wire$/s);
  });

  test("names the file of a module that was loaded anew", () => {
    const error = stacked(new Error("no"), "Error: no\n    at a (file:///w.ts?changed=17.25:3:5)");
    expect(errorStack(error, nothing)).toBe("Error: no\n    at a (file:///w.ts:3:5)");
  });

  test.each<[string, unknown]>([
    ["what is no error", "oops"],
    ["nothing", undefined],
    ["an error whose code says it all", stacked(new Error("x"), undefined)],
    [
      "an error whose stack throws",
      Object.defineProperty(new Error("x"), "stack", {
        get: () => {
          throw new Error("no stack");
        },
      }),
    ],
  ])("is none of %s", (_, thrown) => {
    expect(errorStack(thrown, nothing)).toBeUndefined();
  });

  test("is bounded, however long a message is or however often something is its own cause", () => {
    const long = errorStack(new Error("x".repeat(100_000)), nothing)!;
    expect(long.length).toBeLessThanOrEqual(MAX_STACK_CHARS + 1);
    expect(long).toMatch(/…\n {4}at .*error-stack\.test\.ts/);
    const own = new Error("own");
    own.cause = own;
    expect(errorStack(own, nothing)!.match(/caused by/g)).toHaveLength(4);
    expect(errorStack(stacked(own, `Error: own\n    at ${"x".repeat(100_000)}`), nothing)).toHaveLength(
      MAX_STACK_CHARS + 1,
    );
  });

  test("has no secret in it, also none that its cut would halve", () => {
    const concealment = new Concealment();
    concealment.add("s3cr3t-v4lue");
    const text = `${"x".repeat(506)}s3cr3t-v4lue`;
    expect(errorStack(new Error(text), concealment)).not.toContain("s3cr");
    expect(errorStack(new Error("a", { cause: { token: "s3cr3t-v4lue" } }), concealment)).toContain('{"token":"***"}');
  });
});
