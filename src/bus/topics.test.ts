import { describe, expect, test } from "vitest";
import { queuesFault, topicsOf } from "./topics.ts";

describe("the topics of a bus", () => {
  const { dispatch, ...others } = topicsOf({ prefix: "millrace" });

  test("have the prefix in front", () => {
    expect(others).toEqual({
      start: "millrace.workflow.start",
      complete: "millrace.task.complete",
      cancel: "millrace.task.cancel",
      rejected: "millrace.rejected",
    });
    expect(topicsOf({ prefix: "a.b" }).dispatch("ocr")).toBe("a.b.task.dispatch.ocr");
  });

  test.each([
    ["llm_service", "llm_service"],
    ["llm.extract", "llm.extract"],
    ["hello/load", "hello_2Fload"],
    ["hello_2Fload", "hello_5F2Fload"],
    ["größe", "gr_C3_B6_C3_9Fe"],
    ["a b", "a_20b"],
  ])("are named so that every queue has its own: %s", (queue, name) => {
    expect(dispatch(queue)).toBe(`millrace.task.dispatch.${name}`);
    expect(dispatch(queue)).toMatch(/^[A-Za-z0-9._-]+$/);
  });

  test.each([
    [["ocr", "llm", "ocr", "a.b", "a-b", "x".repeat(226)], undefined],
    [["x".repeat(227)], /"x+…?".* would have 250 characters, .* at most 249/],
    [["ü".repeat(38)], /would have 251 characters/],
    [["a.b", "c", "a_b"], /"a\.b" and "a_b" differ only in dots and underscores/],
  ])("say before anything begins that brokers will not take them: %#", (queues, expected) => {
    const fault = queuesFault({ dispatch, ...others }, queues);
    if (expected === undefined) expect(fault).toBeUndefined();
    else expect(fault).toMatch(expected);
  });
});
