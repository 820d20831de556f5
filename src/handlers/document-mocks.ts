import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { Json, JsonObject } from "../json/json.ts";
import type { Handler, HandlerCall } from "../worker/handler.ts";
import { messageId } from "./notify.ts";

/**
 * What the handlers of documents give when they are mocked: the shape of the real ones, made up from the config alone.
 * No file is read or written, and nobody is called. `validate` and `merge` do nothing outside, so that they need none.
 */
export const DOCUMENT_MOCKS: Readonly<Record<string, Handler>> = {
  "file.read": ({ config }) => {
    const { path = "mock.txt", as } = config as { readonly path?: string; readonly as?: string };
    const content = `mock content of ${path}`;
    const about = { path, name: basename(path), ...sizeOf(content), media_type: "text/plain" };
    if (as === "none") return about;
    return { ...about, content: as === "base64" ? Buffer.from(content).toString("base64") : content };
  },
  "pdf.text": (call) => ({ text: textOf(call), page_count: 1, has_text: true, info: {} }),
  ocr: (call) => {
    const text = textOf(call);
    const { languages = ["eng"] } = call.config as { readonly languages?: Json };
    return { text, confidence: 1, lines: [{ text, confidence: 1 }], languages };
  },
  "output.json": ({ config }) => written(config, "mock.json"),
  "output.parquet": ({ config }) => {
    const { rows = [] } = config as { readonly rows?: readonly Json[] };
    return { ...written(config, "mock.parquet"), rows: rows.length };
  },
  notify: (call) => ({ id: messageId(call), status: 200 }),
  audit: ({ config, idempotencyKey }) => {
    const { file = "audit.jsonl" } = config as { readonly file?: string };
    return { file, seq: 0, hash: sizeOf(idempotencyKey).sha256, written: false };
  },
};

function textOf({ config }: HandlerCall): string {
  return `mock text of ${(config as { readonly path?: string }).path ?? "a document"}`;
}

function written(config: Json, otherwise: string): JsonObject {
  const { path, folder } = config as { readonly path?: string; readonly folder?: string };
  return { path: path ?? `${folder ?? "."}/${otherwise}`, ...sizeOf(JSON.stringify(config)), written: false };
}

function sizeOf(text: string): { readonly bytes: number; readonly sha256: string } {
  return { bytes: Buffer.byteLength(text), sha256: createHash("sha256").update(text).digest("hex") };
}
