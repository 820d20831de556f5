import { ErrorReply, type RedisClientType } from "@redis/client";
import type { Host } from "../../host/host.ts";
import type { BlockingClients } from "./blocking-clients.ts";
import { runScript, type Script } from "./scripts.ts";

/** What the roles of one store share. */
export interface Redis {
  readonly client: RedisClientType;
  /** For commands that wait: on the shared connection they would stop everybody. */
  readonly blocking: BlockingClients;
  readonly host: Host;
  readonly prefix: string;
  readonly partitionCount: number;
  readonly maxInbox: number;
}

/** As `key` in library.lua makes them. */
export function keyOf({ prefix }: Redis, kind: string, name?: string | number): string {
  return name === undefined ? `${prefix}:${kind}` : `${prefix}:${kind}:${name}`;
}

export function run<Answer>(redis: Redis, script: Script, ...values: readonly (string | number)[]): Promise<Answer> {
  return runScript<Answer>(redis.client, script, [redis.prefix, ...values]);
}

/** The answer to a script that may not go beyond `maxmemory`. It was not begun. */
export function isFull(error: unknown): boolean {
  return error instanceof ErrorReply && error.message.startsWith("OOM");
}

export function checkPartition({ partitionCount }: Redis, partition: number): void {
  if (partition < 0 || partition >= partitionCount) throw new Error(`there is no partition ${partition}`);
}
