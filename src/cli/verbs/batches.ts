import type { ListedBatch } from "../../api/service/batches.ts";
import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { countOption } from "../given-values.ts";
import { printJson, printTable, tellGap } from "../print.ts";
import { connect } from "../server.ts";

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const page = await server.list<ListedBatch>("/v1/batches", {}, countOption(call, "limit", 50, 100_000));
  if (call.json) printJson(call, page);
  else {
    const rows = page.items.map((one) => [
      one.batch_id,
      one.status.toLowerCase(),
      one.created_at,
      one.finished_at ?? "",
    ]);
    printTable(call, ["BATCH", "STATUS", "CREATED", "FINISHED"], rows);
  }
  tellGap(call, page);
  return EXIT.done;
};
