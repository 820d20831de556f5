import { describe, expect, test } from "vitest";
import type { Json } from "../json/json.ts";
import { MAX_EDGES, MAX_NODES } from "./fields.ts";
import { MAX_PROBLEMS } from "./problems.ts";
import { checkDefinition, type DefinitionReport, readDefinition } from "./read.ts";

/** A definition of `count` nodes; each line is what one node adds to id and handler. */
function large(count: number, more: (index: number) => string): string {
  const lines = Array.from({ length: count }, (_, i) => `{"id":"n${i}","handler":"transform",${more(i)}}`);
  return `{"name":"large","nodes":[${lines.join(",")}]}`;
}

function read(text: string): DefinitionReport {
  return readDefinition(text, { format: "json" });
}

const parents = (i: number, count: number): number[] => Array.from({ length: Math.min(i, count) }, (_, k) => i - k - 1);
const list = (indexes: readonly number[]): string => `"dependencies":[${indexes.map((i) => `"n${i}"`).join(",")}]`;
const value = (text: string): string => `"config":{"value":"${text}"}`;

describe("the largest definitions are checked in one go", () => {
  test("100,000 nodes with 1,000,000 edges, each named by a template", () => {
    const text = large(
      MAX_NODES,
      (i) =>
        `${list(parents(i, 10))},${value(
          parents(i, 10)
            .map((p) => `{{ n${p} }}`)
            .join(""),
        )}`,
    );
    const report = read(text);
    expect(report.errors).toEqual([]);
    expect(report.workflow!.nodes).toHaveLength(MAX_NODES);
  });

  test("a chain of 100,000 nodes in which each reads the first, and one before the last", () => {
    const report = read(
      large(MAX_NODES, (i) => `${list(parents(i, 1))},${value(i > 1 ? `{{ n0 }}{{ n${i - 2} }}` : "")}`),
    );
    expect(report.errors).toEqual([]);
    expect(report.warnings).toEqual([]);
  });

  test("a chain of 100,000 conditions in which each reads the first", () => {
    const text = large(MAX_NODES, (i) => `${list(parents(i, 1))},"condition":"true",${value(i > 0 ? "{{ n0 }}" : "")}`);
    expect(read(text).warnings).toEqual([]);
  });

  test("layers with two roots, in which every node reads both", () => {
    const text = large(50_000, (i) =>
      i < 2 ? value("") : `${list(i % 2 === 0 ? [i - 2, i - 1] : [i - 3, i - 2])},${value("{{ n0 }}{{ n1 }}")}`,
    );
    expect(read(text).errors).toEqual([]);
  });

  test("one circle through 100,000 nodes, and everything dense around it", () => {
    const text = large(
      20_000,
      (i) => `${list(Array.from({ length: 40 }, (_, k) => (i + k * 37 + 1) % 20_000))},${value("{{ n0 }}")}`,
    );
    const report = read(text);
    expect(report.errors.map(({ code }) => code)).toContain("CYCLE_DETECTED");
    const chain = read(large(MAX_NODES, (i) => `${list([(i + MAX_NODES - 1) % MAX_NODES])},${value("")}`));
    expect(chain.errors).toHaveLength(1);
    expect(chain.errors[0]!.message).toContain("99980 more");
  });

  test("a node with a million dependencies", () => {
    const repeated = Array.from({ length: MAX_EDGES }, (_, i) => `n${i % 99_999}`);
    const nodes: Json[] = Array.from({ length: 99_999 }, (_, i) => ({ id: `n${i}`, handler: "input" }));
    const report = checkDefinition({
      name: "w",
      nodes: [...nodes, { id: "all", handler: "output", dependencies: repeated }],
    });
    expect(report.workflow!.nodes.at(-1)!.dependencies).toHaveLength(99_999);
    expect(report.warnings).toHaveLength(MAX_PROBLEMS);
    expect(report.omitted).toBe(MAX_EDGES - 99_999 - MAX_PROBLEMS);
  });
});

describe("definitions that are wrong everywhere", () => {
  test("a million unknown dependencies are counted, and the first thousand told", () => {
    const text = large(
      MAX_NODES,
      (i) => `"dependencies":[${Array.from({ length: 10 }, (_, k) => `"m${i}_${k}"`).join(",")}],${value("")}`,
    );
    const report = read(text);
    expect(report.errors).toHaveLength(MAX_PROBLEMS);
    expect(report.omitted).toBe(MAX_EDGES - MAX_PROBLEMS);
    expect(report.errors.at(-1)!.line).toBe(1);
  });

  test("100,000 unknown handlers, fields and references", () => {
    const text = large(MAX_NODES, (i) => `"frobnicate":1,${value(`{{ m${i}.x }}`)}`).replaceAll(
      "transform",
      "tranform",
    );
    expect(read(text).errors).toHaveLength(MAX_PROBLEMS);
  });

  test("100,000 references to nodes that do not come before", () => {
    const report = read(large(MAX_NODES, (i) => value(`{{ n${(i * 7 + 1) % MAX_NODES} }}`)));
    expect(report.errors).toHaveLength(MAX_PROBLEMS);
    expect(report.errors[0]!.code).toBe("TEMPLATE_REF_NOT_ANCESTOR");
  });
});

test("one more than the limit is refused", () => {
  const tooManyNodes = read(large(MAX_NODES + 1, () => value("")));
  expect(tooManyNodes.errors.map(({ code, path }) => [code, path])).toEqual([["TOO_MANY_NODES", "/nodes"]]);
  const edges = Array.from({ length: MAX_EDGES + 1 }, () => "a");
  const tooManyEdges = checkDefinition({
    name: "w",
    nodes: [
      { id: "a", handler: "input" },
      { id: "b", handler: "output", dependencies: edges },
    ],
  });
  expect(tooManyEdges.errors.map(({ code, path }) => [code, path])).toEqual([["TOO_MANY_EDGES", "/nodes"]]);
});
