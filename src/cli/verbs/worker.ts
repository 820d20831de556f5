import { isOwnStore } from "../../process/open-store.ts";
import { storeAddress } from "../../settings/store-address.ts";
import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { serveUntilInterrupted, startProcess } from "../start-process.ts";

/** A worker beside the engines of a store that several processes share. */
export const verb: Verb = async (call) => {
  const read = await call.settings();
  const address = storeAddress(read.settings);
  if (!("fault" in address) && isOwnStore(address)) {
    throw new Failure(EXIT.usage, `a ${address.kind} store belongs to one process, which has its own worker.`, {
      hint: "name a store that is shared: --store postgres://… or redis://…   or write a worker for the HTTP API: /docs, Tasks",
    });
  }
  await serveUntilInterrupted(call, await startProcess(call, read, { roles: ["worker"], logTo: 1, loopback: false }));
  return EXIT.done;
};
