import { isOwnStore } from "../../process/open-store.ts";
import { type BusAddress, busAddress } from "../../settings/bus-address.ts";
import type { ReadSettings } from "../../settings/read-settings.ts";
import { storeAddress } from "../../settings/store-address.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { startBusWorkerProcess, startGatewayWorkerProcess } from "../start-far-worker.ts";
import { startAndServe, type Started, startProcess } from "../start-process.ts";

/** A worker beside the engines of a store that several processes share, over the HTTP API of a server, or over Kafka. */
export const verb: Verb = async (call) => {
  const read = await call.settings();
  const bus = busOf(read);
  await startAndServe(call, () => {
    if (bus !== undefined) return startBusWorkerProcess(call, read.settings, bus);
    return isByServer(read) ? overHttp(call, read) : onStore(call, read);
  });
  return EXIT.done;
};

/** What stands nearer counts, as with store and server; of those that are as near, the bus. */
function busOf({ settings, origins }: ReadSettings): BusAddress | undefined {
  const isElsewhere = origins.bus !== "--bus" && (origins.store === "--store" || origins.url === "--url");
  const address = isElsewhere ? undefined : busAddress(settings);
  return address === undefined || "fault" in address ? undefined : address;
}

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
      hint: "name a store that is shared: --store postgres://… or redis://…   a server: --url http://…   or a bus: --bus kafka://…",
    });
  }
  return startProcess(call, read, { roles: ["worker"], logTo: 1, loopback: false, tellsHealth: true });
}
