import { describe, expect, test } from "vitest";
import { checkDefinition } from "../definition/read.ts";
import type { Workflow } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";
import { arrange } from "./arrange.ts";
import { diagramOf } from "./diagram.ts";
import { drawDot } from "./draw-dot.ts";
import { drawMermaid } from "./draw-mermaid.ts";
import { drawSvg } from "./draw-svg.ts";
import { drawText } from "./draw-text.ts";
import { partsOf, withParts } from "./fold-parts.ts";
import { shownDuration } from "./states.ts";

function workflow(definition: Json): Workflow {
  const { workflow, errors } = checkDefinition(definition);
  expect(errors).toEqual([]);
  return workflow!;
}

const DIAMOND = workflow({
  name: "diamond",
  nodes: [
    { id: "load", handler: "input" },
    { id: "ocr", handler: "delay", dependencies: ["load"], config: { seconds: 1 } },
    { id: "meta", handler: "delay", dependencies: ["load"], config: { seconds: 1 }, condition: "input.n > 1.0" },
    { id: "merge", handler: "output", dependencies: ["ocr", { id: "meta", on: "done" }] },
  ],
});

/** Everything a name may do to a picture. The format allows no such ids, but an old journal or another tool might. */
const HOSTILE = '"]<script>alert(1)</script>&\n\u0000';

describe("a drawing", () => {
  const diagram = diagramOf(DIAMOND);

  test("puts every node behind all that it waits for", () => {
    expect(diagram.levels).toEqual([[0], [1, 2], [3]]);
    for (const { from, to } of diagram.edges) expect(diagram.nodes[from]!.level).toBeLessThan(diagram.nodes[to]!.level);
  });

  test("reads as text", () => {
    expect(drawText(diagram)).toBe(`diamond   4 nodes · 4 dependencies · 3 levels

level 1
  load    input

level 2
  ocr     delay    after load
  meta    delay    after load · if input.n > 1.0

level 3
  merge   output   after ocr, meta (done)
`);
  });

  test("reads as text with states", () => {
    const states: Record<string, string> = { load: "COMPLETED", ocr: "RUNNING", meta: "SKIPPED" };
    const text = drawText(diagram, (id) => states[id]);
    expect(text).toContain("  ✓ completed  load    input\n");
    expect(text).toContain("  – skipped    meta    delay    after load · if input.n > 1.0\n");
    expect(text).toContain("  · pending    merge   output   after ocr, meta (done)\n");
  });

  test("is valid Mermaid and DOT in its names", () => {
    expect(drawMermaid(diagram)).toBe(`flowchart LR
  n0["load<br/>input"]
  n1["ocr<br/>delay"]
  n2["meta<br/>delay<br/>if input.n #62; 1.0"]
  n3["merge<br/>output"]
  n0 --> n1
  n0 --> n2
  n1 --> n3
  n2 -. done .-> n3
`);
    expect(drawDot(diagram)).toContain('  n2 -> n3 [style=dashed, label="done"];\n');
  });

  test("takes no name for markup", () => {
    const hostile = { ...diagram, name: HOSTILE, nodes: diagram.nodes.map((node) => ({ ...node, id: HOSTILE })) };
    const svg = drawSvg(hostile, { statusOf: () => HOSTILE, href: () => `/x?${HOSTILE}` });
    expect(svg).not.toContain("<script>");
    expect(svg).not.toContain('"]');
    expect(svg).not.toContain("\u0000");
    expect(drawMermaid(hostile)).not.toContain('"]<');
    expect(drawDot(hostile).split("\n")).toHaveLength(drawDot(diagram).split("\n").length);
  });

  test("says each state in a word, not by colour alone", () => {
    expect(drawSvg(diagram, { statusOf: () => "FAILED" })).toContain("✗ failed");
  });

  test("orders a level by what its nodes come from, so that edges cross little", () => {
    const crossed = diagramOf(
      workflow({
        name: "w",
        nodes: [
          { id: "a", handler: "input" },
          { id: "b", handler: "delay", config: { seconds: 0 } },
          { id: "b2", handler: "delay", dependencies: ["b"], config: { seconds: 0 } },
          { id: "a2", handler: "delay", dependencies: ["a"], config: { seconds: 0 } },
        ],
      }),
    );
    const { row } = arrange(crossed);
    expect(row[3]).toBeLessThan(row[2]!);
  });

  test("of many nodes is made in one piece", () => {
    const nodes = Array.from({ length: 5_000 }, (_, i) => ({
      id: `n${i}`,
      handler: "delay",
      config: { seconds: 0 },
      dependencies: i === 0 ? [] : [`n${Math.floor((i - 1) / 3)}`],
    }));
    const svg = drawSvg(diagramOf(workflow({ name: "tree", nodes })));
    expect(svg.match(/<rect/g)).toHaveLength(5_000);
  });

  test.each([
    [0.4, "0 ms"],
    [999.4, "999 ms"],
    [1_500, "1.5 s"],
    [61_000, "1 min 1 s"],
    [3_600_000, "1 h 0 min"],
    [90_000_000, "1 d 1 h"],
  ])("shows %d ms as %s", (ms, shown) => {
    expect(shownDuration(ms)).toBe(shown);
  });
});

describe("what the SDK adds to a node", () => {
  const part = (id: string, of: string, more: object): object => ({
    id,
    handler: "step",
    "x-millrace-part-of": of,
    ...more,
  });
  const built = checkDefinition(
    {
      name: "parts",
      nodes: [
        { id: "load", handler: "step" },
        part("flag#when", "flag", { dependencies: ["load"] }),
        part("flag#title", "flag", { dependencies: ["flag#when"], condition: 'nodes["flag#when"].output' }),
        { id: "flag", handler: "step", dependencies: ["flag#title"], condition: 'nodes["flag#when"].output' },
        part("flag#rejected", "flag", { dependencies: ["flag"] }),
        { id: "last", handler: "step", dependencies: ["flag", { id: "load", on: "done" }], condition: "input.n > 1.0" },
        part("lost", "nobody", {}),
      ],
    } as Json,
    { handlers: { get: () => ({ engine: false }), names: () => [], allowMissing: true } },
  ).workflow!;

  test("is drawn into it, with what it waits for", () => {
    const diagram = diagramOf(built);
    const ids = diagram.nodes.map(({ id }) => id);
    expect(ids).toEqual(["load", "flag", "last", "lost"]);
    expect(diagram.edges.map(({ from, to, on }) => [ids[from], ids[to], on])).toEqual([
      ["load", "flag", "completed"],
      ["flag", "last", "completed"],
      ["load", "last", "done"],
    ]);
    expect(diagram.nodes.map(({ condition }) => condition)).toEqual([
      undefined,
      "its function says so",
      "input.n > 1.0",
      undefined,
    ]);
    expect(drawText(diagram)).not.toContain("#");
  });

  test.each<[string, string, string]>([
    ["PENDING", "RUNNING", "RUNNING"],
    ["PENDING", "COMPLETED", "PENDING"],
    ["SKIPPED", "FAILED", "FAILED"],
    ["COMPLETED", "COMPLETED", "COMPLETED"],
    ["RUNNING", "COMPLETED", "RUNNING"],
  ])("shows: itself %s with a part that is %s is %s", (own, of, shown) => {
    const statusOf = withParts(partsOf(built), (id) => (id === "flag" ? own : id === "flag#when" ? of : "COMPLETED"));
    expect([statusOf("flag"), statusOf("load")]).toEqual([shown, "COMPLETED"]);
  });
});
