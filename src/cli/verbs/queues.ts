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
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const page = await server.list<ShownQueue>("/v1/queues", {}, Number.POSITIVE_INFINITY);
  if (call.json) printJson(call, page);
  else if (page.items.length === 0) call.terminal.err("there is no queue: nothing waits, and no worker is connected\n");
  else {
    const rows = page.items.map(({ name, queued, oldest_seconds: oldest, leased, workers }) => [
      name,
      String(queued),
      oldest === null ? "" : `${Math.round(oldest)} s`,
      String(leased),
      workers === 0 && queued > 0 ? "0 (nobody serves it)" : String(workers),
    ]);
    printTable(call, ["QUEUE", "WAITING", "OLDEST", "RUNNING", "WORKERS"], rows);
  }
  return EXIT.done;
};
