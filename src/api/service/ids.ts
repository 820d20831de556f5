import { entityKey } from "../../core/entity.ts";
import type { Host } from "../../host/host.ts";
import { timeId } from "../../host/time-id.ts";
import { contentHash } from "../../json/hash.ts";

/** What an execution may be called. Whatever else somebody asks for cannot be there. */
const EXECUTION_ID = /^[A-Za-z0-9_-]{1,128}$/;

export function isExecutionId(id: string): boolean {
  return EXECUTION_ID.test(id);
}

export function executionKey(id: string): string {
  return entityKey("execution", id);
}

/** Newer ones sort behind older ones. */
export function newExecutionId(host: Host): string {
  return timeId(host);
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
