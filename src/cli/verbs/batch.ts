import type { ShownBatch } from "../../api/service/batches.ts";
import type { BatchItem } from "../batch/batch-source.ts";
import { progressText } from "../batch/batch-progress.ts";
import { option, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { countOption } from "../given-values.ts";
import { printJson, printTable } from "../print.ts";
import { connect, segment } from "../server.ts";

/** show, cancel and retry of one batch of the server. */
export const verb: Verb = async (call) => {
  const server = await connect(call);
  const id = call.args[0]!;
  const path = `/v1/batches/${segment(id)}`;
  if (call.command !== "batch show") {
    const command = call.command === "batch cancel" ? "cancel" : "retry";
    const answer = await server.post<{ readonly status: string }>(`${path}/${command}`);
    if (call.json) printJson(call, answer);
    else call.terminal.out(`${id} ${answer.status.toLowerCase()}\n`);
    return EXIT.done;
  }
  const batch = await server.get<ShownBatch>(path);
  const status = option(call, "status")?.toUpperCase();
  const limit = countOption(call, "limit", 50, 100_000);
  const { items } = await server.list<BatchItem>(`${path}/items`, { status }, limit);
  if (call.json) printJson(call, { ...batch, items });
  else {
    const endedMs = batch.finished_at === null ? Date.now() : Date.parse(batch.finished_at);
    const done = batch.completed + batch.failed + batch.cancelled;
    const text = progressText(batch.total, batch, done, endedMs - Date.parse(batch.created_at!));
    call.terminal.out(`${batch.workflow} ${batch.status.toLowerCase()} ${text}\n`);
    const rows = items.map((item) => [
      String(item.index),
      item.status.toLowerCase(),
      item.execution_id ?? "",
      item.error === null ? "" : (item.error as { readonly message: string }).message,
    ]);
    printTable(call, ["ITEM", "STATUS", "EXECUTION", "ERROR"], rows);
  }
  return EXIT.done;
};
