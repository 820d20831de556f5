import { basename } from "node:path";
import { type Handler } from "../worker/handler.ts";
import { describeFile, MAX_DOCUMENT_BYTES, mediaType, readFile } from "./document-source.ts";
import { failed } from "./failed.ts";
import type { RootedFolder } from "./rooted-folder.ts";

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface FileReadConfig {
  readonly path: string;
  readonly as?: "text" | "base64" | "none";
  readonly max_bytes?: number;
}

/** Its base64 still fits into an output. */
const MAX_CONTENT_BYTES = 700_000;

/**
 * `file.read`: what a file is, by its content and not by its name, and the content itself if it is wanted. Larger ones are
 * passed on by path: `as: none` reads up to 50 MiB and keeps nothing.
 */
export function fileReadHandler(folder: RootedFolder): Handler {
  return async (call) => {
    const { path, as = "text", max_bytes: wanted } = call.config as unknown as FileReadConfig;
    const limitBytes = Math.min(wanted ?? Infinity, as === "none" ? MAX_DOCUMENT_BYTES : MAX_CONTENT_BYTES);
    const { bytes, sha256, head } = await describeFile(folder, path, limitBytes);
    const about = { path, name: basename(path), bytes, sha256, media_type: mediaType(head) };
    if (as === "none") return about;
    const content = await readFile(folder, path, limitBytes);
    return { ...about, content: as === "base64" ? content.toString("base64") : textOf(content) };
  };
}

/** Text that is none is no text: somebody would find out much later. */
function textOf(content: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(content);
  } catch (error) {
    throw failed("DOCUMENT_INVALID", { what: "a text", reason: "it is not UTF-8" }, { cause: error });
  }
}
