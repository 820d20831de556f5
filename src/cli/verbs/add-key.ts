import { addKey } from "../../api/http/keys.ts";
import { isRole, ROLES } from "../../api/http/permissions.ts";
import { nodeHost } from "../../host/node-host.ts";
import { openStore } from "../../process/open-store.ts";
import { storeAddress } from "../../settings/store-address.ts";
import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { printJson } from "../print.ts";
import { startFailure } from "../start-process.ts";

/** A key for those who come from elsewhere. The store keeps its hash only. */
export const verb: Verb = async (call) => {
  const role = option(call, "role") ?? "";
  if (!isRole(role)) throw new Failure(EXIT.usage, `--role must be one of ${ROLES.join(", ")}.`);
  const { settings } = await call.settings();
  const address = storeAddress(settings);
  if ("fault" in address) throw new Failure(EXIT.usage, address.fault);
  if (address.kind === "memory") {
    throw new Failure(EXIT.usage, "a store in memory keeps no keys.", {
      hint: "give them with MILLRACE_API_KEYS=role:key,…",
    });
  }
  let store;
  try {
    store = await openStore(address, { ...settings, host: nodeHost });
  } catch (error) {
    throw startFailure(error, settings.port);
  }
  try {
    const { id, key } = await addKey(store, role);
    if (call.json) printJson(call, { id, role, key });
    else {
      call.terminal.out(`${key}\n`);
      call.terminal.err(`${id}, ${role}; it is not shown again. From now on every request needs a key.\n`);
    }
    return EXIT.done;
  } finally {
    await store.close();
  }
};
