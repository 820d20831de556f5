import { Client } from "pg";
import { parentOf } from "../accounting.ts";

/** Makes an empty database, and tells its address and the process of the server. */
export async function preparePostgres(url: string): Promise<{ readonly url: string; readonly pid: number }> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const name = ownName();
  await client.query(`drop database if exists ${name} with (force)`);
  await client.query(`create database ${name}`);
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  // The process of a connection is a child of the server, for as long as it is connected.
  const pid = parentOf(rows[0]!.pid);
  await client.end();
  return { url: ownUrl(url), pid };
}

/**
 * Counts what is in the tables. The server does so by itself after a minute or so; before, it takes them for empty and may
 * choose ways that cost three times as much, or may not, as it happens.
 */
export async function analyze(url: string): Promise<void> {
  const client = new Client({ connectionString: ownUrl(url) });
  await client.connect();
  await client.query("analyze");
  await client.end();
}

function ownName(): string {
  return `bench_${process.pid}`;
}

function ownUrl(url: string): string {
  const own = new URL(url);
  own.pathname = `/${ownName()}`;
  return own.href;
}
