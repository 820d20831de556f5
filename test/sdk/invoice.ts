import { z } from "zod";
import { workflow } from "../../src/sdk/index.ts";

/** The example of the documents: every kind of dependency that most workflows have. */

const wf = workflow("invoice", { input: z.object({ path: z.string(), minConfidence: z.number() }) });

const load = wf.node("load", async ({ input }) => ({ pages: [`${input.path}/1`, `${input.path}/2`], bytes: 3 }));
const ocr = wf.map("ocr", { after: { load }, over: ({ load }) => load.pages, concurrency: 4 }, async (page) => ({
  text: page.toUpperCase(),
  confidence: 0.9,
}));
const meta = wf.node("meta", { after: { load }, timeout: "5s" }, ({ load }) => ({ size: load.bytes }));
const merge = wf.node("merge", { after: { ocr, meta }, retry: { attempts: 3, backoff: "1s" } }, ({ ocr, meta }) => ({
  text: ocr.map((page) => page.text).join("\n"),
  size: meta.size,
  confidence: Math.min(...ocr.map((page) => page.confidence)),
}));
const flag = wf.node(
  "flag",
  { after: { merge }, when: ({ merge, input }) => merge.confidence < input.minConfidence },
  ({ merge }) => ({ reason: `confidence ${merge.confidence}` }),
);
const approve = wf.approval("approve", {
  after: { merge, flag },
  title: "Pay this invoice?",
  form: z.object({ ok: z.boolean(), note: z.string().optional() }),
  expiresIn: "2d",
});
const done = wf.node("done", { after: { merge, flag, approve } }, ({ merge, flag, approve }) => ({
  text: merge.text,
  flagged: flag !== undefined,
  ok: approve.ok,
}));

export const invoice = wf.output({ done });
