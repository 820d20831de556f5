import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { Handler } from "../worker/handler.ts";
import { documentBytes, mediaType, type SourceConfig } from "./document-source.ts";
import { failed } from "./failed.ts";
import { type OcrEngine, OcrPool } from "./ocr-pool.ts";
import { loadPackage, packageFile } from "./optional-package.ts";
import type { RootedFolder } from "./rooted-folder.ts";

interface OcrConfig extends SourceConfig {
  readonly languages?: readonly string[];
}

/** The part of tesseract.js that is called here. */
interface Tesseract {
  createWorker(languages: string, mode: 1, options: object): Promise<OcrEngine>;
}

const IMAGES: ReadonlySet<string> = new Set([
  "image/png",
  "image/jpeg",
  "image/gif",
  "image/webp",
  "image/bmp",
  "image/tiff",
]);
const TESSERACT = "tesseract.js";

export interface Ocr {
  readonly handler: Handler;
  close(): Promise<void>;
}

/**
 * `ocr`: the text in a picture, with how sure the reader is of each line. It works without a network: the language's data
 * comes with a package, where the library would fetch it from a CDN.
 */
export function ocrHandler(folder: RootedFolder, slots: number): Ocr {
  const pool = new OcrPool(slots, startEngine);
  const handler: Handler = async (call) => {
    const config = call.config as unknown as OcrConfig;
    const languages = config.languages ?? ["eng"];
    const bytes = await documentBytes(folder, config);
    if (!IMAGES.has(mediaType(bytes.subarray(0, 64))))
      throw invalid("it is neither PNG, JPEG, GIF, WebP, BMP nor TIFF");
    const page = await pool.read(languages, bytes, call.signal);
    if (page === undefined) throw invalid("the picture is damaged");
    return { ...page, languages };
  };
  return { handler, close: () => pool.close() };
}

async function startEngine(languages: readonly string[]): Promise<OcrEngine> {
  const packages = languages.map((code) => `@tesseract.js-data/${code}`);
  const loaded = (await loadPackage("ocr", TESSERACT, packages)) as Partial<Tesseract> & {
    readonly default?: Tesseract;
  };
  const tesseract = loaded.default ?? (loaded as Tesseract);
  const models = languages.map((code) => {
    if (!/^[a-z_]{2,32}$/i.test(code)) throw failed("PACKAGE_MISSING", { handler: "ocr", packages });
    return packageFile("ocr", `@tesseract.js-data/${code}`, `4.0.0_best_int/${code}.traineddata.gz`);
  });
  // Each package has one language in a folder of its own, and the library looks for all of them in the same.
  const folder = await mkdtemp(join(tmpdir(), "millrace-ocr-"));
  const trouble = Promise.withResolvers<never>();
  trouble.promise.catch(() => {});
  try {
    await Promise.all(models.map((model) => symlink(model, join(folder, basename(model)))));
    // What goes wrong at the start is told to this function alone; without it the library throws where nobody catches.
    const errorHandler = (error: unknown): void =>
      trouble.reject(new Error(`The reader did not start: ${String(error)}`));
    const options = { langPath: folder, cacheMethod: "none", gzip: true, errorHandler };
    return await Promise.race([tesseract.createWorker(languages.join("+"), 1, options), trouble.promise]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function invalid(reason: string): Error {
  return failed("DOCUMENT_INVALID", { what: "a picture", reason });
}
