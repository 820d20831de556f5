import { setTimeout as sleep } from "node:timers/promises";
import type { Contender, Servers } from "../contender.ts";
import { peerModule } from "../peer-module.ts";
import type { Probe } from "../probe.ts";
import type { Output, Shape } from "../shapes.ts";
import { preparePostgres } from "./postgres-server.ts";

export const BATCH = 500;
const QUEUE = "q";
/** Between two calls of the resolver, where it is called in a loop. */
const LOOP_MS = 5;
/** By its own clock the resolver lets one level of a graph go in a second: deeper ones are not over before a turn is given up. */
const MOST_LEVELS = 20;

interface Job {
  readonly id: string;
  readonly data: { readonly node: string; readonly parents: number };
}

interface FlowJob {
  readonly ref: string;
  readonly name: string;
  readonly data: Job["data"];
  readonly dependsOn?: readonly string[];
}

interface Result {
  readonly id: string;
  readonly status: "completed";
  readonly output: Output;
}

interface Boss {
  on(event: "error" | "warning", heard: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { readonly graceful: boolean }): Promise<void>;
  createQueue(name: string, options: object): Promise<void>;
  work(name: string, options: object, run: (jobs: readonly Job[]) => Promise<readonly Result[]>): Promise<unknown>;
  flow(jobs: readonly FlowJob[]): Promise<unknown>;
  resolveFlow(): Promise<unknown>;
  getDb(): { executeSql(sql: string, values: readonly unknown[]): Promise<{ readonly rows: readonly InputRow[] }> };
}

interface InputRow {
  readonly child: string;
  readonly output: Output;
}

const SQL_INPUTS = `
  select d.child_id as child, j.output from pgboss.job_dependency d
  join pgboss.job j on j.name = d.parent_name and j.id = d.parent_id
  where d.child_id = any($1)`;

/** Whether it can be run with the resolver's own clock. */
export function isShallow({ nodes }: Shape): boolean {
  const levels = new Map<string, number>();
  for (const { id, after } of nodes) levels.set(id, 1 + Math.max(0, ...after.map((parent) => levels.get(parent)!)));
  return Math.max(...levels.values()) <= MOST_LEVELS;
}

/** A flow of jobs that depend on each other; the outputs of parents are read with one statement a batch. */
export async function startPgBoss(probe: Probe, servers: Servers, looped: boolean): Promise<Contender> {
  const { PgBoss } = await peerModule<{ readonly PgBoss: new (options: object) => Boss }>("pg-boss");
  const { url, pid } = await preparePostgres(servers.postgres);
  const boss = new PgBoss({
    connectionString: url,
    max: 20,
    useListenNotify: true,
    flowIntervalSeconds: 1,
    schedule: false,
  });
  boss.on("error", (error) => console.error(error.message));
  boss.on("warning", () => {});
  await boss.start();
  await boss.createQueue(QUEUE, { notify: true });
  const db = boss.getDb();
  const options = {
    batchSize: BATCH,
    localConcurrency: 2,
    pollingIntervalSeconds: 0.5,
    notifyPollingIntervalSeconds: 0.5,
    burstWhenBatchFull: true,
    perJobResults: true,
  };
  await boss.work(QUEUE, options, async (jobs) => {
    const inputs = new Map<string, Output[]>(jobs.map(({ id }) => [id, []]));
    const children = jobs.filter(({ data }) => data.parents > 0).map(({ id }) => id);
    if (children.length > 0) {
      for (const { child, output } of (await db.executeSql(SQL_INPUTS, [children])).rows)
        inputs.get(child)!.push(output);
    }
    const run = async ({ id, data }: Job): Promise<Result> => ({
      id,
      status: "completed",
      output: await probe.step(data.node, inputs.get(id)!),
    });
    return Promise.all(jobs.map(run));
  });
  let isOpen = true;
  const resolve = async (): Promise<void> => {
    while (isOpen) {
      await boss.resolveFlow();
      await sleep(LOOP_MS);
    }
  };
  const resolving = looped ? resolve() : undefined;
  const submit = async (count: number): Promise<void> => {
    const jobs: FlowJob[] = [];
    for (let i = 0; i < count; i++) {
      for (const { id, after } of probe.shape.nodes) {
        const data = { node: id, parents: after.length };
        const dependsOn = after.map((parent) => `${i}.${parent}`);
        jobs.push({ ref: `${i}.${id}`, name: QUEUE, data, ...(after.length > 0 && { dependsOn }) });
      }
    }
    await boss.flow(jobs);
  };
  return {
    servers: { postgres: pid },
    submit,
    runOne: async () => {
      const before = probe.executions;
      await submit(1);
      await probe.until(before + 1);
    },
    settled: async () => {},
    close: async () => {
      isOpen = false;
      await resolving;
      await boss.stop({ graceful: false });
    },
  };
}
