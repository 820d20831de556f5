import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { printJson, printTable } from "../print.ts";
import { connect } from "../server.ts";

interface ShownQueue {
  readonly name: string;
  readonly queued: number;
  readonly oldest_seconds: number | null;
  readonly leased: number;
  readonly workers: number;
  /** An older server does not say. */
  readonly stuck_workers?: number;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const page = await server.list<ShownQueue>("/v1/queues", {}, Number.POSITIVE_INFINITY);
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("there is no queue: nothing waits, and no worker is connected\n");
  else {
    const rows = page.items.map((one) => [
      one.name,
      String(one.queued),
      one.oldest_seconds === null ? "" : `${Math.round(one.oldest_seconds)} s`,
      String(one.leased),
      workersOf(one),
    ]);
    printTable(call, ["QUEUE", "WAITING", "OLDEST", "RUNNING", "WORKERS"], rows);
  }
  return EXIT.done;
};

function workersOf({ queued, workers, stuck_workers: stuck = 0 }: ShownQueue): string {
  if (workers === 0 && queued > 0) return "0 (nobody serves it)";
  return stuck === 0 ? String(workers) : `${workers} (${stuck} full with handlers that do not stop)`;
}
