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
  /** Slots that handlers keep which were asked to stop, and the first of these. */
  readonly slots_kept?: number;
  readonly not_stopping?: readonly {
    readonly handler: string;
    readonly execution_id: string;
    readonly node_id: string;
  }[];
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const page = await server.list<ShownWorker>("/v1/workers", {}, Number.POSITIVE_INFINITY);
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("no worker is connected; start one: millrace worker\n");
  else {
    const rows = page.items.map((one) => [
      one.worker_id,
      one.slots === undefined ? "" : `${one.running ?? 0} of ${one.slots}${kept(one)}`,
      one.handlers.join(", "),
      one.queues.join(", "),
    ]);
    printTable(call, ["WORKER", "RUNNING", "HANDLERS", "QUEUES"], rows);
    for (const one of page.items) call.terminal.err(notStopping(one));
  }
  return EXIT.done;
};

function kept({ slots_kept: count = 0 }: ShownWorker): string {
  return count === 0 ? "" : `, ${count} ${count === 1 ? "does" : "do"} not stop`;
}

function notStopping({ worker_id: id, not_stopping: calls = [] }: ShownWorker): string {
  if (calls.length === 0) return "";
  const shown = calls.map(
    ({ handler, node_id: node, execution_id: execution }) => `${handler} (${node} of ${execution})`,
  );
  return `${id}: asked to stop, and still in their slots: ${shown.join(", ")}. restart it to free them\n`;
}
