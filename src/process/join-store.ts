import type { Host } from "../host/host.ts";
import type { Role } from "../settings/declarations.ts";
import { shownAddress, type StoreAddress } from "../settings/store-address.ts";
import type { Archive } from "../store/archive.ts";
import type { Store } from "../store/contract.ts";
import { StoreError } from "../store/store-error.ts";
import { checkArchiveOwner, checkNothingArchived } from "./archive.ts";
import type { Log } from "./log.ts";
import { isOwnStore, openStore, type StoreSettings } from "./open-store.ts";

/** How long a worker waits for somebody to make the store, and how often it looks. */
const PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 500;

export interface JoinOptions {
  readonly settings: StoreSettings;
  readonly address: StoreAddress;
  readonly roles: readonly Role[];
  readonly archive: Archive | undefined;
  readonly host: Host;
  readonly log: Pick<Log, "warn">;
  readonly patienceMs?: number;
}

/**
 * Opens the store that the roles are to share. An engine or an API makes it where there is none, unless its archive was
 * shipped from one that was there: then that one was lost. A worker makes none: it has nothing to put into it, and may be
 * the first to come back to a Redis that was emptied.
 */
export async function joinStore(options: JoinOptions): Promise<Store> {
  const { settings, address, roles, archive, host, log } = options;
  const open = { ...settings, host, warn: (told: string) => log.warn(told) };
  if (isOwnStore(address)) return checked(await openStore(address, open), archive, host);
  const found = await unlessMissing(openStore(address, { ...open, existing: true }));
  if (found !== undefined) return checked(found, archive, host);
  if (archive !== undefined) await checkNothingArchived(archive, host);
  if (roles.some((role) => role !== "worker")) return openStore(address, open);
  return checked(await awaited(options), archive, host);
}

async function checked(store: Store, archive: Archive | undefined, host: Host): Promise<Store> {
  try {
    if (archive !== undefined) await checkArchiveOwner(archive, store, host);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

/** A fleet is started all at once, and a worker may be quicker than those that make the store. */
async function awaited(options: JoinOptions): Promise<Store> {
  const { settings, address, host, log, patienceMs = PATIENCE_MS } = options;
  const where = shownAddress(address);
  log.warn({ store: where }, "there is no store yet; a worker waits until an engine or an API has made it");
  const untilMs = host.monotonicMs() + patienceMs;
  while (host.monotonicMs() < untilMs) {
    await host.sleep(LOOK_EVERY_MS);
    const opening = openStore(address, { ...settings, host, existing: true, warn: (told) => log.warn(told) });
    const store = await unlessMissing(opening);
    if (store !== undefined) return store;
  }
  throw new StoreError(
    "STORE_MISSING",
    `There is no store at ${where}, and a worker does not make one: an engine or an API does (millrace serve). ` +
      "If there was one, its data is gone: millrace recover --from … --store …",
  );
}

async function unlessMissing(opening: Promise<Store>): Promise<Store | undefined> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof StoreError && error.code === "STORE_MISSING") return undefined;
    throw error;
  }
}
