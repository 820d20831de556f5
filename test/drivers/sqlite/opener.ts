import { openSqlite } from "../../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../../src/host/node-host.ts";
import { acquire } from "../../../src/store/conformance/owner.ts";

/**
 * A program that opens a store, commits once and comes to its end. `--in FOLDER` names no file, `--as UID FILE` is
 * somebody else, `--leave FILE` does not close it.
 */
const [how, first, second] = process.argv.slice(2);
if (how === "--in") process.chdir(first!);
if (how === "--as") process.setuid!(Number(first));
const file = how === "--in" ? undefined : (second ?? first);
try {
  const store = await openSqlite(file === undefined ? { host: nodeHost } : { file, host: nodeHost });
  const owner = await acquire(store);
  await owner.commit();
  console.log("committed");
  await store.partitions.release(owner.fence);
  if (how !== "--leave") await store.close();
} catch (error) {
  console.error(error instanceof Error && "code" in error ? error.code : "", String(error));
  process.exitCode = 1;
}
