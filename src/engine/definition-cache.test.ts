import { describe, expect, test } from "vitest";
import { executionMachine } from "../core/execution/machine.ts";
import { openMemory } from "../drivers/memory/memory-store.ts";
import { nodeHost } from "../host/node-host.ts";
import { contentHash } from "../json/hash.ts";
import { diamond } from "../../test/support/workflows.ts";
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
