import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { entityKey, partitionOf } from "../../src/core/entity.ts";
import { openPostgresArchive } from "../../src/drivers/postgres/archive.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { timeId } from "../../src/host/time-id.ts";
import type { Archive } from "../../src/store/archive.ts";
import type { JournalRecord } from "../../src/store/contract.ts";
import { HandlerError } from "../../src/worker/handler.ts";
import { ArchiveWorld } from "./world.ts";

let world: ArchiveWorld;
beforeAll(async () => {
  world = await ArchiveWorld.open();
});
afterEach(() => world.stopAll());
afterAll(() => world.close());

const LARGE = "x".repeat(100_000);
let fragile = true;
const handlers = {
  step: ({ config }: { config: unknown }) => config as never,
  fragile: () => {
    if (fragile) throw new HandlerError("BROKEN", "no", { retryable: false });
    return "mended";
  },
};
const chain = {
  name: "chain",
  nodes: [
    { id: "a", handler: "step", config: { x: 1, text: LARGE } },
    { id: "b", handler: "step", dependencies: ["a"], config: { x: "{{ a.x }}" } },
  ],
};
const broken = { name: "broken", nodes: [{ id: "f", handler: "fragile", retry: { max_attempts: 1 } }] };

const place = (id: string) => {
  const entity = entityKey("execution", id);
  return { entity, partition: partitionOf(entity, world.store.capabilities.partitionCount) };
};
const hot = async (id: string): Promise<readonly JournalRecord[]> =>
  (await world.store.journal.load([{ ...place(id), aboveVersion: 0 }]))[0]!.records;
const cold = async (id: string): Promise<readonly JournalRecord[]> =>
  (await world.archive.journal.load([{ ...place(id), aboveVersion: 0 }]))[0]!.records;
const isGone = async (id: string): Promise<boolean> => (await hot(id)).length === 0;
const unshipped = async (): Promise<readonly string[]> => {
  const lists = Array.from({ length: world.store.capabilities.partitionCount }, (_, i) => `unshipped/${i}`);
  const pages = await Promise.all(lists.map((list) => world.store.queries.listing({ list, limit: 100 })));
  return pages.flatMap(({ items }) => items.map(({ id }) => id));
};

test("what was committed is shipped, record by record, and then taken off the list", async () => {
  const api = await world.api({ handlers });
  const id = await api.run(chain);
  await api.ended(id);
  await expect.poll(unshipped).toEqual([]);
  expect(await cold(id)).toEqual(await hot(id));
  expect(await world.archive.queries.header(0, place(id).entity)).toMatchObject({
    class: "endedWell",
    status: "COMPLETED",
  });
});

test("what one engine has not shipped, the next one ships, and what was on the way is not there twice", async () => {
  const away = new Proxy(world.archive, {
    get: (target, name) => {
      const found: unknown = Reflect.get(target, name);
      // It writes all of it, and then dies before it can take anything off the list.
      if (name !== "ship") return typeof found === "function" ? (found.bind(target) as unknown) : found;
      return async (...args: Parameters<Archive["ship"]>) => {
        const outcome = await target.ship(...args);
        if (args[0].entities.length > 0) throw new Error("died");
        return outcome;
      };
    },
  });
  const first = await world.api({ handlers, archive: away });
  const id = await first.run(chain);
  await first.ended(id);
  await expect.poll(async () => (await cold(id)).length).toBeGreaterThan(0);
  await expect.poll(() => first.engine!.shipping!.trouble).toBe("died");
  expect(await unshipped()).toContain(place(id).entity);
  await first.close();
  await world.api({ handlers });
  await expect.poll(unshipped).toEqual([]);
  expect(await cold(id)).toEqual(await hot(id));
});

test("nothing is shipped that the store might still lose", async () => {
  await world.sql(`create table shipped_at (entity text, version bigint, at double precision)`);
  await world.sql(`create function note_shipped() returns trigger language plpgsql as
    'begin insert into shipped_at values (new.entity, new.version, extract(epoch from clock_timestamp()) * 1000); return new; end'`);
  await world.sql(`create trigger note_shipped after insert on journal for each row execute function note_shipped()`);
  const api = await world.api({ handlers, windowMs: 1_500 });
  const id = await api.run(chain);
  await api.ended(id);
  await expect.poll(unshipped).toEqual([]);
  // By the clock of the machine all of this runs on: what was shipped had been committed that long before.
  const shipped = await world.sql<{ ageMs: number }>(
    `select at - (jsonb_path_query_array(text::jsonb, '$[*].atMs') ->> -1)::double precision as "ageMs"
     from shipped_at join journal using (entity, version) where entity = $1`,
    [place(id).entity],
  );
  for (const { ageMs } of shipped) expect(ageMs).toBeGreaterThanOrEqual(1_500);
  expect(await cold(id)).toEqual(await hot(id));
});

test("a history that the store does not have any more is replaced by the one it has", async () => {
  const first = await world.api({ handlers });
  const id = await first.run(chain);
  await first.ended(id);
  await expect.poll(unshipped).toEqual([]);
  await first.close();
  await world.sql(`update journal set text = replace(text, '"x":1', '"x":2') where entity = $1`, [place(id).entity]);
  const second = await world.api({ handlers });
  expect((await second.post(`/v1/executions/${id}/retry`, { from: "b" })).status).toBe(202);
  await second.ended(id);
  await expect.poll(unshipped).toEqual([]);
  expect(await cold(id)).toEqual(await hot(id));
});

test("what was removed is found by its labels, with what is still here, and once", async () => {
  const api = await world.api({ handlers, keepMs: 1 });
  const wanted = { definition: chain, labels: { run: "cold", env: "test" } };
  const gone: string[] = [];
  for (let i = 0; i < 3; i++)
    gone.push((await api.post("/v1/workflow?start=true", wanted)).body.execution_id as string);
  for (const id of gone) await api.ended(id);
  await expect.poll(async () => (await Promise.all(gone.map(isGone))).every(Boolean)).toBe(true);
  await api.close();
  const later = await world.api({ handlers });
  const held = (await later.post("/v1/workflow", wanted)).body.execution_id as string;
  expect((await later.post(`/v1/workflow/trigger/${held}`, { labels: { env: "prod" } })).status).toBe(202);
  await later.ended(held);
  await expect.poll(unshipped).toEqual([]);
  const found = async (query: string): Promise<string[]> =>
    (await later.get(`/v1/executions?${query}`)).body.items.map((one: { execution_id: string }) => one.execution_id);
  expect((await found("label=run=cold")).toSorted()).toEqual([...gone, held].toSorted());
  expect((await found("label=run=cold,env=test")).toSorted()).toEqual(gone.toSorted());
  expect(await found("label=env=prod,run=cold")).toEqual([held]);
  expect((await world.archive.queries.listing({ list: "label/env=test", limit: 9 })).items).toHaveLength(3);
  // One that is brought back is on the list as before.
  expect((await later.post(`/v1/executions/${gone[0]}/retry`, { from: "b" })).status).toBe(202);
  await later.ended(gone[0]!);
  expect((await found("label=run=cold")).toSorted()).toEqual([...gone, held].toSorted());
});

test("what people made of proposals is found when it is removed here, with what is still here, and once", async () => {
  let api = await world.api({ handlers, keepMs: 1 });
  const nodes = ["ask", "long"].map((id) => ({ id, handler: "review", config: { title: id, values: { total: 3 } } }));
  const asked = { name: "asked", nodes };
  const decide = async (review: string, data: object): Promise<void> => {
    const path = `/v1/reviews/${encodeURIComponent(review)}`;
    await expect.poll(async () => (await api.get(path)).body.status).toBe("open");
    expect((await api.post(path, { decision: "approve", data })).status).toBe(200);
  };
  const examples = async (): Promise<{ id: string; data: unknown }[]> =>
    (await api.get("/v1/reviews/examples?workflow=asked")).body.items;
  const labelled = await api.post("/v1/workflow?start=true", { definition: asked, labels: { of: "examples" } });
  const gone = labelled.body.execution_id as string;
  await decide(`${gone}:1:ask`, { total: 4 });
  await decide(`${gone}:1:long`, { total: LARGE });
  await api.ended(gone);
  await expect.poll(() => isGone(gone)).toBe(true);
  expect(await examples()).toMatchObject([
    { id: `${gone}:1:long`, values: { total: 3 }, data: null, data_omitted: true, locks: ["total"] },
    { id: `${gone}:1:ask`, title: "ask", values: { total: 3 }, data: { total: 4 }, by: "local", locks: ["total"] },
  ]);
  await api.close();
  api = await world.api({ handlers });
  const here = await api.run(asked);
  await decide(`${here}:1:ask`, { total: 3 });
  await decide(`${here}:1:long`, { total: 5 });
  await api.ended(here);
  // One that is brought back, and decided again: both decisions are there.
  expect((await api.post(`/v1/executions/${gone}/retry`, { from: "ask" })).status).toBe(202);
  await decide(`${gone}:2:ask`, { total: 6 });
  await api.ended(gone);
  await expect.poll(unshipped).toEqual([]);
  const ids = [`${gone}:2:ask`, `${here}:1:long`, `${here}:1:ask`, `${gone}:1:long`, `${gone}:1:ask`];
  expect((await examples()).map(({ id }) => id)).toEqual(ids);
  const kept = await world.archive.queries.listing({ list: "reviewed", limit: 9 });
  expect(kept.items.map(({ id }) => id)).toEqual(ids);
  const found = await world.archive.queries.listing({ list: "label/of=examples", limit: 9 });
  expect(found.items.map(({ id }) => id)).toEqual([gone]);
});

test("hot first, then cold: what was removed here is read there, with nodes, events, values and letters", async () => {
  const other = await world.api({ engine: false, known: ["step", "fragile"] });
  const api = await world.api({ handlers, keepMs: 1 });
  const ids = [await api.run(chain), await api.run(broken), await api.run(chain)];
  const [good, bad] = ids as [string, string];
  for (const id of ids) await api.ended(id);
  const before = await other.get(`/v1/executions/${good}`);
  // Whoever looks all the while finds it all the while.
  while (!(await isGone(good)) || !(await isGone(bad))) {
    for (const id of ids) expect((await other.get(`/v1/executions/${id}`)).status).toBe(200);
    const listed = (await other.get("/v1/executions?limit=500")).body.items.map(
      (item: { execution_id: string }) => item.execution_id,
    );
    expect(new Set(listed).size).toBe(listed.length);
    expect(listed).toEqual(expect.arrayContaining(ids));
  }
  expect((await other.get(`/v1/executions/${good}`)).body).toEqual(before.body);
  expect((await other.get(`/v1/executions/${good}/nodes/a`)).body.output).toEqual({ x: 1, text: LARGE });
  expect((await other.get(`/v1/executions/${good}/nodes`)).body.items).toHaveLength(2);
  expect((await other.get(`/v1/executions/${good}/events?limit=500`)).body.items.at(-1).type).toBe("execution_ended");
  const letters = (await other.get(`/v1/dlq?execution_id=${bad}`)).body.items;
  expect(letters).toMatchObject([{ execution_id: bad, node_id: "f", status: "open" }]);
  expect((await other.get(`/v1/dlq/${encodeURIComponent(letters[0].id)}`)).status).toBe(200);
  const walked: string[] = [];
  for (let cursor: string | null = ""; cursor !== null;) {
    const { body } = await other.get(`/v1/executions?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
    walked.push(...body.items.map((item: { execution_id: string }) => item.execution_id));
    cursor = body.next_cursor;
  }
  expect(new Set(walked).size).toBe(walked.length);
  expect(walked).toEqual(expect.arrayContaining(ids));
});

test("what is in the archive only is brought back by a retry, a replay, and the same start again", async () => {
  const api = await world.api({ handlers, keepMs: 1 });
  const ids = [await api.run(broken), await api.run(broken)] as const;
  const key = { "idempotency-key": "again" };
  const started = await api.post("/v1/workflow?start=true", chain, key);
  const keyed = started.body.execution_id as string;
  for (const id of [...ids, keyed]) await api.ended(id);
  for (const id of [...ids, keyed]) await expect.poll(() => isGone(id)).toBe(true);
  fragile = false;
  expect((await api.post(`/v1/executions/${ids[0]}/retry`)).body).toMatchObject({ generation: 2 });
  const [letter] = (await api.get(`/v1/dlq?execution_id=${ids[1]}`)).body.items;
  expect((await api.post(`/v1/dlq/${encodeURIComponent(letter.id)}/retry`)).body).toMatchObject({ generation: 2 });
  for (const id of ids) {
    await expect.poll(async () => (await api.get(`/v1/executions/${id}`)).body.status).toBe("COMPLETED");
    expect((await api.get(`/v1/executions/${id}`)).body).toMatchObject({ generation: 2, output: { f: "mended" } });
  }
  const { created_at: createdAt } = (await api.get(`/v1/executions/${keyed}`)).body;
  expect(await api.post("/v1/workflow?start=true", chain, key)).toMatchObject({ status: 201, body: started.body });
  expect((await api.get(`/v1/executions/${keyed}`)).body).toMatchObject({ created_at: createdAt, status: "COMPLETED" });
  expect((await api.post("/v1/workflow?start=true", broken, key)).status).toBe(422);
  expect((await api.post(`/v1/executions/${keyed}/cancel`)).body.code).toBe("ALREADY_TERMINAL");
  for (const id of ids) {
    // One history in both: the second generation was shipped behind the first.
    await expect.poll(() => isGone(id)).toBe(true);
    const kinds = (await cold(id)).flatMap(({ text }) =>
      (JSON.parse(text) as { kind: string }[]).map(({ kind }) => kind),
    );
    expect(kinds.filter((kind) => kind === "executionEnded")).toHaveLength(2);
  }
});

test("a parent that is in the archive only goes on when its child is repaired", async () => {
  fragile = true;
  const api = await world.api({ handlers, keepMs: 1 });
  await api.post("/v1/workflows", broken);
  const call = { id: "call", handler: "workflow", config: { name: "broken", input: {} } };
  const after = { id: "after", handler: "step", dependencies: ["call"], config: { x: 1 } };
  const parent = await api.run({ name: "parent", nodes: [call, after] });
  const { status, nodes } = await api.ended(parent);
  expect(status).toBe("FAILED");
  const child = nodes.call.child_execution_id as string;
  for (const id of [parent, child]) await expect.poll(() => isGone(id)).toBe(true);
  fragile = false;
  expect((await api.post(`/v1/executions/${child}/retry`)).body).toMatchObject({ generation: 2 });
  await expect.poll(async () => (await api.get(`/v1/executions/${parent}`)).body.status).toBe("COMPLETED");
  expect((await api.get(`/v1/executions/${parent}`)).body).toMatchObject({
    generation: 2,
    output: { after: { x: 1 } },
  });
});

test("without its archive the store goes on, keeps everything, and says what it cannot know", async () => {
  const nowhere = openPostgresArchive({ url: "postgres://127.0.0.1:1/none", host: nodeHost });
  const api = await world.api({ handlers, archive: nowhere, keepMs: 1 });
  const id = await api.run(chain);
  await api.ended(id);
  await expect.poll(() => api.engine!.shipping!.trouble).toBeDefined();
  // Longer than it would be kept if it were shipped, and long enough for many batches.
  await nodeHost.sleep(300);
  expect(await isGone(id)).toBe(false);
  expect((await api.get(`/v1/executions/${id}`)).body.status).toBe("COMPLETED");
  expect((await api.get("/v1/executions?limit=1")).body.items).toMatchObject([{ execution_id: id }]);
  expect((await api.get("/v1/executions/00000000-0000-7000-8000-000000000000")).body.code).toBe("STORE_UNAVAILABLE");
  const keyed = await api.post("/v1/workflow?start=true", chain, { "idempotency-key": "unknown" });
  expect(keyed.body.code).toBe("STORE_UNAVAILABLE");
  // What has ended is kept for one millisecond here: nothing is that young.
  const drawn = await api.post("/v1/workflow?start=true", chain, { "idempotency-key": timeId(nodeHost) });
  expect(drawn.body.code).toBe("STORE_UNAVAILABLE");
  expect(await unshipped()).toContain(place(id).entity);
  await world.stopAll();
  await nowhere.close();
});

test("without its archive a start goes on whose key was just drawn, and is the same start when it is repeated", async () => {
  const nowhere = openPostgresArchive({ url: "postgres://127.0.0.1:1/none", host: nodeHost });
  const api = await world.api({ handlers, archive: nowhere });
  const start = (key: string): ReturnType<typeof api.post> =>
    api.post("/v1/workflow?start=true", chain, { "idempotency-key": key });
  // Ahead of us by nearly as much as clocks may differ: so it was drawn after the engine came, by any clock.
  await nodeHost.sleep(300);
  const drawn = (aheadMs: number): string => timeId({ ...nodeHost, wallMs: () => nodeHost.wallMs() + aheadMs });
  const key = drawn(59_900);
  const first = await start(key);
  expect(first.status).toBe(201);
  expect((await start(key)).body.execution_id).toBe(first.body.execution_id);
  // Of one that is older than what is kept here, or than the engine, or of a clock far ahead, only the archive knows.
  for (const aheadMs of [-2 * 3_600_000, 0, 3_600_000]) {
    expect((await start(drawn(aheadMs))).body.code).toBe("STORE_UNAVAILABLE");
  }
  await world.stopAll();
  await nowhere.close();
});
