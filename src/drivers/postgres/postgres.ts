import { type ClientBase, type ClientConfig, type CustomTypesConfig, type Pool, type QueryResultRow, types } from "pg";
import type { Host } from "../../host/host.ts";
import type { WakeUps } from "./wake-ups.ts";

/** What the roles of one store share. */
export interface Postgres {
  readonly pool: Pool;
  readonly host: Host;
  readonly wakeUps: WakeUps;
  readonly incarnation: string;
  readonly maxInbox: number;
}

/** What runs a statement: the pool by itself, or a connection in a transaction. */
export type Connection = Pick<ClientBase, "query">;

/** Our 64-bit columns hold counters and milliseconds: numbers, not the strings that `pg` makes of them. */
const numbers: CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format)),
};

export function connectionConfig(url: string, schema: string): ClientConfig {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema)) throw new Error(`${schema} is no name for a schema`);
  return { connectionString: url, options: `-c search_path=${schema}`, types: numbers };
}

export async function rows<Row extends object>(
  connection: Connection,
  sql: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return (await connection.query<Row & QueryResultRow>(sql, [...values])).rows;
}

/** All of it or nothing. A connection on which something failed is thrown away with whatever it was doing. */
export async function transaction<Result>(
  pool: Pool,
  work: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** The columns of a list of rows, as `unnest` takes them. */
export function columns<Item>(items: readonly Item[], ...fields: readonly (keyof Item)[]): readonly unknown[][] {
  return fields.map((field) => items.map((item) => item[field]));
}
