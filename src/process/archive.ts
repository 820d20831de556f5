import type { ReadyChecks } from "../api/service/readiness.ts";
import type { Engine } from "../engine/engine.ts";
import type { ShippingSettings } from "../engine/settings.ts";
import type { Host } from "../host/host.ts";
import type { Settings } from "../settings/declarations.ts";
import { archiveAddress, type StoreAddress } from "../settings/store-address.ts";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import { isEmpty } from "../store/is-empty.ts";
import { StoreError } from "../store/store-error.ts";

/** A Redis that writes to disk once a second may forget two of them, and needs a moment to say so. */
const FAST_WINDOW_MS = 3_000;
const ANSWER_MS = 2_000;
/** How long a store in which nothing is yet waits for its archive, and how often it asks. */
const PATIENCE_MS = 30_000;
const ASK_EVERY_MS = 500;

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
  let owner = await answerOf(() => archive.owner(), host);
  // An archive that is away does not keep a store from working; but an empty one may be empty because it was lost.
  if (owner === undefined && (await isEmpty(store))) owner = await patientAnswerOf(() => archive.owner(), host);
  if (owner !== undefined && owner !== null && owner !== incarnation) throw foreignStore();
}

/** Refuses to have a store made if the archive was shipped from one that is not there any more. */
export async function checkNothingArchived(archive: Archive, host: Host): Promise<void> {
  if ((await patientAnswerOf(() => archive.owner(), host)) !== null) throw foreignStore();
}

/** The archive knows another store than this one. */
export function foreignStore(): StoreError {
  return new StoreError(
    "STORE_LOST",
    "The archive was shipped from another store than this one: the store was lost, or this is another one. " +
      "To rebuild it: millrace recover --from … --store …",
  );
}

async function patientAnswerOf<Answer>(ask: () => Promise<Answer>, host: Host): Promise<Answer> {
  const untilMs = host.monotonicMs() + PATIENCE_MS;
  for (;;) {
    const answer = await answerOf(ask, host);
    if (answer !== undefined) return answer;
    if (host.monotonicMs() >= untilMs) break;
    await host.sleep(ASK_EVERY_MS);
  }
  throw new StoreError(
    "STORE_UNAVAILABLE",
    "The store is empty and its archive does not answer, so nobody can tell whether the store was lost. " +
      "Start again when the archive is there",
  );
}

/** How the archive is doing, for whoever looks at the health of this process. */
export function archiveNotes(archive: Archive, behind: { readonly engine?: Engine }, host: Host): ReadyChecks {
  return { archive: () => archiveTrouble(archive, behind.engine?.shipping?.trouble, host) };
}

/** What is wrong with the archive, as far as this process can tell; undefined if nothing is. */
async function archiveTrouble(
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
