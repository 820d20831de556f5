import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { failed } from "./failed.ts";
import type { RootedFolder } from "./rooted-folder.ts";

/** What a workflow may read of one document, unless a node sets less. */
export const MAX_DOCUMENT_BYTES = 50 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;

export interface SourceConfig {
  readonly path?: string;
  readonly base64?: string;
  readonly max_bytes?: number;
}

/** The bytes of a document: of a file in the folder, or as the config holds them. */
export async function documentBytes(folder: RootedFolder, config: SourceConfig): Promise<Buffer> {
  const limitBytes = Math.min(config.max_bytes ?? MAX_DOCUMENT_BYTES, MAX_DOCUMENT_BYTES);
  const { path, base64 } = config;
  if (path !== undefined) return readFile(folder, path, limitBytes);
  const bytes = Buffer.from(base64!, "base64");
  if (bytes.length > limitBytes) throw failed("FILE_TOO_LARGE", { path: "base64", limitBytes });
  return bytes;
}

export async function readFile(folder: RootedFolder, path: string, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  await readChunks(folder, path, limitBytes, (chunk) => chunks.push(Buffer.from(chunk)));
  return Buffer.concat(chunks);
}

/** What a file is, without having all of it in memory. */
export async function describeFile(
  folder: RootedFolder,
  path: string,
  limitBytes: number,
): Promise<{ readonly bytes: number; readonly sha256: string; readonly head: Buffer }> {
  const hash = createHash("sha256");
  let bytes = 0;
  let head = Buffer.alloc(0);
  await readChunks(folder, path, limitBytes, (chunk) => {
    if (bytes === 0) head = Buffer.from(chunk.subarray(0, 4_096));
    bytes += chunk.length;
    hash.update(chunk);
  });
  return { bytes, sha256: hash.digest("hex"), head };
}

async function readChunks(
  folder: RootedFolder,
  path: string,
  limitBytes: number,
  take: (chunk: Buffer) => void,
): Promise<void> {
  const file: FileHandle = await folder.open(path);
  try {
    const { size } = await file.stat();
    if (size > limitBytes) throw failed("FILE_TOO_LARGE", { path, limitBytes });
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size + 1));
    // It may grow while it is read.
    for (let read = 0; ;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, null);
      if (bytesRead === 0) return;
      read += bytesRead;
      if (read > limitBytes) throw failed("FILE_TOO_LARGE", { path, limitBytes });
      take(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

const SIGNATURES: readonly (readonly [type: string, at: number, bytes: string])[] = [
  ["application/pdf", 0, "%PDF-"],
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/tiff", 0, "II*\0"],
  ["image/tiff", 0, "MM\0*"],
  ["image/webp", 8, "WEBP"],
  ["image/bmp", 0, "BM"],
  ["application/zip", 0, "PK\x03\x04"],
];

/** By what the file begins with: the name is whatever the sender liked. */
export function mediaType(head: Buffer): string {
  for (const [type, at, bytes] of SIGNATURES) {
    if (head.toString("latin1", at, at + bytes.length) === bytes) return type;
  }
  return head.includes(0) ? "application/octet-stream" : "text/plain";
}
