import { expect, test } from "vitest";
import { openMemory } from "../../drivers/memory/memory-store.ts";
import { node, workflow } from "../../../test/support/workflows.ts";
import { nodeHost } from "../../host/node-host.ts";
import { Definition, Definitions } from "./definitions.ts";

test("an input is checked by a stored schema as far as it is understood, also if it would be refused now", () => {
  const inputSchema = { type: "object", required: ["who"], unevaluatedProperties: false };
  const definition = new Definition({ hash: "h", text: "{}", name: "w", inputSchema });
  expect(definition.inputFaults({})).toMatchObject([{ pointer: "", keyword: "required" }]);
  expect(definition.inputFaults({ who: 1, other: 2 })).toEqual([]);
});

test("what is published again is looked for as the newest of its name, by its hash once it is not, and told if it is gone", async () => {
  const memory = openMemory({ host: nodeHost });
  const asked: (string | number | undefined)[] = [];
  const published = memory.records.published.bind(memory.records);
  memory.records.published = (name, version) => {
    asked.push(version);
    return published(name, version);
  };
  const definitions = new Definitions(memory);
  const of = (hash: string): Definition => definitions.of({ hash, text: "{}", name: "w", inputSchema: undefined });
  const publish = async (hash: string): Promise<number> => definitions.publish(of(hash));

  expect(await publish("one")).toBe(1);
  expect(asked).toEqual([]);
  expect(await publish("one")).toBe(1);
  expect(asked.splice(0)).toEqual([undefined]);

  // Another process publishes the next version.
  expect(await memory.records.publish("w", "two")).toBe(2);
  expect(await publish("one")).toBe(1);
  expect(asked.splice(0)).toEqual([undefined, "one"]);
  expect(await publish("one")).toBe(1);
  expect(asked.splice(0)).toEqual(["one"]);

  // And deletes the name: whoever submits it then has it published again, under its old number.
  await memory.records.unpublish("w");
  expect(await publish("one")).toBe(1);
  expect(await published("w")).toMatchObject({ version: 1, hash: "one" });
  asked.splice(0);
  expect(await publish("one")).toBe(1);
  expect(asked).toEqual([undefined]);
  await memory.close();
});

test("the text of a large definition is what it was when its plan holds it", () => {
  const nodes = Array.from({ length: 5_000 }, (_, i) =>
    node(`n${i}`, i === 0 ? [] : ["n0"], { config: { i, "é😀": "\ud800" } }),
  );
  const text = JSON.stringify(workflow(nodes));
  // From another thread it comes as bytes.
  for (const given of [text, new TextEncoder().encode(text)]) {
    const definition = new Definition({ hash: "large", text: given, name: "w", inputSchema: undefined });
    expect(definition.text).toBe(text);
    expect(definition.plan.nodes).toHaveLength(5_000);
    if (given instanceof Uint8Array) expect(given.byteLength, "they are given back").toBe(0);
    expect(definition.text).toBe(text);
    expect(definition.workflow).toBe(definition.plan.workflow);
  }
});
