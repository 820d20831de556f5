import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readDefinition } from "../../src/definition/read.ts";
import { catalogue } from "../../src/definition/test-catalogue.ts";
import type { Json } from "../../src/json/json.ts";
import type { Handler } from "../../src/worker/handler.ts";
import { type MemoryEngine, memoryEngine } from "../support/memory-engine.ts";

const tool = new URL("../../../shared/tools/wfinstances-convert.mjs", import.meta.url);
const folder = new URL("../../../shared/data/wfinstances/", import.meta.url);
const present = existsSync(tool) && existsSync(folder);
if (!present) console.log("skipped: the real traces, because ../shared is not there");

interface Dag {
  readonly nodes: readonly { readonly id: string; readonly config: Json; readonly dependencies: readonly string[] }[];
}

interface Converter {
  convert(trace: unknown, options: { keepIds: boolean; templates: boolean }): { readonly dag: Dag };
  expectedDigests(dag: Dag): Readonly<Record<string, string>>;
}

/** As the tool documents it: a hash of the node's id and its parents' digests, whatever order they came in. */
const simulate: Handler = ({ nodeId, config }) => {
  const { inputs } = config as { inputs: string[] };
  const digest = createHash("sha256")
    .update([nodeId, ...inputs.toSorted()].join("\n"))
    .digest("hex")
    .slice(0, 16);
  return { digest };
};

/** The tool writes `{{ id.digest }}`; an id of a real trace may hold dots and hashes, and is then written in quotes. */
function quoted(dag: Dag): Dag {
  const nodes = dag.nodes.map((node) => ({
    ...node,
    config: { ...(node.config as object), inputs: node.dependencies.map((id) => `{{ nodes["${id}"].digest }}`) },
  }));
  return { ...dag, nodes };
}

describe.skipIf(!present)(
  "real workflow traces run to their end, and every node is given what its parents gave",
  () => {
    let engine: MemoryEngine;
    beforeAll(async () => {
      engine = await memoryEngine({ simulate }, { engine: { checkWhole: true } });
    });
    afterAll(() => engine.stop());

    const traces = present ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
    test.each(traces.flatMap((name) => [false, true].map((keepIds) => [name, keepIds] as const)))(
      "%s, own ids: %s",
      async (name, keepIds) => {
        const converter = (await import(tool.href)) as Converter;
        const trace: unknown = JSON.parse(readFileSync(new URL(name, folder), "utf8"));
        const { dag } = converter.convert(trace, { keepIds, templates: true });
        const text = JSON.stringify(keepIds ? quoted(dag) : dag);
        const { workflow, errors } = readDefinition(text, { format: "json", handlers: catalogue({ simulate: {} }) });
        expect(errors).toEqual([]);

        const view = await engine.run(workflow!);
        expect(view.status).toBe("COMPLETED");
        const digests = Object.fromEntries(
          Object.entries(view.nodes).map(([id, { output }]) => [
            id,
            (output as { json: { digest: string } }).json.digest,
          ]),
        );
        expect(digests).toEqual(converter.expectedDigests(dag));
      },
    );

    test("all seven were there", () => expect(traces).toHaveLength(7));
  },
);
