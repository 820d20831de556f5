import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import type { Heartbeats } from "../worker/heartbeat-thread.ts";
import { beat } from "./gateway-store.ts";
import { HttpClient } from "./http-client.ts";

/** What the thread that keeps the leases of a worker over HTTP calls: a connection of its own to the same server. */
export async function openHeartbeats(options: Json): Promise<Heartbeats> {
  const { url, token, worker } = options as { readonly url: string; readonly token?: string; readonly worker: string };
  const http = new HttpClient({ url, token, host: nodeHost, patienceMs: 0 });
  return { heartbeat: (beats, leaseMs) => beat(http, worker, beats, leaseMs) };
}
