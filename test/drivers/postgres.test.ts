import { setTimeout as sleep } from "node:timers/promises";
import { Client, escapeIdentifier } from "pg";
import { afterAll, beforeAll, describe } from "vitest";
import type { Service } from "../../scripts/services/service.ts";
import { openPostgres } from "../../src/drivers/postgres/postgres-store.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { conformance } from "../../src/store/conformance/conformance.ts";
import type { Harness } from "../../src/store/conformance/harness.ts";
import type { Outgoing, Store } from "../../src/store/contract.ts";
import { postgresService } from "../support/services.ts";

const INBOX_LIMIT = 60;
const CLOCK_BEHIND = "create or replace function wall_ms() returns bigint language sql volatile";
const NO_ROOM = `
  create function no_room() returns trigger language plpgsql
    as 'begin raise exception ''no room'' using errcode = ''disk_full''; end';
  create trigger no_room before insert on dead_letters execute function no_room();
  create trigger no_room before insert on records execute function no_room()`;
const ROOM = "drop trigger no_room on dead_letters; drop trigger no_room on records";

let service: Service;
beforeAll(async () => {
  service = await postgresService();
});
afterAll(() => service.stop());

// Most cases wait for a lease to run out, so several at once cost nothing.
describe.concurrent("", () => conformance("postgres", { open: openHarness }));

/** Making all tables takes longer than most cases, so a case takes those that another has left, emptied. */
const freeSchemas: string[] = [];
const EMPTIED = `
  delete from store; delete from partitions; delete from inbox; delete from replies; delete from journal;
  delete from snapshots; delete from wakes; delete from headers; delete from tasks; delete from packs;
  delete from dead_letters;
  delete from records; delete from published; delete from registrations; delete from listings; delete from purges;
  update clock set wall_ms = wall_ms(), offset_ms = 0`;

async function openHarness(): Promise<Harness> {
  const schema = freeSchemas.pop() ?? `test_${nodeHost.id()}`;
  let isChanged = false;
  const { url } = service;
  const open = (): Promise<Store> =>
    openPostgres({ url, schema, host: nodeHost, partitions: 4, maxInbox: INBOX_LIMIT, maxConnections: 4 });
  const stores = [await open()];
  return {
    store: stores[0]!,
    inboxLimit: INBOX_LIMIT,
    advance: (ms) => sleep(ms),
    appendLate: (message) => appendLate(url, schema, message),
    setClockBack: async (ms) => {
      isChanged = true;
      // The store learns of it by looking at the clock before and after, as it does once a second.
      await stores[0]!.partitions.renew([], 0);
      await query(
        url,
        `${CLOCK_BEHIND} as 'select (extract(epoch from clock_timestamp()) * 1000)::bigint - ${ms}'`,
        schema,
      );
      await stores[0]!.partitions.renew([], 0);
    },
    // After most of the batch has been written: what was there must go again.
    refuseCommits: (isRefusing) => {
      isChanged = true;
      return query(url, isRefusing ? NO_ROOM : ROOM, schema);
    },
    reopen: async () => {
      await stores[0]!.close();
      stores[0] = await open();
      return stores[0];
    },
    close: async () => {
      await stores[0]!.close();
      if (isChanged) return query(url, `drop schema ${escapeIdentifier(schema)} cascade`);
      await query(url, EMPTIED, schema);
      freeSchemas.push(schema);
    },
  };
}

/** A sender whose transaction has its id already and is not committed yet. */
async function appendLate(url: string, schema: string, { partition, text }: Outgoing): Promise<() => Promise<void>> {
  const client = await connect(url, schema);
  await client.query("begin");
  await client.query("insert into inbox (partition, text) values ($1, $2)", [partition, text]);
  return async () => {
    await client.query("commit");
    await client.end();
  };
}

async function query(url: string, sql: string, schema = "public"): Promise<void> {
  const client = await connect(url, schema);
  await client.query(sql);
  await client.end();
}

async function connect(url: string, schema: string): Promise<Client> {
  const client = new Client({ connectionString: url, options: `-c search_path=${schema}` });
  await client.connect();
  return client;
}
