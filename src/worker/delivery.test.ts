import { expect, test } from "vitest";
import type { TaskText } from "../core/execution/prepare.ts";
import { Delivery } from "./delivery.ts";

const LEASED = { token: "t", entity: "execution/x", partition: 0, queue: "q", priority: 0, text: "{}", ref: "1" };
const TASK: TaskText = {
  token: "t",
  execution: "x",
  node: "a",
  handler: "h",
  generation: 1,
  attempt: 1,
  delivery: 1,
  idempotencyKey: "x/a/1",
  timeoutMs: 30_000,
};

test("what was filled in elsewhere is concealed in what the handler logs", () => {
  const delivery = new Delivery({ ...LEASED, secrets: ["s3cr3t"] }, 0);
  const logged: unknown[] = [];
  const call = delivery.call(TASK, { config: {}, inputs: undefined }, (_, entry) => logged.push(entry));
  call.log("calling with s3cr3t", { header: "Bearer s3cr3t" });
  expect(logged).toEqual([{ message: "calling with ***", fields: { header: "Bearer ***" } }]);
});

test("a call has no getters: each would give it a hidden class of its own, which keeps it from being collected", () => {
  const delivery = new Delivery(LEASED, 0);
  const call = delivery.call(TASK, { config: {}, inputs: undefined }, () => {});
  const properties = Object.entries(Object.getOwnPropertyDescriptors(call));
  expect(properties.filter(([, property]) => "get" in property).map(([name]) => name)).toEqual([]);
  expect({ ...call }.signal).toBe(delivery.abort.signal);
});
