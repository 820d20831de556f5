import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Host } from "../host/host.ts";
import type { JsonObject } from "../json/json.ts";
import type { HandlerCall } from "../worker/handler.ts";
import { failed } from "./failed.ts";
import { type RootedFolder, writeWhole } from "./rooted-folder.ts";

export interface TargetConfig {
  readonly path?: string;
  readonly folder?: string;
  readonly if_exists?: "replace" | "fail";
}

/**
 * Writes the file of one node, once. Without a path its name comes from the work's idempotency key: it is there only if
 * an earlier attempt has finished it, and then nothing is written. With a path, the same content again leaves the file
 * as it is. In both cases a file is there as a whole or not at all.
 */
export class OutputFiles {
  readonly #folder: RootedFolder;
  readonly #host: Host;

  constructor(folder: RootedFolder, host: Host) {
    this.#folder = folder;
    this.#host = host;
  }

  async write(
    call: HandlerCall,
    extension: string,
    write: (file: string) => Promise<void>,
  ): Promise<JsonObject & { readonly path: string; readonly written: boolean }> {
    const { path: given, folder = "", if_exists: ifExists = "replace" } = call.config as unknown as TargetConfig;
    const path = given ?? join(folder, `${nameOf(call)}.${extension}`);
    const target = await this.#folder.place(path);
    const before = await describe(target);
    if (before !== undefined && given === undefined) return { path, ...before, written: false };
    const written = await writeWhole(target, this.#host.id(), async (temporary) => {
      await write(temporary);
      call.signal.throwIfAborted();
      if (before === undefined) return true;
      if ((await describe(temporary))?.sha256 === before.sha256) return false;
      if (ifExists === "fail") throw failed("FILE_EXISTS", { path });
      return true;
    });
    return { path, ...(await describe(target))!, written };
  }
}

/** The same for every attempt of the same work, and for nothing else. */
function nameOf({ nodeId, idempotencyKey }: HandlerCall): string {
  const key = createHash("sha256").update(idempotencyKey).digest("hex").slice(0, 16);
  return `${nodeId.replaceAll(/[^\w-]/g, "_").slice(0, 60)}-${key}`;
}

async function describe(file: string): Promise<{ readonly bytes: number; readonly sha256: string } | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) return undefined;
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) hash.update(chunk);
  return { bytes: found.size, sha256: hash.digest("hex") };
}
