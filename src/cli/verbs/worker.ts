import { isOwnStore } from "../../process/open-store.ts";
import type { ReadSettings } from "../../settings/read-settings.ts";
import { storeAddress } from "../../settings/store-address.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { startGatewayWorkerProcess } from "../start-gateway-worker.ts";
import { startAndServe, type Started, startProcess } from "../start-process.ts";

/** A worker beside the engines of a store that several processes share, or over the HTTP API of a server. */
export const verb: Verb = async (call) => {
  const read = await call.settings();
  await startAndServe(call, () => (isByServer(read) ? overHttp(call, read) : onStore(call, read)));
  return EXIT.done;
};

/** What stands nearer counts: a flag before a variable, and of two that are as near the store. */
function isByServer({ origins }: ReadSettings): boolean {
  if (origins.store === "--store") return false;
  if (origins.url === "--url") return true;
  return origins.store === "default" && origins.url !== "default";
}

function overHttp(call: Call, { settings }: ReadSettings): Promise<Started> {
  const key = option(call, "key");
  return startGatewayWorkerProcess(call, { ...settings, ...(key !== undefined && { apiKey: key }) });
}

async function onStore(call: Call, read: ReadSettings): Promise<Started> {
  const address = storeAddress(read.settings);
  if (!("fault" in address) && isOwnStore(address)) {
    throw new Failure(EXIT.usage, `a ${address.kind} store belongs to one process, which has its own worker.`, {
      hint: "name a store that is shared: --store postgres://… or redis://…   or a server: --url http://…",
    });
  }
  return startProcess(call, read, { roles: ["worker"], logTo: 1, loopback: false, tellsHealth: true });
}
