import type { JsonObject } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { documentBytes, type SourceConfig } from "./document-source.ts";
import { failed } from "./failed.ts";
import { loadPackage } from "./optional-package.ts";
import type { RootedFolder } from "./rooted-folder.ts";

interface PdfTextConfig extends SourceConfig {
  readonly max_pages?: number;
}

/** The part of unpdf that is called here. */
interface Unpdf {
  getDocumentProxy(data: Uint8Array, options: { readonly verbosity: 0 }): Promise<PdfDocument>;
  extractText(document: PdfDocument, options: { mergePages: false }): Promise<{ readonly text: readonly string[] }>;
}

interface PdfDocument {
  readonly numPages: number;
  getMetadata(): Promise<{ readonly info?: Readonly<Record<string, unknown>> }>;
  readonly loadingTask: { destroy(): Promise<void> };
}

const DEFAULT_MAX_PAGES = 500;
/** What the file says of itself that is of use to others, by our names. */
const INFO: readonly (readonly [name: string, key: string])[] = [
  ["title", "Title"],
  ["author", "Author"],
  ["subject", "Subject"],
  ["creator", "Creator"],
  ["producer", "Producer"],
  ["created", "CreationDate"],
];

/** `pdf.text`: the text of all pages. A scan has none, which `has_text` says: then `ocr` can read pictures of its pages. */
export function pdfTextHandler(folder: RootedFolder): Handler {
  return async (call) => {
    const config = call.config as unknown as PdfTextConfig;
    const bytes = await documentBytes(folder, config);
    const unpdf = (await loadPackage("pdf.text", "unpdf")) as Unpdf;
    const document = await opened(unpdf, bytes);
    try {
      const { numPages: count } = document;
      const limit = config.max_pages ?? DEFAULT_MAX_PAGES;
      if (count > limit) throw invalid(`it has ${count} pages, and at most ${limit} are read`);
      const { text: pages } = await unpdf.extractText(document, { mergePages: false });
      call.signal.throwIfAborted();
      const text = pages.join("\n\n").toWellFormed().replaceAll("\0", "");
      return { text, page_count: count, has_text: text.trim() !== "", info: await infoOf(document) };
    } finally {
      await document.loadingTask.destroy();
    }
  };
}

async function opened(unpdf: Unpdf, bytes: Buffer): Promise<PdfDocument> {
  try {
    return await unpdf.getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 });
  } catch (error) {
    const { name, message } = error as Error;
    throw invalid(name === "PasswordException" ? "it is locked by a password" : message.replace(/\.$/, ""), error);
  }
}

async function infoOf(document: PdfDocument): Promise<JsonObject> {
  const { info = {} } = await document.getMetadata().catch(() => ({ info: {} as Readonly<Record<string, unknown>> }));
  return Object.fromEntries(
    INFO.flatMap(([name, key]) => {
      const value = info[key];
      return typeof value === "string" ? [[name, value.toWellFormed()] as const] : [];
    }),
  );
}

/** It stays so however often it is tried. */
function invalid(reason: string, cause?: unknown): Error {
  return failed("DOCUMENT_INVALID", { what: "a PDF", reason }, { cause });
}
