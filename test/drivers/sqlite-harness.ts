import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import type { Host } from "../../src/host/host.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Harness } from "../../src/store/conformance/harness.ts";
import type { Store } from "../../src/store/contract.ts";

const INBOX_LIMIT = 60;

/** A store in a folder of its own. Threads take their time, so the clock is the real one. */
export async function openSqliteHarness(root = tmpdir()): Promise<Harness> {
  const folder = await mkdtemp(join(root, "millrace-sqlite-"));
  let wallOffsetMs = 0;
  const host: Host = { ...nodeHost, wallMs: () => nodeHost.wallMs() + wallOffsetMs };
  const openIn = (name: string): Promise<Store> =>
    openSqlite({ file: join(folder, name, "store.db"), host, maxInbox: INBOX_LIMIT });
  const stores = [await openIn("first")];
  return {
    store: stores[0]!,
    inboxLimit: INBOX_LIMIT,
    advance: (ms) => sleep(ms),
    setClockBack: async (ms) => {
      // The store learns of it by looking at the clock before and after, as it does all the time where there is traffic.
      await stores[0]!.tasks.lapse(0);
      wallOffsetMs -= ms;
      await stores[0]!.tasks.lapse(0);
    },
    // The files as they lie there, the log not yet merged, are what a process that was killed leaves behind.
    reopen: async () => {
      await mkdir(join(folder, "second"));
      for (const file of ["store.db", "store.db-wal"]) {
        await copyFile(join(folder, "first", file), join(folder, "second", file));
      }
      const reopened = await openIn("second");
      stores.push(reopened);
      return reopened;
    },
    close: async () => {
      for (const store of stores) await store.close();
      await rm(folder, { recursive: true });
    },
  };
}
