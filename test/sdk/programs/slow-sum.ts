import { z } from "zod";
import { workflow } from "../../../src/sdk/index.ts";

const wf = workflow("slow sum", { input: z.object({ n: z.number() }) });
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const list = wf.node("list", async ({ input }) => {
  await pause(20);
  return Array.from({ length: input.n }, (_, i) => i);
});
const each = wf.map("each", { after: { list }, over: ({ list }) => list, concurrency: 3 }, async (i) => {
  await pause(10);
  return i * i;
});
const sum = wf.node("sum", { after: { each } }, async ({ each }) => {
  await pause(20);
  return each.reduce((a, b) => a + b, 0);
});

export const slowSum = wf.output({ sum });
