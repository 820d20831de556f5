import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { Database } from "../../src/drivers/postgres/database.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { acquire } from "../../src/store/conformance/owner.ts";
import { postgresService } from "../support/services.ts";

let service: Service;
beforeAll(async () => void (service = await postgresService()));
afterAll(() => service.stop());

/** A way to the server that lets so many bytes pass once it is told to, and then nothing; the line stays open. */
class StallingLine {
  left = Infinity;
  readonly server: Server = createServer((client) => {
    const { port, hostname } = new URL(service.url);
    const server = connect(Number(port), hostname);
    for (const socket of [client, server]) socket.on("error", () => {});
    client.on("data", (chunk) => {
      const part = chunk.subarray(0, Math.max(0, this.left));
      this.left -= chunk.length;
      if (part.length > 0) server.write(part);
    });
    server.on("data", (chunk) => client.write(chunk));
    server.on("close", () => client.destroy());
  });

  async open(): Promise<string> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    const url = new URL(service.url);
    url.port = String((this.server.address() as { readonly port: number }).port);
    return url.href;
  }
}

test("whoever stops in the middle of a long commit does not keep what it has locked", async () => {
  const line = new StallingLine();
  const options = { schema: `test_${nodeHost.id()}`, maxConnections: 1, connectMs: 10_000, statementMs: 10_000 };
  const stopped = new Database(nodeHost, { ...options, url: await line.open() });
  const other = new Database(nodeHost, { ...options, url: service.url });
  try {
    await other.run(`create schema ${options.schema}`);
    await other.run("create table partitions (id integer primary key, seq integer)");
    await other.run("create table journal (text text)");
    await other.run("insert into partitions values (1, 0)");
    const advance = { sql: "update partitions set seq = seq + 1 where id = $1", values: [1] };
    const insert = (text: string) => ({ sql: "insert into journal values ($1)", values: [text] });
    await stopped.atOnce([advance, insert("x")]);
    line.left = 512 * 1024;
    const commit = stopped.atOnce([advance, insert("y".repeat(100_000)), insert("z".repeat(2_000_000))]);
    commit.catch(() => {});
    await nodeHost.sleep(300);
    // Fails if the row is locked for as long as a statement may take, which is twice the time after which the server ends such a transaction.
    await other.run("update partitions set seq = seq + 100 where id = $1", [1]);
    const { rows } = await other.run("select seq from partitions");
    expect(rows).toEqual([{ seq: 101 }]);
  } finally {
    line.server.close();
    void stopped.close();
    await other.close();
  }
}, 60_000);

test("partitions are renewed in the order in which commits lock them, however they were taken", async () => {
  const store = await openPostgres({
    url: service.url,
    schema: `test_${nodeHost.id()}`,
    host: nodeHost,
    partitions: 4,
  });
  const owners = [await acquire(store, 3), await acquire(store, 1), await acquire(store, 2)];
  const run = vi.spyOn(Database.prototype, "run");
  const { partitions } = await store.partitions.renew(
    owners.map(({ fence }) => fence),
    60_000,
  );
  const renewed = run.mock.calls.flatMap(([, values]) => (Array.isArray(values?.[0]) ? [values[0]] : []));
  run.mockRestore();
  expect(renewed).toEqual([[1, 2, 3]]);
  expect(partitions.map(({ kind }) => kind)).toEqual(["held", "held", "held"]);
  await store.close();
});
