import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import type { HandlerCall } from "../worker/handler.ts";
import { readyHandlers } from "./handlers.ts";
import type { TaskContext } from "./task-context.ts";

const { handlers } = readyHandlers({
  say: (config: Json, ctx: TaskContext) => ({ config, inputs: ctx.inputs ?? "none" }),
});

function call(config: Json, inputs?: Json): Promise<Json> | Json {
  const given: HandlerCall = {
    executionId: "e",
    nodeId: "n",
    attempt: 1,
    generation: 1,
    config,
    inputs,
    idempotencyKey: "k",
    token: "t",
    timeoutMs: 1_000,
    signal: new AbortController().signal,
    addUsage: () => {},
    closeLimit: () => {},
    conceal: () => {},
    log: () => {},
  };
  return handlers.get("say")!(given);
}

describe("a function as a handler", () => {
  test("is given the outputs of the parents as ctx.inputs", async () => {
    expect(await call({}, { a: 1 })).toEqual({ config: {}, inputs: { a: 1 } });
    expect(await call({})).toEqual({ config: {}, inputs: "none" });
  });

  test.each<[Json]>([[{ a: 1 }], [0], [""], [null]])(
    "is not called for the mock %j, which is the output",
    async (mock) => {
      expect(await call({ mock, more: 1 })).toEqual(mock);
    },
  );

  test.each([true, false])("sees mock: %s itself", async (mock) => {
    expect(await call({ mock })).toEqual({ config: { mock }, inputs: "none" });
  });
});

describe("a table of handlers", () => {
  test.each([
    ["call_external_service", "another name of the built-in http"],
    ["llm_service", "another name of the built-in llm"],
    ["input", "a node that the engine runs"],
  ])("is refused with %s, which no task would ever name", (name, because) => {
    expect(() => readyHandlers({ [name]: () => null })).toThrow(
      `The handler ${name} would never be called: this is ${because}. Give it a name of its own`,
    );
  });

  test("may bring its own http, which takes the place of the built-in one", () => {
    expect([...readyHandlers({ http: () => null }).handlers.keys()]).toEqual(["http"]);
  });
});
