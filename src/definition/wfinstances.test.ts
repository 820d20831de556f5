import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import { readDefinition } from "./read.ts";
import { catalogue } from "./test-catalogue.ts";

const tool = new URL("../../../shared/tools/wfinstances-convert.mjs", import.meta.url);
const folder = new URL("../../../shared/data/wfinstances/", import.meta.url);
const present = existsSync(tool) && existsSync(folder);
if (!present) console.log("skipped: real traces, because ../shared is not there");

interface Converter {
  convert(trace: unknown, options: { keepIds: boolean; templates: boolean }): { dag: Json };
}

describe.skipIf(!present)("real workflow traces validate without a problem", () => {
  const traces = present ? readdirSync(folder).filter((name) => name.endsWith(".json")) : [];
  const handlers = catalogue({ simulate: {} });

  test.each(traces.flatMap((name) => [true, false].map((keepIds) => [name, keepIds] as const)))(
    "%s, own ids: %s",
    async (name, keepIds) => {
      const converter = (await import(tool.href)) as Converter;
      const trace: unknown = JSON.parse(readFileSync(new URL(name, folder), "utf8"));
      // Templates of the tool are paths, which need plain ids.
      const { dag } = converter.convert(trace, { keepIds, templates: !keepIds });
      const report = readDefinition(JSON.stringify(dag), { format: "json", handlers });
      expect([...report.errors, ...report.warnings]).toEqual([]);
      expect(report.workflow!.nodes.length).toBe((dag as { nodes: Json[] }).nodes.length);
    },
  );
});
