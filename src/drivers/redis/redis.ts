import type { Host } from "../../host/host.ts";
import { StoreError } from "../../store/store-error.ts";
import type { Connection, Line } from "./connection.ts";
import type { Seats } from "./seats.ts";
import type { Waiting } from "./waiting.ts";
import { callOf, runScript, type Script } from "./scripts.ts";
import { ErrorReply } from "./wire/reply-reader.ts";

/** What the roles of one store share. */
export interface Redis {
  readonly connection: Connection;
  /** For commands that wait: on the shared connection they would stop everybody. */
  readonly waiting: Waiting;
  readonly seats: Seats;
  readonly host: Host;
  readonly prefix: string;
  readonly incarnation: string;
  readonly partitionCount: number;
  readonly maxInbox: number;
  /** What time the store has, as far as it has told. */
  readonly clock: StoreClock;
  /** Says that the store is not there any more, and never comes back. */
  readonly lose: (told?: string) => StoreError;
}

/** The wall clock of the server, as it was told last and has gone on since. */
export class StoreClock {
  readonly #host: Host;
  #aheadMs: number | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  told(storeTimeMs: number): void {
    this.#aheadMs = storeTimeMs - this.#host.monotonicMs();
  }

  /** 0 if nobody knows. */
  nowMs(): number {
    return this.#aheadMs === undefined ? 0 : this.#aheadMs + this.#host.monotonicMs();
  }
}

/** As `key` in library.lua makes them. */
export function keyOf({ prefix }: Pick<Redis, "prefix">, kind: string, name?: string | number): string {
  return name === undefined ? `${prefix}:${kind}` : `${prefix}:${kind}:${name}`;
}

export async function send<Answer>({ connection }: Redis, ...command: readonly string[]): Promise<Answer> {
  const line = await connection.line();
  return line.send<Answer>(command);
}

/** A command that reads. Where nothing is found the store itself may be gone: then that is told, and no absence. */
export async function look<Answer>(redis: Redis, ...command: readonly string[]): Promise<Answer> {
  const answer = await send<Answer>(redis, ...command);
  const isNothing = answer === null || (Array.isArray(answer) && answer.length === 0);
  if (isNothing) {
    const incarnation = await send<string | null>(redis, "HGET", keyOf(redis, "store"), "id");
    if (incarnation !== redis.incarnation) throw redis.lose();
  }
  return answer;
}

export async function run<Answer>(
  redis: Redis,
  script: Script,
  ...values: readonly (string | number)[]
): Promise<Answer> {
  const call = scriptCall(redis, script);
  for (const value of values) call.push(String(value));
  return runCall(redis, script, call);
}

/** What every call begins with; its values come behind. */
export function scriptCall({ prefix, incarnation }: Redis, script: Script): string[] {
  return callOf(script, prefix, incarnation);
}

export async function runCall<Answer>(redis: Redis, script: Script, call: readonly string[]): Promise<Answer> {
  return runCallOn(await redis.connection.line(), redis, script, call);
}

export async function runCallOn<Answer>(
  line: Line,
  redis: Redis,
  script: Script,
  call: readonly string[],
): Promise<Answer> {
  try {
    return await runScript<Answer>(line, script, call);
  } catch (error) {
    throw error instanceof ErrorReply && error.message.startsWith("STORELOST") ? redis.lose() : error;
  }
}

/** The answer to a script that may not go beyond `maxmemory`. It was not begun. */
export function isFull(error: unknown): boolean {
  return error instanceof ErrorReply && error.message.startsWith("OOM");
}

/** Errors that Redis answers before it looks at a script: nothing was written. */
const REFUSALS = ["OOM", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS"];

export function whyRefused(error: unknown): string | undefined {
  const isRefusal = error instanceof ErrorReply && REFUSALS.some((code) => error.message.startsWith(code));
  return isRefusal ? error.message : undefined;
}

export function checkPartition({ partitionCount }: Redis, partition: number): void {
  if (partition < 0 || partition >= partitionCount) throw new Error(`there is no partition ${partition}`);
}
