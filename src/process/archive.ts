import type { ShippingSettings } from "../engine/settings.ts";
import type { Host } from "../host/host.ts";
import type { Settings } from "../settings/declarations.ts";
import { archiveAddress, type StoreAddress } from "../settings/store-address.ts";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";

/** A Redis that writes to disk once a second may forget two of them, and needs a moment to say so. */
const FAST_WINDOW_MS = 3_000;
const ANSWER_MS = 2_000;

/** The archive of the settings; undefined if there is none. It need not be there yet. */
export async function openArchive(settings: Settings, host: Host): Promise<Archive | undefined> {
  const url = archiveAddress(settings);
  if (url === undefined) return undefined;
  if (typeof url !== "string") throw new StoreError("STORE_INVALID", url.fault);
  const { openPostgresArchive } = await import("../drivers/postgres/archive.ts");
  return openPostgresArchive({ url, host });
}

export function shippingOf(settings: Settings, { kind }: StoreAddress): ShippingSettings {
  return {
    everyMs: settings.checkpointInterval * 1_000,
    windowMs: kind === "redis" && settings.redisDurability === "fast" ? FAST_WINDOW_MS : 0,
    keepMs: settings.archiveKeep * 1_000,
  };
}

/**
 * Refuses a store that is not the one its archive was shipped from: it is empty because everything was lost, or it is
 * another application's. To go on with it would leave everything that was open where nobody looks.
 */
export async function checkArchiveOwner(archive: Archive, store: Store, host: Host): Promise<void> {
  const { incarnation } = store.capabilities;
  if (incarnation === undefined) return;
  const owner = await answerOf(() => archive.owner(), host);
  // An archive that is away does not keep the store from working; what it would have said, shipping says later.
  if (owner === undefined || owner === null || owner === incarnation) return;
  throw new StoreError(
    "STORE_LOST",
    "The archive was shipped from another store than this one: the store was lost, or this is another one. " +
      "To rebuild it: millrace recover --from … --store …",
  );
}

/** What is wrong with the archive, as far as this process can tell; undefined if nothing is. */
export async function archiveTrouble(
  archive: Archive,
  engineTrouble: string | undefined,
  host: Host,
): Promise<string | undefined> {
  if (engineTrouble !== undefined) return engineTrouble;
  return (await answerOf(() => archive.progress(), host)) === undefined ? "does not answer" : undefined;
}

async function answerOf<Answer>(ask: () => Promise<Answer>, host: Host): Promise<Answer | undefined> {
  const answered = new AbortController();
  const late = host.sleep(ANSWER_MS, answered.signal).then(() => undefined);
  try {
    return await Promise.race([ask(), late]);
  } catch {
    return undefined;
  } finally {
    answered.abort("answered");
  }
}
