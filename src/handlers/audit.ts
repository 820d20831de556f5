import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { AuditLog } from "./audit-log.ts";
import type { RootedFolder } from "./rooted-folder.ts";

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface AuditConfig {
  readonly event: string;
  readonly data?: Json;
  readonly file?: string;
}

export interface Audit {
  readonly handler: Handler;
  close(): void;
}

/** `audit`: one line at the end of a log that only grows, however often the node is tried. */
export function auditHandler(folder: RootedFolder, host: Host): Audit {
  const logs = new Map<string, AuditLog>();
  const handler: Handler = async (call) => {
    const { event, data = null, file = "audit.jsonl" } = call.config as unknown as AuditConfig;
    const place = await folder.place(file);
    let log = logs.get(place);
    if (log === undefined) logs.set(place, (log = new AuditLog(place, host)));
    const { executionId: execution_id, nodeId: node_id } = call;
    const entry = { at: new Date(host.wallMs()).toISOString(), execution_id, node_id, event, data };
    return { file, ...(await log.append(call.idempotencyKey, entry, call.signal)) };
  };
  return {
    handler,
    close: () => {
      for (const log of logs.values()) log.close();
      logs.clear();
    },
  };
}
