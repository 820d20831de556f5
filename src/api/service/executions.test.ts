import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { mapNode, node, Trial, workflow } from "../../core/execution/test-execution.ts";
import { Family } from "../../core/execution/test-family.ts";
import type { Store } from "../../store/contract.ts";
import { MAX_WHOLE_OUTPUT_BYTES } from "../limits.ts";
import type { Definitions } from "./definitions.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { Executions } from "./executions.ts";
import type { Paging } from "./paging.ts";
import type { Payloads } from "./payloads.ts";

test("an output that no text can hold is refused before it is read, with the way to its parts", async () => {
  const { state } = new Trial(workflow([node("a"), node("b")])).begin().completes("a", 1).completes("b", 2);
  const executions = new Executions({
    store: {} as Store,
    reader: {
      read: async (_: string, look: (seen: object) => unknown) => look({ state }),
    } as unknown as ExecutionReader,
    definitions: {} as Definitions,
    payloads: { texts: async (_: string, values: unknown[]) => values.map(() => "0") } as unknown as Payloads,
    paging: {} as Paging,
  });
  const sized = (bytes: number): void => {
    for (const run of state.runs) run!.output = { blob: { hash: "h", bytes } };
  };

  sized(MAX_WHOLE_OUTPUT_BYTES / 2);
  expect(await executions.output("x")).toBe('{"a":0,"b":0}');
  sized(MAX_WHOLE_OUTPUT_BYTES / 2 + 1);
  await expect(executions.output("x")).rejects.toMatchObject({
    code: "PAYLOAD_TOO_LARGE",
    more: { detail: expect.stringContaining("/v1/executions/x/nodes/{node}") },
  });
});

test("an item of a large map is looked for in its part: one not called reads like its items, one removed is named", async () => {
  const items = Array.from({ length: 2_500 }, (_, i) => i);
  const map = mapNode("m", { items, handler: "step", config: {}, max_concurrency: 1 });
  const all = new Family(workflow([map]), {}, { large: true }).begin();
  const states = new Map(Array.from(all.members, ([id, { state }]) => [id, state]));
  const look = (id: string, seen: (look: object) => unknown) => seen({ state: states.get(id) });
  const executions = new Executions({
    store: {} as Store,
    reader: {
      read: async (id: string, seen: (look: object) => unknown) => look(id, seen),
      find: async (id: string, seen: (look: object) => unknown) => (states.has(id) ? look(id, seen) : undefined),
    } as unknown as ExecutionReader,
    definitions: {} as Definitions,
    payloads: { text: async () => "null" } as unknown as Payloads,
    paging: {} as Paging,
  });
  const statusOf = async (name: string): Promise<unknown> => {
    const { node_id, status } = JSON.parse(await executions.node("x", name)) as Record<string, unknown>;
    return [node_id, status];
  };
  all.childOf("m[0]").completes("m[0]").completes("m[1]").completes("m[2]").completes("m[3]");
  expect(await statusOf("m[3]")).toEqual(["m[3]", "COMPLETED"]);
  expect(await statusOf("m[4]")).toEqual(["m[4]", "QUEUED"]);
  expect(await statusOf("m[1500]")).toEqual(["m[1500]", "PENDING"]);
  await expect(executions.node("x", "m[2500]")).rejects.toMatchObject({ code: "NOT_FOUND" });

  const { id: part } = all.childOf("m[0]");
  states.delete(part);
  await expect(executions.node("x", "m[700]")).rejects.toMatchObject({
    code: "NOT_FOUND",
    more: { detail: expect.stringContaining(part) },
  });
});

test("a page is looked at once for all who ask for the same while a look is under way, and after they asked", async () => {
  const asked: unknown[] = [];
  let version = 0;
  const paging = {
    page: async (list: string) => {
      asked.push(list);
      const items = [++version];
      await nextTurn();
      return { items, next_cursor: null };
    },
  } as unknown as Paging;
  const executions = new Executions({
    store: {} as Store,
    reader: {} as ExecutionReader,
    definitions: {} as Definitions,
    payloads: {} as Payloads,
    paging,
  });
  const list = async (limit: number): Promise<unknown> => (await executions.list({}, { limit })).items[0];
  const [first, other, ...rest] = await Promise.all([list(50), list(20), list(50), list(50)]);
  expect([first, other, ...rest]).toEqual([1, 2, 3, 3]);
  expect(await list(50)).toBe(4);
  expect(asked).toHaveLength(4);
  await Promise.all([list(50), executions.list({ workflow: "w" }, { limit: 50 })]);
  expect(asked).toHaveLength(6);
});
