import { Client } from "pg";
import type { Contender, Servers } from "../contender.ts";
import { preparePostgres } from "../contenders/postgres-server.ts";
import type { Probe } from "../probe.ts";
import { GROUP } from "./bare-sqlite.ts";
import { recordRows } from "./recorded-rows.ts";

const SQL = {
  create: `
    create table journal (entity text, version int, count int, format int, text text, primary key (entity, version));
    create table headers (entity text primary key, status text, workflow text, ended_at_ms bigint, version int);
    create table tasks (token text primary key, queue text, text text);
    create table inbox (id bigserial primary key, text text);`,
  append: `insert into journal select * from unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::text[])`,
  putHeaders: `
    insert into headers select * from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::int[])
    on conflict (entity) do update set status = excluded.status, ended_at_ms = excluded.ended_at_ms`,
  putTasks: `insert into tasks select * from unnest($1::text[], $2::text[], $3::text[])`,
  settle: `with gone as (delete from tasks where token = any($1::text[]) returning text)
    insert into inbox (text) select text from gone`,
  consume: `delete from inbox`,
};

/**
 * The rows of Millrace's own commits, written to Postgres in one loop: journal, headers and tasks of a full batch with one
 * statement each in one transaction, and as many results put in and taken out. Nobody decides anything.
 */
export async function startBarePostgres(probe: Probe, servers: Servers): Promise<Contender> {
  const commits = await recordRows(probe.shape);
  const { url, pid } = await preparePostgres(servers.postgres);
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(SQL.create);
  const run = (name: keyof typeof SQL, values: readonly unknown[]): Promise<unknown> =>
    client.query({ name, text: SQL[name], values: [...values] });
  let made = 0;

  const writeGroup = async (count: number): Promise<void> => {
    const entities = Array.from({ length: count }, () => `execution/${String(++made).padStart(32, "0")}`);
    for (const { records, headers, tasks } of commits) {
      const rows = entities.flatMap((entity) => records.map((record) => ({ ...record, entity })));
      const tops = entities.flatMap((entity) => headers.map((header) => ({ ...header, entity })));
      const todo = entities.flatMap((entity) => tasks.map((task) => ({ ...task, token: `${entity}${task.token}` })));
      const tokens = todo.map(({ token }) => token);
      await client.query("begin");
      await run("append", [
        rows.map(({ entity }) => entity),
        rows.map(({ version }) => version),
        rows.map(({ count }) => count),
        rows.map(({ format }) => format),
        rows.map(({ text }) => text),
      ]);
      if (tops.length > 0) {
        await run("putHeaders", [
          tops.map(({ entity }) => entity),
          tops.map(({ status }) => status),
          tops.map(({ workflow }) => workflow),
          tops.map(({ endedAtMs }) => endedAtMs),
          tops.map(({ version }) => version),
        ]);
      }
      await run("consume", []);
      if (todo.length > 0)
        await run("putTasks", [tokens, todo.map(({ queue }) => queue), todo.map(({ text }) => text)]);
      await client.query("commit");
      if (todo.length > 0) await run("settle", [tokens]);
    }
    probe.skip(count);
  };
  const submit = async (count: number): Promise<void> => {
    for (let left = count; left > 0; left -= GROUP) await writeGroup(Math.min(GROUP, left));
  };
  return {
    servers: { postgres: pid },
    submit,
    runOne: () => submit(1),
    settled: async () => {},
    close: () => client.end(),
  };
}
