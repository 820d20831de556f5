import { counted } from "../../errors/counted.ts";
import { MACHINES } from "../../core/machines.ts";
import { recover, type Recovery, RecoveryRefused } from "../../engine/recovery.ts";
import { nodeHost } from "../../host/node-host.ts";
import { openArchive } from "../../process/archive.ts";
import { openStore } from "../../process/open-store.ts";
import { checkStoreSafety } from "../../process/store-safety.ts";
import { archiveAddress, storeAddress } from "../../settings/store-address.ts";
import type { Archive } from "../../store/archive.ts";
import type { Store } from "../../store/contract.ts";
import { type Call, hasSwitch, option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { printJson } from "../print.ts";
import { startFailure } from "../start-process.ts";

/** Rebuilds a store that was lost from its archive, and says what is back and what nobody can know. */
export const verb: Verb = async (call) => {
  const read = await call.settings();
  const archive = option(call, "from") ?? read.settings.archive;
  if (archive === undefined) throw new Failure(EXIT.usage, "--from says which archive: postgres://…");
  const settings = { ...read.settings, archive };
  const from = archiveAddress(settings);
  const address = storeAddress(settings);
  if (typeof from !== "string") throw new Failure(EXIT.usage, from?.fault ?? "");
  if ("fault" in address) throw new Failure(EXIT.usage, address.fault);
  if (address.kind !== "redis" && address.kind !== "postgres") {
    throw new Failure(EXIT.usage, "--store says which store to rebuild: redis://… or postgres://…");
  }
  let opened: Archive | undefined;
  let store: Store | undefined;
  try {
    await checkStoreSafety(address, settings);
    opened = await openArchive(settings, nodeHost);
    store = await openStore(address, { ...settings, host: nodeHost });
    const force = hasSwitch(call, "force");
    const parts = { archive: opened!, store, host: nodeHost, machines: MACHINES, force };
    tell(call, await recover(parts));
    return EXIT.done;
  } catch (error) {
    if (error instanceof RecoveryRefused) throw new Failure(EXIT.notAllowed, error.message, { hint: error.hint });
    throw startFailure(error, settings.port);
  } finally {
    await store?.close();
    await opened?.close();
  }
};

function tell(call: Call, recovery: Recovery): void {
  if (call.json) return printJson(call, shown(recovery));
  const { executions, tasks, calls, unread, present, names, definitions, heard } = recovery;
  const out = (text: string): void => call.terminal.out(text);
  const open = counted(executions, "execution that was open goes on", "executions that were open go on");
  out(`recovered   ${open}; ${counted(tasks, "task is", "tasks are")} out again\n`);
  if (calls > 0)
    out(
      `            ${counted(calls, "call of a child execution, or ask of a limit, is", "calls of child executions, and asks of limits, are")} made again\n`,
    );
  out(`            ${counted(names, "workflow name")}, ${counted(definitions, "definition")}\n`);
  if (present > 0) out(`left alone  ${counted(present, "execution that was", "executions that were")} in the store\n`);
  for (const entity of unread) out(`unreadable  ${entity}: it is back, and waits for a release that can read it\n`);
  const times = heard.map(({ atMs }) => atMs);
  const behind = heard.reduce((sum, one) => sum + one.behind, 0);
  if (times.length > 0) {
    const [first, last] = [Math.min(...times), Math.max(...times)].map((atMs) => new Date(atMs).toISOString());
    out(`lost        what happened after the archive last heard of it: ${first} to ${last}, by partition\n`);
    out(
      `            ${counted(behind, "execution is", "executions are")} known to have had news then that were not shipped\n`,
    );
  }
  out(
    "            nobody can know: executions that were accepted after that; results, signals, decisions and cancels\n",
  );
  out("            after that\n");
  // Without a key of its own a server on this machine asks nobody for one.
  out("keys        none that was added to the store is back: add them before you serve (millrace keys add --role …)\n");
}

function shown({ heard, unread, ...counts }: Recovery): object {
  const partitions = heard.map(({ partition, atMs, behind }) => {
    return { partition, heard_at: new Date(atMs).toISOString(), behind };
  });
  return { ...counts, unreadable: unread, partitions };
}
