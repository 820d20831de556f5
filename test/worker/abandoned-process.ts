import { nodeHost } from "../../src/host/node-host.ts";
import { ProcessHandler } from "../../src/worker/process-handler.ts";
import { testCall } from "../../src/handlers/test-server.ts";

/** A worker that is killed while its handler's process computes; it tells that process's id first. */
const module = new URL("./isolated-handler.ts", import.meta.url).href;
const { handle } = new ProcessHandler({ module, host: nodeHost });
const { pid } = (await handle(testCall({ does: "say who it is" }))) as { readonly pid: number };
void handle(testCall({ does: "compute for ever" }));
setTimeout(() => process.send!(pid), 200);
