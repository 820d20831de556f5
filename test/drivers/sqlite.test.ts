import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { conformance } from "../../src/store/conformance/conformance.ts";
import type { Harness } from "../../src/store/conformance/harness.ts";
import type { Store } from "../../src/store/contract.ts";
import { createManualHost } from "./manual-host.ts";

const INBOX_LIMIT = 60;

conformance("sqlite", { open: openHarness });

async function openHarness(): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-sqlite-"));
  const host = createManualHost();
  const openIn = (name: string): Store =>
    openSqlite({ file: join(folder, name, "store.db"), host, maxInbox: INBOX_LIMIT });
  await mkdir(join(folder, "first"));
  const store = openIn("first");
  let reopened: Store | undefined;
  return {
    store,
    inboxLimit: INBOX_LIMIT,
    advance: (ms) => host.advance(ms),
    setClockBack: async (ms) => {
      // The store learns of it by looking at the clock before and after, as it does all the time where there is traffic.
      await store.tasks.lapse(0);
      host.setWallBack(ms);
      await store.tasks.lapse(0);
    },
    // The files as they lie there, the log not yet merged, are what a process that was killed leaves behind.
    reopen: async () => {
      await mkdir(join(folder, "second"));
      for (const file of ["store.db", "store.db-wal"]) {
        await copyFile(join(folder, "first", file), join(folder, "second", file));
      }
      reopened = openIn("second");
      return reopened;
    },
    close: async () => {
      await store.close();
      await reopened?.close();
      await rm(folder, { recursive: true });
    },
  };
}
