import { join } from "node:path";
import type { Entry } from "./contender.ts";
import { CONCURRENCY, runsOnBullMq, startBullMq } from "./contenders/bullmq.ts";
import { POOL, startDbos, WIDTH } from "./contenders/dbos.ts";
import { CONCURRENT_JOBS, LOCAL_QUEUE, startGraphileWorker } from "./contenders/graphile-worker.ts";
import { startMillrace, type Variation } from "./contenders/millrace.ts";
import { BATCH, isShallow, startPgBoss } from "./contenders/pg-boss.ts";
import { preparePostgres } from "./contenders/postgres-server.ts";
import { type Fsync, prepareRedis } from "./contenders/redis-server.ts";
import { startRestate, WIDTH as RESTATE_WIDTH } from "./contenders/restate.ts";
import { startBarePostgres } from "./limits/bare-postgres.ts";
import { GROUP, startBareSqlite } from "./limits/bare-sqlite.ts";
import { startBareStreams } from "./limits/bare-streams.ts";

const SLOTS = 1_000;
const FSYNCED = "synced before it counts";
const EVERY_SECOND = "up to a second lost (appendfsync everysec)";

const anyShape = (): boolean => true;
const MILLRACE = {
  kind: "millrace",
  declared: true,
  runs: anyShape,
  chunkSteps: 1_000,
  windowSteps: 8_000,
  latency: "measured",
} as const;
const PEER = { kind: "peer", runs: anyShape, latency: "measured" } as const;
const LIMIT = {
  kind: "limit",
  declared: false,
  runs: anyShape,
  chunkSteps: 4_000,
  windowSteps: 16_000,
  latency: "none",
} as const;

function embedded(variation: Variation = {}): Entry {
  return {
    ...MILLRACE,
    name: "millrace-embedded",
    label: "Millrace embedded, SQLite",
    durability: `${FSYNCED} (synchronous=FULL)`,
    settings: `one process, concurrency ${SLOTS}`,
    limit: "bare-sqlite",
    start: (probe, { folder }) => {
      const store = `sqlite:${join(folder, "millrace.db")}`;
      return startMillrace(probe, { store, slots: SLOTS, workers: "inside", variation }, {});
    },
  };
}

function varied(base: string, text: string): Entry {
  const variation = Object.fromEntries(text.split(",").map((one) => [one.split("=")[0]!, Number(one.split("=")[1])]));
  const entry = base === "millrace-embedded" ? embedded(variation) : millraceOnRedis("everysec", "apart", variation);
  return { ...entry, name: `${base}@${text}`, label: `${entry.label}, ${text}` };
}

function millraceOnRedis(fsync: Fsync, workers: "inside" | "apart", variation: Variation = {}): Entry {
  const redisDurability = fsync === "always" ? "strict" : "fast";
  return {
    ...MILLRACE,
    name: `millrace-redis-${fsync}${workers === "inside" ? "-inside" : ""}`,
    label: `Millrace on Redis, ${fsync}${workers === "inside" ? ", worker inside" : ""}`,
    durability: fsync === "always" ? FSYNCED : EVERY_SECOND,
    settings: `worker ${workers === "apart" ? "in its own process" : "in the engine's process"}, concurrency ${SLOTS}`,
    limit: `bare-streams-${fsync}`,
    start: async (probe, { redis }) => {
      const pid = await prepareRedis(redis, fsync);
      return startMillrace(probe, { store: redis, slots: SLOTS, workers, redisDurability, variation }, { redis: pid });
    },
  };
}

function millraceOnPostgres(workers: "inside" | "apart"): Entry {
  return {
    ...MILLRACE,
    name: `millrace-postgres${workers === "inside" ? "-inside" : ""}`,
    label: `Millrace on Postgres${workers === "inside" ? ", worker inside" : ""}`,
    durability: `${FSYNCED} (synchronous_commit=on)`,
    settings: `worker ${workers === "apart" ? "in its own process" : "in the engine's process"}, concurrency ${SLOTS}`,
    limit: "bare-postgres",
    start: async (probe, { postgres }) => {
      const { url, pid } = await preparePostgres(postgres);
      return startMillrace(probe, { store: url, slots: SLOTS, workers }, { postgres: pid });
    },
  };
}

function bullMq(fsync: Fsync, workers: "inside" | "apart"): Entry {
  return {
    ...PEER,
    name: `bullmq-${fsync}${workers === "apart" ? "-apart" : ""}`,
    label: `BullMQ flows, ${fsync}${workers === "apart" ? ", worker apart" : ""}`,
    durability: fsync === "always" ? FSYNCED : EVERY_SECOND,
    settings:
      `worker concurrency ${CONCURRENCY}, ${workers === "apart" ? "in its own process" : "in the submitter's process"}, ` +
      "addBulk; a flow is a tree, so that the first node of a graph adds the rest",
    declared: true,
    runs: runsOnBullMq,
    chunkSteps: 800,
    windowSteps: 8_000,
    start: (probe, servers) => startBullMq(probe, servers, { fsync, workers }),
  };
}

function pgBoss(looped: boolean): Entry {
  return {
    ...PEER,
    name: looped ? "pg-boss-looped" : "pg-boss",
    runs: looped ? anyShape : isShallow,
    label: `pg-boss flows${looped ? ", resolver looped" : ""}`,
    durability: `${FSYNCED} (synchronous_commit=on)`,
    settings:
      `flow() of 2,000 jobs, batchSize ${BATCH}, localConcurrency 2, LISTEN/NOTIFY, polling 0.5 s, ` +
      (looped ? "resolveFlow() called in a loop" : "resolver every 1 s, its minimum"),
    declared: true,
    chunkSteps: 2_000,
    windowSteps: 40_000,
    latency: "seldom",
    start: (probe, servers) => startPgBoss(probe, servers, looped),
  };
}

function bareStreams(fsync: Fsync): Entry {
  return {
    ...LIMIT,
    name: `bare-streams-${fsync}`,
    label: `bare Redis Streams, ${fsync}`,
    durability: fsync === "always" ? FSYNCED : EVERY_SECOND,
    settings: "a task and a result of 200 bytes for each step, pipelines of 500, taker in its own process",
    start: (probe, servers) => startBareStreams(probe, servers, fsync),
  };
}

/** All that is measured, in the order in which they take turns. */
export const ENTRIES: readonly Entry[] = [
  embedded(),
  millraceOnRedis("everysec", "apart"),
  millraceOnRedis("everysec", "inside"),
  millraceOnRedis("always", "apart"),
  millraceOnPostgres("apart"),
  millraceOnPostgres("inside"),
  bullMq("everysec", "inside"),
  bullMq("everysec", "apart"),
  bullMq("always", "inside"),
  pgBoss(true),
  pgBoss(false),
  {
    ...PEER,
    name: "restate",
    label: "Restate",
    durability: `${FSYNCED} (RocksDB log)`,
    settings: `one node as it comes, each node a ctx.run, ${RESTATE_WIDTH} ingress requests in flight`,
    declared: false,
    chunkSteps: 500,
    windowSteps: 4_000,
    start: startRestate,
  },
  {
    ...PEER,
    name: "dbos",
    label: "DBOS Transact",
    durability: `${FSYNCED} (synchronous_commit=on)`,
    settings: `startWorkflow, each node a runStep, ${WIDTH} in flight, pool ${POOL}`,
    declared: false,
    chunkSteps: 400,
    windowSteps: 2_000,
    start: startDbos,
  },
  {
    ...PEER,
    name: "graphile-worker",
    label: "Graphile Worker, graph by hand",
    durability: `${FSYNCED} (synchronous_commit=on)`,
    settings: `concurrentJobs ${CONCURRENT_JOBS}, localQueue ${LOCAL_QUEUE}, batched completion`,
    declared: false,
    chunkSteps: 500,
    windowSteps: 2_000,
    start: startGraphileWorker,
  },
  {
    ...LIMIT,
    name: "bare-sqlite",
    label: "bare SQLite, the same rows",
    durability: `${FSYNCED} (synchronous=FULL)`,
    settings: `${GROUP} executions a transaction, node:sqlite`,
    start: (probe, { folder }) => startBareSqlite(probe, folder),
  },
  bareStreams("everysec"),
  bareStreams("always"),
  {
    ...LIMIT,
    name: "bare-postgres",
    label: "bare Postgres, the same rows",
    durability: `${FSYNCED} (synchronous_commit=on)`,
    settings: `${GROUP} executions a transaction, one statement a table, one connection`,
    start: startBarePostgres,
  },
];

/** By its name, or one of ours varied, as `millrace-embedded@waiting=1000`. */
export function entryNamed(name: string): Entry {
  const [base, variation] = name.split("@");
  if (variation !== undefined) return varied(base!, variation);
  const entry = ENTRIES.find((one) => one.name === name);
  if (entry === undefined) throw new Error(`there is no ${name}: ${ENTRIES.map(({ name }) => name).join(", ")}`);
  return entry;
}
