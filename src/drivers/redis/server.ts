import type { Host } from "../../host/host.ts";
import { StoreError } from "../../store/store-error.ts";
import type { Line } from "./connection.ts";
import { callOf, runScript, scripts } from "./scripts.ts";
import { ErrorReply } from "./wire/reply-reader.ts";

/** What `INFO` says. */
export type ServerFacts = ReadonlyMap<string, string>;

/** Scripts say what they may do in their first line since then. Every Valkey is newer. */
const OLDEST_MAJOR = 7;
/** Of the server, whatever the prefix: the run of it whose AOF is known to be whole. */
const RUN_KEY = "millrace:run";
const LOOK_EVERY_MS = 20;

export async function readFacts(line: Line): Promise<ServerFacts> {
  const text = await line.send<string>(["INFO"]);
  const facts = text.split("\r\n").map((fact) => fact.split(":") as [string, ...string[]]);
  return new Map(facts.map(([name, ...value]) => [name, value.join(":")]));
}

/** Refuses a server that cannot keep what the store promises, by a name. */
export function checkServer(facts: ServerFacts): void {
  if (facts.get("cluster_enabled") === "1" || facts.get("redis_mode") === "cluster")
    throw invalid("REDIS_CLUSTER", "a commit writes many keys at once, which a Redis Cluster cannot: use one primary");
  if (facts.get("redis_mode") === "sentinel")
    throw invalid("REDIS_SENTINEL", "this is a Sentinel, which keeps no data: use the address of the primary");
  if (facts.get("role") !== "master")
    throw invalid("REDIS_REPLICA", "this is a replica, which may be behind: use the address of the primary");
  const version = facts.get("redis_version") ?? "0";
  if (Number.parseInt(version, 10) < OLDEST_MAJOR)
    throw invalid("REDIS_TOO_OLD", `Redis ${version} is too old: Redis ${OLDEST_MAJOR}, or a Valkey, is needed`);
}

/**
 * A server that was killed in the middle of a write can leave half a transaction at the end of its AOF. It loads as if it
 * were not there, but what is written next becomes part of it: after another start, what was never acknowledged is back, or
 * what was is gone. So an AOF is written anew before the first write after any start of the server.
 */
export async function makeAofWhole(line: Line, host: Host, facts: ServerFacts): Promise<void> {
  const run = facts.get("run_id") ?? "";
  if (facts.get("aof_enabled") !== "1" || (await line.send<string | null>(["GET", RUN_KEY])) === run) return;
  try {
    await line.send(["BGREWRITEAOF"]);
  } catch (error) {
    // Somebody else has come first, which is as good.
    if (!(error instanceof ErrorReply && error.message.includes("in progress"))) throw refusedRewrite(error);
  }
  for (;;) {
    const now = await readFacts(line);
    if (now.get("aof_rewrite_in_progress") === "0" && now.get("aof_rewrite_scheduled") === "0") {
      if (now.get("aof_last_bgrewrite_status") === "ok") break;
      throw new StoreError("STORE_UNAVAILABLE", "Redis could not write its AOF anew; its own log says why");
    }
    await host.sleep(LOOK_EVERY_MS);
  }
  await runScript(line, scripts.noteRun, callOf(scripts.noteRun, RUN_KEY, run));
}

function refusedRewrite(error: unknown): unknown {
  if (!(error instanceof ErrorReply)) return error;
  const told = `Redis does not let us write its AOF anew after a start (BGREWRITEAOF): ${error.message}`;
  return new StoreError("STORE_FORBIDDEN", told, { cause: error });
}

function invalid(name: string, told: string): StoreError {
  return new StoreError("STORE_INVALID", `${name}: ${told}`);
}
