import assert from "node:assert/strict";
import type {
  DeadLetter,
  EntityKey,
  Header,
  JournalRecord,
  LeasedTask,
  LeaseRequest,
  Listed,
  Outgoing,
  Page,
  PageQuery,
  ReadRequest,
  ReadResult,
  Reply,
  Settlement,
  Snapshot,
  Store,
  Task,
} from "../contract.ts";
import { LONG_MS } from "./harness.ts";
import type { Owner } from "./owner.ts";

export const ENTITY = "execution/one";
export const OTHER = "execution/two";
export const QUEUE = "queue";

export function record(entity: EntityKey, version: number, count = 1): JournalRecord {
  return { entity, version, count, format: 1, text: `["${entity} ${version}"]` };
}

export function snapshot(entity: EntityKey, version: number): Snapshot {
  return { entity, version, format: 2, text: `{"state":${version}}` };
}

export function header(entity: EntityKey, parts: Partial<Header> = {}): Header {
  return {
    entity,
    class: "open",
    status: "RUNNING",
    workflow: "workflow",
    tenant: "default",
    createdAtMs: 1000,
    endedAtMs: null,
    version: 1,
    ...parts,
  };
}

export function task(token: string, parts: Partial<Task> = {}): Task {
  return { token, entity: ENTITY, partition: 0, queue: QUEUE, priority: 0, text: `{"task":"${token}"}`, ...parts };
}

export function message(text: string, parts: Partial<Outgoing> = {}): Outgoing {
  return { partition: 0, start: false, text, ...parts };
}

export function reply(request: string, process = "process"): Reply {
  return { process, request, text: `{"reply":"${request}"}` };
}

export function deadLetter(id: string, atMs: number, text = `{"letter":"${id}"}`): DeadLetter {
  return { id, class: "exhausted", queue: QUEUE, entity: ENTITY, atMs, text };
}

export function listing(list: string, id: string, parts: Partial<Listed> = {}): Listed {
  return { list, id, entity: ENTITY, atMs: 1000, text: `{"listing":"${id}"}`, ...parts };
}

/** The texts that wait in an inbox, oldest first; takes nothing out. */
export async function inboxTexts(store: Store, partition = 0): Promise<readonly string[]> {
  return (await read(store, { partition })).messages;
}

export async function read(store: Store, request: Partial<ReadRequest> = {}): Promise<ReadResult> {
  const results = await store.inbox.read([readRequest(request)], 0);
  assert.equal(results.length, 1);
  return results[0]!;
}

export function readRequest(parts: Partial<ReadRequest> = {}): ReadRequest {
  return { partition: 0, after: null, limit: 1000, maxChars: 100_000_000, ...parts };
}

export async function appendTexts(store: Store, texts: readonly string[], partition = 0): Promise<void> {
  const outcomes = await store.inbox.append(texts.map((text) => message(text, { partition })));
  assert.deepEqual(
    outcomes,
    texts.map(() => "appended"),
  );
}

export function leaseRequest(parts: Partial<LeaseRequest> = {}): LeaseRequest {
  return { worker: "worker", queues: [QUEUE], max: 100, leaseMs: LONG_MS, waitMs: 0, ...parts };
}

export async function lease(store: Store, parts: Partial<LeaseRequest> = {}): Promise<readonly LeasedTask[]> {
  return store.tasks.lease(leaseRequest(parts));
}

export async function leaseTokens(store: Store, parts: Partial<LeaseRequest> = {}): Promise<readonly string[]> {
  return (await lease(store, parts)).map(({ token }) => token);
}

/** Commits one task and has a worker lease it. */
export async function leaseOne(store: Store, owner: Owner, token: string, leaseMs = LONG_MS): Promise<LeasedTask> {
  await owner.commit({ tasks: [task(token, { partition: owner.tenure.partition })] });
  const leased = await lease(store, { leaseMs });
  assert.deepEqual(
    leased.map((one) => one.token),
    [token],
  );
  return leased[0]!;
}

export function settlement(leased: LeasedTask, outcome: Settlement["outcome"], text = `"${outcome}"`): Settlement {
  return { ref: leased.ref, token: leased.token, partition: leased.partition, outcome, text };
}

/** The bodies of the messages in an inbox that the store itself or a worker posted about tasks. */
export async function inboxBodies(store: Store, partition = 0): Promise<readonly unknown[]> {
  const texts = await inboxTexts(store, partition);
  return texts.map((text) => (JSON.parse(text) as { readonly body: unknown }).body);
}

export function numbered(count: number, prefix = "m"): readonly string[] {
  return Array.from({ length: count }, (_, i) => `"${prefix}${i}"`);
}

/** Follows the cursors to the end. */
export async function collect<Item>(page: (cursor?: string) => Promise<Page<Item>>): Promise<readonly Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 100; pages++) {
    const next = await page(cursor);
    items.push(...next.items);
    if (next.cursor === null) return items;
    cursor = next.cursor;
  }
  return assert.fail("the cursors do not end");
}

/** A question with the cursor of the page before, if there was one. */
export function behind<Query extends PageQuery>(query: Query, cursor: string | undefined): Query {
  return cursor === undefined ? query : { ...query, cursor };
}
