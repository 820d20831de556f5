import { pino } from "pino";
import { isOwnStore } from "../process/open-store.ts";
import { MillraceProcess } from "../process/process.ts";
import { readSettings } from "../settings/read-settings.ts";
import { storeAddress } from "../settings/store-address.ts";
import { type Duration, durationMs } from "./duration.ts";
import type { ReadyHandlers } from "./handlers.ts";
import type { Served } from "./served.ts";

export interface StoreWorkerOptions {
  readonly store: string;
  readonly concurrency?: number | undefined;
  readonly queues?: readonly string[] | undefined;
  readonly grace?: Duration | undefined;
}

/** A worker beside the engines, on the store that they share. */
export async function startStoreWorker(
  options: StoreWorkerOptions,
  { handlers, queues }: Served,
  { entries }: ReadyHandlers,
): Promise<Pick<MillraceProcess, "stop" | "lost">> {
  const { env } = process;
  const { store, concurrency, grace } = options;
  const flags = {
    store,
    ...(concurrency !== undefined && { workerConcurrency: concurrency }),
    ...(options.queues !== undefined && { queues: [...options.queues] }),
    ...(grace !== undefined && { workerGrace: durationMs(grace, "grace") / 1_000 }),
  };
  const { settings, faults } = readSettings({ env, flags });
  const address = storeAddress(settings);
  if ("fault" in address) throw new TypeError(address.fault);
  if (faults.length > 0) throw new TypeError(faults.join("\n"));
  if (isOwnStore(address)) {
    const hint = "use embedded(), or name a server: worker({ url })";
    throw new TypeError(`A ${address.kind} store belongs to one process; ${hint}`);
  }
  return MillraceProcess.start({
    settings,
    address,
    env,
    roles: ["worker"],
    user: { handlers, entries, queues },
    log: pino({ level: "silent" }),
    version: "sdk",
    loopback: false,
  });
}
