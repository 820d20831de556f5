import { Pool } from "pg";
import type { Contender, Servers } from "../contender.ts";
import { peerModule } from "../peer-module.ts";
import type { Probe } from "../probe.ts";
import type { Output } from "../shapes.ts";
import { preparePostgres } from "./postgres-server.ts";

export const CONCURRENT_JOBS = 50;
export const LOCAL_QUEUE = 500;

interface Payload {
  readonly run: number;
  readonly step: number;
}

/** The part of Graphile Worker that is called here. */
interface GraphileWorker {
  makeWorkerUtils(options: { readonly pgPool: Pool }): Promise<{ migrate(): Promise<void> }>;
  run(options: object): Promise<{ stop(): Promise<void> }>;
  readonly Logger: new (make: () => (level: string, message: string) => void) => unknown;
}

/**
 * It knows no dependencies, so that the graph is kept as a user would: a table of steps, one of edges, and a function that
 * stores an output, counts down the children and adds those that are ready, in one statement.
 */
const SQL = {
  create: `
    create table dag_edge (parent int, child int, primary key (parent, child));
    create index on dag_edge (child, parent);
    create table dag_step (run bigint, step int, remaining int not null, output jsonb, primary key (run, step));
    create function dag_submit(lo bigint, hi bigint, steps int) returns void language plpgsql as $$
    begin
      insert into dag_step (run, step, remaining)
        select r, s.step, s.n from generate_series(lo, hi) r,
          (select step, (select count(*) from dag_edge where child = step) n from generate_series(0, steps - 1) step) s;
      perform graphile_worker.add_jobs(array(
        select row('step', json_build_object('run', r, 'step', s), null, null, null, null, null, null)::graphile_worker.job_spec
        from generate_series(lo, hi) r, generate_series(0, steps - 1) s
        where not exists (select 1 from dag_edge where child = s)));
    end $$;
    create function dag_complete(run0 bigint, step0 int, out0 jsonb) returns void language plpgsql as $$
    declare ready int[];
    begin
      update dag_step set output = out0 where run = run0 and step = step0;
      with counted as (
        update dag_step s set remaining = s.remaining - 1 from dag_edge e
        where e.parent = step0 and s.run = run0 and s.step = e.child returning s.step, s.remaining)
      select array_agg(step) into ready from counted where remaining = 0;
      if array_length(ready, 1) > 0 then perform graphile_worker.add_jobs(array(
        select row('step', json_build_object('run', run0, 'step', x), null, null, null, null, null, null)::graphile_worker.job_spec
        from unnest(ready) x));
      end if;
    end $$;`,
  addEdges: `insert into dag_edge select * from unnest($1::int[], $2::int[])`,
  inputs: `
    select s.output from dag_edge e join dag_step s on s.run = $1 and s.step = e.parent where e.child = $2`,
  complete: `select dag_complete($1, $2, $3)`,
  submit: `select dag_submit($1, $2, $3)`,
};

export async function startGraphileWorker(probe: Probe, servers: Servers): Promise<Contender> {
  const graphile = await peerModule<GraphileWorker>("graphile-worker");
  const { url, pid } = await preparePostgres(servers.postgres);
  const pool = new Pool({ connectionString: url, max: 20 });
  const tell = (error: Error): void => console.error(error.message);
  pool.on("error", tell);
  pool.on("connect", (client) => client.on("error", tell));
  await (await graphile.makeWorkerUtils({ pgPool: pool })).migrate();
  await pool.query(SQL.create);
  const { nodes } = probe.shape;
  const indexOf = new Map(nodes.map(({ id }, i) => [id, i]));
  const edges = nodes.flatMap(({ id, after }) =>
    after.map((parent) => [indexOf.get(parent)!, indexOf.get(id)!] as const),
  );
  await pool.query(SQL.addEdges, [edges.map(([parent]) => parent), edges.map(([, child]) => child)]);
  const step = async ({ run, step }: Payload): Promise<void> => {
    const { id, after } = nodes[step]!;
    const inputs =
      after.length === 0
        ? []
        : (await pool.query<{ output: Output }>({ name: "inputs", text: SQL.inputs, values: [run, step] })).rows;
    const output = await probe.step(
      id,
      inputs.map((row) => row.output),
    );
    await pool.query({ name: "complete", text: SQL.complete, values: [run, step, output] });
  };
  const runner = await graphile.run({
    pgPool: pool,
    concurrency: CONCURRENT_JOBS,
    noHandleSignals: true,
    pollInterval: 1_000,
    logger: new graphile.Logger(() => (level, message) => void (level === "error" && console.error(message))),
    // One at a time is answered sooner without a queue of its own.
    preset: {
      worker: probe.stamping
        ? { concurrentJobs: 10 }
        : {
            concurrentJobs: CONCURRENT_JOBS,
            localQueue: { size: LOCAL_QUEUE },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
    },
    taskList: { step },
  });
  let made = 0;
  const submit = async (count: number): Promise<void> => {
    await pool.query(SQL.submit, [made, made + count - 1, nodes.length]);
    made += count;
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
      await runner.stop();
      await pool.end().catch(() => undefined);
    },
  };
}
