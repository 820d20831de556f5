import { createHash, createHmac } from "node:crypto";
import type { Host } from "../host/host.ts";
import type { Json } from "../json/json.ts";
import type { Handler, HandlerCall } from "../worker/handler.ts";
import { describe, type HttpClient } from "./http-client.ts";
import { httpFailure, MAX_REFUSAL_BYTES } from "./http-failure.ts";
import { writtenHeaders } from "./http-headers.ts";

/** As `BUILTIN_HANDLERS` declares and the second check has found it. */
interface NotifyConfig {
  readonly url: string;
  readonly event?: string;
  readonly data?: Json;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string | number | boolean>>;
}

/**
 * `notify`: tells somebody by a webhook, as standardwebhooks.com describes it. The id is the same for every try, so that
 * the receiver can leave out what came before. With a secret the message is signed: HMAC-SHA256 of id, time and body.
 */
export function notifyHandler(client: HttpClient, host: Host): Handler {
  return async (call) => {
    const config = call.config as unknown as NotifyConfig;
    const { url, event = "notification", data = null, secret } = config;
    const id = messageId(call);
    const seconds = Math.floor(host.wallMs() / 1_000);
    const about = { execution_id: call.executionId, node_id: call.nodeId };
    const body = JSON.stringify({ type: event, timestamp: new Date(seconds * 1_000).toISOString(), ...about, data });
    const answer = await client.send({
      url,
      method: "POST",
      headers: {
        ...writtenHeaders(config.headers),
        "user-agent": "millrace",
        "content-type": "application/json",
        "idempotency-key": call.idempotencyKey,
        "webhook-id": id,
        "webhook-timestamp": String(seconds),
        ...(secret !== undefined && { "webhook-signature": `v1,${signature(secret, id, seconds, body)}` }),
      },
      body,
      signal: call.signal,
      maxBytes: () => MAX_REFUSAL_BYTES,
    });
    const { status } = answer;
    if (status >= 200 && status <= 299) return { id, status };
    const what = describe({ method: "POST", url: new URL(url) });
    throw httpFailure(`${what} was answered with ${status}`, answer, host);
  };
}

/** What a receiver sees: it says nothing of how we count our work. */
export function messageId({ idempotencyKey }: Pick<HandlerCall, "idempotencyKey">): string {
  return `msg_${createHash("sha256").update(idempotencyKey).digest("hex").slice(0, 32)}`;
}

/** A secret that begins with `whsec_` is base64, as that standard has it; any other is taken as it is. */
export function signature(secret: string, id: string, seconds: number, body: string): string {
  const key = secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret);
  return createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64");
}
