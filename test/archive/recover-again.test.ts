import { afterAll, beforeAll, expect, test } from "vitest";
import { MACHINES } from "../../src/core/machines.ts";
import { openRedis } from "../../src/drivers/redis/redis-store.ts";
import { recover, type Recovery } from "../../src/engine/recovery.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import type { Store } from "../../src/store/contract.ts";
import type { Archive } from "../../src/store/archive.ts";
import { ArchiveWorld } from "./world.ts";

let world: ArchiveWorld;
beforeAll(async () => {
  world = await ArchiveWorld.open();
});
afterAll(() => world.close());

const held = (name: string, version: number) => ({
  name,
  nodes: [{ id: "w", handler: "wait", config: { signal: "go", timeout_seconds: 1000 + version } }],
});

/** One whose process dies in the midst: after so many writes nothing reaches the store any more, not even a release. */
function dying(store: Store, writes: number): Store {
  let left = writes;
  const role = <Role extends object>(target: Role, counted: readonly PropertyKey[]): Role =>
    new Proxy(target, {
      get: (_, name) => {
        const found: unknown = Reflect.get(target, name);
        if (typeof found !== "function") return found;
        return async (...args: unknown[]): Promise<unknown> => {
          if (left === 0) throw new Error("died");
          if (counted.includes(name)) left--;
          return found.apply(target, args) as unknown;
        };
      },
    });
  return {
    capabilities: store.capabilities,
    partitions: role(store.partitions, []),
    inbox: role(store.inbox, []),
    journal: role(store.journal, ["commit"]),
    tasks: role(store.tasks, []),
    records: role(store.records, ["publish", "unpublish"]),
    queries: role(store.queries, []),
    close: () => store.close(),
  };
}

function rebuild(archive: Archive, store: Store, force: boolean): Promise<Recovery> {
  return recover({ archive, store, host: nodeHost, machines: MACHINES, force, leaseMs: 100 });
}

test("a recovery that dies, wherever it is, is done by the next one, and nothing is there twice or missing", async () => {
  const api = await world.api();
  const ids: string[] = [];
  for (const name of ["one", "two"]) {
    for (let version = 1; version <= 3; version++) {
      await api.post("/v1/workflows", held(name, version));
      const { body } = await api.post(`/v1/workflows/${name}/executions`, {});
      ids.push(body.execution_id);
    }
  }
  await api.post("/v1/workflows", held("gone", 1));
  const shipped = async (): Promise<readonly unknown[]> => {
    const versions = (await world.archive.names()).flatMap((kept) => kept.versions);
    return [
      (await world.archive.open("", 100)).length,
      versions.length,
      versions.filter(({ isGone }) => isGone).length,
    ];
  };
  await expect.poll(shipped, { timeout: 20_000, interval: 20 }).toEqual([ids.length, 7, 0]);
  // Its number stays taken, and it is not to be started.
  await api.delete("/v1/workflows/gone");
  await expect.poll(shipped, { timeout: 20_000, interval: 20 }).toEqual([ids.length, 7, 1]);
  const names = ["one", "two", "gone"];
  const before = await Promise.all(names.map((name) => world.store.records.versions(name)));
  await world.stopAll();

  let store = world.store;
  let deaths = 0;
  const next = async (): Promise<Store> => {
    if (store !== world.store) await store.close();
    const prefix = `${world.prefix}-${deaths}`;
    return openRedis({ url: world.redis.url, prefix, host: nodeHost, partitions: 2 });
  };
  for (let isDone = false; !isDone;) {
    store = await next();
    try {
      await rebuild(world.archive, dying(store, deaths + 1), false);
      isDone = true;
    } catch (error) {
      expect(error).toMatchObject({ message: "died" });
      deaths++;
      const { executions, present } = await rebuild(world.archive, store, true);
      expect(executions + present).toBe(ids.length);
    }
    expect(await Promise.all(names.map((name) => store.records.versions(name)))).toEqual(before);
    // A number that was once given stands for that content for ever.
    expect(await store.records.publish("gone", "another")).toBe(2);
  }
  // It died behind every write once: a commit for each execution, and what the names take.
  expect(deaths).toBeGreaterThan(ids.length + 7);

  const again = await world.api({ store });
  for (const id of ids) await again.post(`/v1/executions/${id}/signal`, { name: "go" });
  for (const id of ids) expect(await again.ended(id)).toMatchObject({ status: "COMPLETED" });
  await world.stopAll();
  await store.close();
});
