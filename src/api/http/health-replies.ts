import { MillraceError } from "../../errors/millrace-error.ts";
import type { Readiness } from "../service/readiness.ts";
import { json, type Reply } from "./route.ts";

/** What a process tells of itself, on the API's port and on one of its own alike. */
export function liveReply(): Reply {
  return json(200, { status: "ok" });
}

/** Which part is not ready stands in the problem. */
export async function readyReply(isDraining: boolean, readiness: () => Promise<Readiness>): Promise<Reply> {
  if (isDraining) throw new MillraceError("NOT_READY", { reason: "The process is about to stop" });
  const { ready, parts } = await readiness();
  if (ready) return json(200, { status: "ok", parts });
  if ((parts["store"] ?? "ok") !== "ok") throw new MillraceError("STORE_UNAVAILABLE", {});
  const bad = Object.entries(parts).filter(([, state]) => state !== "ok");
  throw new MillraceError("NOT_READY", { reason: bad.map(([name, state]) => `${name}: ${state}`).join("; ") });
}

export function metricsReply(text: string): Reply {
  return { status: 200, text, type: "text/plain; version=0.0.4; charset=utf-8" };
}
