import { availableParallelism } from "node:os";
import type { Host } from "../host/host.ts";
import type { Handler } from "../worker/handler.ts";
import { auditHandler } from "./audit.ts";
import { DOCUMENT_MOCKS } from "./document-mocks.ts";
import { fileReadHandler } from "./file-read.ts";
import { fixturesIn } from "./fixtures-in.ts";
import type { HttpClient } from "./http-client.ts";
import type { LlmProvider } from "./llm-client.ts";
import { llmExtractHandler } from "./llm-extract.ts";
import { merge } from "./merge.ts";
import { pauseLikeLlm } from "./mocks.ts";
import { notifyHandler } from "./notify.ts";
import { ocrHandler } from "./ocr.ts";
import { OutputFiles } from "./output-file.ts";
import { outputJsonHandler } from "./output-json.ts";
import { outputParquetHandler } from "./output-parquet.ts";
import { pdfTextHandler } from "./pdf-text.ts";
import { RootedFolder } from "./rooted-folder.ts";
import { validate } from "./validate.ts";

export interface DocumentOptions {
  readonly host: Host;
  readonly client: HttpClient;
  /** What is read lies in here, what is written goes there; without it those handlers say what is missing. */
  readonly filesFolder: string | undefined;
  readonly outputFolder: string | undefined;
  /** Answers of a model that is none; without a model, or for a node that is mocked. */
  readonly llmFixtures: string | undefined;
  readonly llm?: LlmProvider;
}

export interface DocumentHandlers {
  readonly handlers: readonly { readonly name: string; readonly run: Handler; readonly mock?: Handler }[];
  close(): Promise<void>;
}

/** A page takes a processor for a second or more; the rest of the worker needs one too. */
const OCR_SLOTS = Math.max(1, availableParallelism() - 1);

/** The building blocks of document processing. Nothing heavy is loaded before its first call. */
export function documentHandlers(options: DocumentOptions): DocumentHandlers {
  const { host, client, llm, llmFixtures } = options;
  const files = (handler: string): RootedFolder =>
    new RootedFolder(handler, "MILLRACE_FILES_FOLDER", options.filesFolder);
  const output = (handler: string): RootedFolder =>
    new RootedFolder(handler, "MILLRACE_OUTPUT_FOLDER", options.outputFolder);
  const fixtures = fixturesIn(llmFixtures);
  const fromFixtures = llmExtractHandler(fixtures);
  const ocr = ocrHandler(files("ocr"), OCR_SLOTS);
  const audit = auditHandler(output("audit"), host);
  const parquet = output("output.parquet");
  const runs: Readonly<Record<string, Handler>> = {
    "file.read": fileReadHandler(files("file.read")),
    "pdf.text": pdfTextHandler(files("pdf.text")),
    ocr: ocr.handler,
    "llm.extract": llmExtractHandler(llm ?? fixtures),
    validate,
    merge,
    "output.json": outputJsonHandler(new OutputFiles(output("output.json"), host)),
    "output.parquet": outputParquetHandler(new OutputFiles(parquet, host), files("output.parquet")),
    notify: notifyHandler(client, host),
    audit: audit.handler,
  };
  const mocks: Readonly<Record<string, Handler>> = {
    ...DOCUMENT_MOCKS,
    validate,
    merge,
    "llm.extract": async (call) => {
      await pauseLikeLlm(host, call);
      return fromFixtures(call);
    },
  };
  return {
    handlers: Object.entries(runs).map(([name, run]) => ({ name, run, mock: mocks[name]! })),
    close: async () => {
      audit.close();
      await ocr.close();
    },
  };
}
