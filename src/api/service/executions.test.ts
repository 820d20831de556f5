import { expect, test } from "vitest";
import { node, Trial, workflow } from "../../core/execution/test-execution.ts";
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
