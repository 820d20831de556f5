import { addKey, revokeKey, storedKeys } from "../../api/http/keys.ts";
import { isRole, ROLES } from "../../api/http/permissions.ts";
import { nodeHost } from "../../host/node-host.ts";
import { openStore } from "../../process/open-store.ts";
import { storeAddress } from "../../settings/store-address.ts";
import type { Store } from "../../store/contract.ts";
import { type Call, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { printJson, printTable } from "../print.ts";
import { startFailure } from "../start-process.ts";

/** Keys for those who come from elsewhere. The store keeps their hashes only. */
export const verb: Verb = async (call) => {
  const role = option(call, "role") ?? "";
  if (call.command === "keys add" && !isRole(role)) {
    throw new Failure(EXIT.usage, `--role must be one of ${ROLES.join(", ")}.`);
  }
  const store = await open(call);
  try {
    if (call.command === "keys ls") await list(call, store);
    else if (call.command === "keys revoke") await revoke(call, store);
    else if (isRole(role)) {
      const { id, key } = await addKey(store, role);
      if (call.json) printJson(call, { id, role, key });
      else {
        call.terminal.out(`${key}\n`);
        call.terminal.err(`${id}, ${role}; it is not shown again. From now on every request needs a key.\n`);
      }
    }
    return EXIT.done;
  } finally {
    await store.close();
  }
};

async function open(call: Call): Promise<Store> {
  const { settings } = await call.settings();
  const address = storeAddress(settings);
  if ("fault" in address) throw new Failure(EXIT.usage, address.fault);
  if (address.kind === "memory") {
    throw new Failure(EXIT.usage, "a store in memory keeps no keys.", {
      hint: "give them with MILLRACE_API_KEYS=role:key,…",
    });
  }
  try {
    return await openStore(address, { ...settings, host: nodeHost });
  } catch (error) {
    throw startFailure(error, settings.port, call.command);
  }
}

async function list(call: Call, store: Store): Promise<void> {
  const items = await storedKeys(store);
  if (call.json) return printJson(call, { items, next_cursor: null });
  if (items.length === 0) return call.terminal.err("no key was added to this store\n");
  const rows = items.map(({ id, roles, revoked }) => [id, roles.join(", "), revoked ? "revoked" : "good"]);
  printTable(call, ["KEY", "ROLE", "STATE"], rows);
}

async function revoke(call: Call, store: Store): Promise<void> {
  for (const id of call.args) {
    if (!(await revokeKey(store, id))) {
      throw new Failure(EXIT.notFound, `${JSON.stringify(id)} is no key of this store.`, { hint: "millrace keys ls" });
    }
    if (!call.json) call.terminal.out(`${id} revoked; servers notice within five seconds\n`);
  }
  if (call.json) printJson(call, { revoked: call.args });
}
