import { Client } from "pg";
import { parentOf } from "../accounting.ts";

/** Makes an empty database, and tells its address and the process of the server. */
export async function preparePostgres(url: string): Promise<{ readonly url: string; readonly pid: number }> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const name = `bench_${process.pid}`;
  await client.query(`drop database if exists ${name} with (force)`);
  await client.query(`create database ${name}`);
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  // The process of a connection is a child of the server, for as long as it is connected.
  const pid = parentOf(rows[0]!.pid);
  await client.end();
  const own = new URL(url);
  own.pathname = `/${name}`;
  return { url: own.href, pid };
}
