import { addKey, revokeKey, storedKeys } from "../../api/http/keys.ts";
import { isRole, ROLES } from "../../api/http/permissions.ts";
import { nodeHost } from "../../host/node-host.ts";
import { checkNothingArchived, openArchive } from "../../process/archive.ts";
import { openStore } from "../../process/open-store.ts";
import type { Settings } from "../../settings/declarations.ts";
import { shownAddress, storeAddress, type StoreAddress } from "../../settings/store-address.ts";
import type { Store } from "../../store/contract.ts";
import { StoreError } from "../../store/store-error.ts";
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
    return await openExisting(address, settings).catch((error: unknown) => {
      const isToBegin = call.command === "keys add" && error instanceof StoreError && error.code === "STORE_MISSING";
      if (!isToBegin) throw error;
      return make(call, address, settings);
    });
  } catch (error) {
    throw startFailure(error, settings.port, call.command);
  }
}

function openExisting(address: StoreAddress, settings: Settings): Promise<Store> {
  return openStore(address, { ...settings, host: nodeHost, existing: true });
}

/**
 * A server that is to be reached from elsewhere does not start without a key, so the first key may come before it. But
 * where an archive knows a store, that one was lost, and none is made in its place.
 */
async function make(call: Call, address: StoreAddress, settings: Settings): Promise<Store> {
  const archive = await openArchive(settings, nodeHost);
  try {
    if (archive !== undefined) await checkNothingArchived(archive, nodeHost);
  } finally {
    await archive?.close();
  }
  const store = await openStore(address, { ...settings, host: nodeHost });
  call.terminal.err(`there was no store at ${shownAddress(address)}; one was made\n`);
  return store;
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
