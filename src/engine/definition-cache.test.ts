import { describe, expect, test } from "vitest";
import { executionMachine } from "../core/execution/machine.ts";
import { openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import { contentHash } from "../json/hash.ts";
import { diamond, node, workflow } from "../../test/support/workflows.ts";
import { offerText } from "../core/execution/shared-plans.ts";
import type { Records } from "../store/contract.ts";
import { DefinitionCache, StoredDefinitions } from "./definition-cache.ts";

const text = JSON.stringify(diamond());
const hash = contentHash(text);

describe("a definition that is in memory", () => {
  test("is stored again for a start, until a batch that it was seen for is committed", async () => {
    const store = openMemory({ host: nodeHost });
    await store.records.put([{ scope: "definition", hash, text }]);
    const cache = new DefinitionCache(store);
    const stored = new StoredDefinitions();
    const isKept = async (): Promise<boolean> => {
      store.data.records.clear();
      stored.begin();
      await cache.get(executionMachine, hash, stored);
      return store.data.records.get("definition")?.has(hash) === true;
    };
    await cache.get(executionMachine, hash, stored);
    expect(await isKept(), "the batch was never committed").toBe(true);
    expect(await isKept(), "nor this one").toBe(true);
    stored.prove(stored.sightings);
    expect(await isKept(), "a store that loses it loses a commit too").toBe(false);
    stored.begin();
    await cache.get(executionMachine, hash, new StoredDefinitions());
    expect(store.data.records.get("definition")?.has(hash), "another tenure has seen nothing").toBe(true);
  });

  test("is not proven by the commit of a batch before, which has seen nothing", () => {
    const stored = new StoredDefinitions();
    stored.begin();
    const before = stored.sightings;
    stored.begin();
    stored.saw(hash);
    stored.prove(before);
    stored.begin();
    expect(stored.has(hash)).toBe(false);
  });

  test("is at hand for a start once it was seen to be stored, and not before", async () => {
    const store = openMemory({ host: nodeHost });
    await store.records.put([{ scope: "definition", hash, text }]);
    const cache = new DefinitionCache(store);
    const stored = new StoredDefinitions();
    expect(cache.atHand(executionMachine, hash, stored)).toBeUndefined();
    const definition = await cache.get(executionMachine, hash, stored);
    expect(cache.atHand(executionMachine, hash, stored)).toBe(definition);
    stored.begin();
    expect(cache.atHand(executionMachine, hash, stored), "the batch was never committed").toBeUndefined();
    expect(new DefinitionCache(store).atHand(executionMachine, hash, stored)).toBeUndefined();
  });
});

describe("a large definition that this process has checked", () => {
  const nodes = Array.from({ length: 5_000 }, (_, i) => node(`n${i}`, i === 0 ? [] : ["n0"], { config: { i } }));
  const large = JSON.stringify(workflow(nodes));
  const largeHash = contentHash(large);
  const key = { scope: "definition", hash: largeHash };
  const holder = { text: large, chars: large.length, made: undefined, adopt: () => {} };

  /** A store that can tell what it has, and what it was asked. */
  function telling(): { cache: DefinitionCache; records: Records; asked: string[]; lose: () => void } {
    const store = openMemory({ host: nodeHost });
    const { records } = store;
    const asked: string[] = [];
    const [get, put] = [records.get.bind(records), records.put.bind(records)];
    records.get = (keys) => (asked.push("get"), get(keys));
    records.put = (...args) => (asked.push("put"), put(...args));
    (records as Records).has = async ({ hash: of }) => (
      asked.push("has"),
      store.data.records.get("definition")?.has(of) === true
    );
    return { cache: new DefinitionCache(store), records, asked, lose: () => store.data.records.clear() };
  }

  test("is not read where the store says that it has it", async () => {
    offerText(largeHash, holder);
    const { cache, records, asked } = telling();
    await records.put([{ ...key, text: large }]);
    asked.length = 0;
    const stored = new StoredDefinitions();
    expect(await cache.get(executionMachine, largeHash, stored)).toMatchObject({ hash: largeHash });
    expect(asked).toEqual(["has"]);
    expect(stored.has(largeHash)).toBe(true);
  });

  test("is nothing to start with where the store has not got it", async () => {
    offerText(largeHash, holder);
    const { cache, asked } = telling();
    const stored = new StoredDefinitions();
    expect(await cache.get(executionMachine, largeHash, stored)).toBeNull();
    expect(asked).toEqual(["has", "get"]);
    expect(stored.has(largeHash)).toBe(false);
  });

  test("is written again as it was where the store has lost it, and only there", async () => {
    const { cache, records, asked, lose } = telling();
    await records.put([{ ...key, text: large }]);
    await cache.get(executionMachine, largeHash, new StoredDefinitions());
    asked.length = 0;
    await cache.get(executionMachine, largeHash, new StoredDefinitions());
    expect(asked).toEqual(["has"]);
    lose();
    await cache.get(executionMachine, largeHash, new StoredDefinitions());
    expect(asked).toEqual(["has", "has", "put"]);
    expect(await records.get([key])).toEqual([large]);
    lose();
    await cache.putAll();
    expect(await records.get([key])).toEqual([large]);
  });
});
