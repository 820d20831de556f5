import { entityKey } from "../../core/entity.ts";
import type { Host } from "../../host/host.ts";
import { contentHash } from "../../json/hash.ts";

/** What an execution may be called. Whatever else somebody asks for cannot be there. */
const EXECUTION_ID = /^[A-Za-z0-9_-]{1,128}$/;

export function isExecutionId(id: string): boolean {
  return EXECUTION_ID.test(id);
}

export function executionKey(id: string): string {
  return entityKey("execution", id);
}

/** A UUIDv7: newer ones sort behind older ones. */
export function newExecutionId(host: Host): string {
  const time = Math.max(0, Math.floor(host.wallMs())).toString(16).padStart(12, "0").slice(-12);
  const random = host.id() + host.id();
  const variant = (8 + (Number.parseInt(random[3]!, 16) & 3)).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(7, 19)}`;
}

/**
 * The name of what a request with an Idempotency-Key is about: the same for the same tenant, route and key, so that one
 * owner meets both the request and its repetition. In the form of a UUIDv8.
 */
export function keyedId(...parts: readonly string[]): string {
  const hash = contentHash(JSON.stringify(parts));
  const variant = (8 + (Number.parseInt(hash[16]!, 16) & 3)).toString(16);
  return `${hash.slice(0, 8)}-${hash.slice(8, 12)}-8${hash.slice(13, 16)}-${variant}${hash.slice(17, 20)}-${hash.slice(20, 32)}`;
}
