import { expect, test } from "vitest";
import type { Service } from "../../api/service/service.ts";
import { notFound } from "../../api/service/refusal.ts";
import { itemsInVain } from "./items-in-vain.ts";

test("an item that its batch has sent for and that is not there yet does not wait in vain", async () => {
  const page = JSON.stringify({ items: [{ execution_id: "e" }], next_cursor: null });
  const batches = { items: async () => page };
  const histories = { list: () => Promise.reject(notFound("execution", "e")) };
  const service = { batches, histories } as unknown as Service;
  expect(await itemsInVain(service, "b", () => true)).toEqual([]);
});
