import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { printJson, printTable } from "../print.ts";
import { connect } from "../server.ts";

interface ShownWorker {
  readonly worker_id: string;
  readonly handlers: readonly string[];
  readonly queues: readonly string[];
  /** Told by workers on a store; those elsewhere do not say. */
  readonly slots?: number;
  readonly running?: number;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const page = await server.list<ShownWorker>("/v1/workers", {}, Number.POSITIVE_INFINITY);
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("no worker is connected; start one: millrace worker\n");
  else {
    const rows = page.items.map((one) => [
      one.worker_id,
      one.slots === undefined ? "" : `${one.running ?? 0} of ${one.slots}`,
      one.handlers.join(", "),
      one.queues.join(", "),
    ]);
    printTable(call, ["WORKER", "RUNNING", "HANDLERS", "QUEUES"], rows);
  }
  return EXIT.done;
};
