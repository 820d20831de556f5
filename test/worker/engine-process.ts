import { executionMachine } from "../../src/core/execution/machine.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";

/** An engine in a process of its own, which goes on while the test's is busy, and ends with it. */
const [url, prefix] = process.argv.slice(2) as [string, string];
const store = await openRedis({ url, prefix, partitions: 1, host: nodeHost });
const engine = new Engine({ store, host: nodeHost, machines: [executionMachine], settings: {} });
engine.start();
process.on("disconnect", () => process.exit());
