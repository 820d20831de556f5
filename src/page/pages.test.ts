import { describe, expect, test } from "vitest";
import { checkDefinition } from "../definition/read.ts";
import { executionPage, type ExecutionView, type PageExecution } from "./execution-page.ts";
import { executionsPage } from "./executions-page.ts";
import { markup } from "./html.ts";

/** What somebody may have written into a name, an input or an error. */
const EVIL = `<script>alert("1")</script>'"&<img src=x onerror=alert(1)> javascript:alert(1) \u0000\uD800\u202E`;

const TIMES = { started_at: "2026-01-01T00:00:00.000Z", finished_at: "2026-01-01T00:00:01.500Z" };

const EXECUTION: PageExecution = {
  execution_id: "0198-1",
  workflow: EVIL,
  version: 1,
  status: "FAILED",
  generation: 2,
  input: { [EVIL]: EVIL },
  output: null,
  error: { code: "HANDLER_ERROR", message: EVIL, node_id: "a" },
  created_at: "2026-01-01T00:00:00.000Z",
  ...TIMES,
  nodes: {
    a: {
      status: "FAILED",
      attempt: 3,
      error: { code: "X", message: EVIL },
      reason: null,
      child_execution_id: null,
      ...TIMES,
    },
    b: {
      status: "SKIPPED",
      attempt: 0,
      error: null,
      reason: "upstream_failed",
      child_execution_id: "0198-2",
      started_at: null,
      finished_at: null,
    },
  },
};

const workflow = checkDefinition({
  name: "w",
  nodes: [
    { id: "a", handler: "transform", config: { value: 1 } },
    { id: "b", handler: "output", dependencies: ["a"] },
  ],
}).workflow!;

function view(more: Partial<ExecutionView> = {}): ExecutionView {
  return { execution: EXECUTION, workflow, why: [], events: [], lines: [], isLive: false, ...more };
}

describe("pages", () => {
  test.each([
    ["PENDING", ["trigger 0198-1", "cancel 0198-1"]],
    ["RUNNING", ["watch 0198-1", "pause 0198-1", "cancel 0198-1"]],
    ["PAUSED", ["resume 0198-1", "cancel 0198-1"]],
    ["COMPLETED", ["rerun 0198-1 --from NODE", "export 0198-1"]],
    ["FAILED", ["retry 0198-1", "rerun 0198-1 --from NODE", "export 0198-1"]],
  ])("name the commands that are possible while it is %s", (status, commands) => {
    const page = executionPage(view({ execution: { ...EXECUTION, status } }));
    const told = [...page.matchAll(/<li><code>millrace ([^<]*)<\/code><\/li>/g)].map(([, command]) => command);
    expect(told).toEqual(commands);
  });

  test("show a batch by what it came to, though as an execution it has completed", () => {
    const batch = { status: "COMPLETED", batch_status: "PARTIAL" };
    expect(executionPage(view({ execution: { ...EXECUTION, ...batch } }))).toMatch(/<h1>.*partial<\/span><\/h1>/);
    const { execution_id, workflow, created_at, finished_at } = EXECUTION;
    const page = executionsPage({
      items: [{ execution_id, workflow, created_at, finished_at, ...batch }],
      next: null,
      status: undefined,
      reviews: [],
      deadLetters: { count: 0, hasMore: false },
      isIncomplete: false,
    });
    expect(page).toMatch(/<td><span class="state partial">/);
  });

  test("show what users wrote as text, and hold no script", () => {
    const event = { seq: 1, type: EVIL, at: "2026-01-01T00:00:00.000Z", node_id: EVIL, data: {} };
    const line = { at: "2026-01-01T00:00:00.000Z", node_id: EVIL, attempt: 1, message: EVIL, fields: { [EVIL]: EVIL } };
    const lines = [line, { ...line, level: "error" as const }];
    const why = [{ node_id: EVIL, reason: "queued", sentence: EVIL, details: {} }];
    const item = { execution_id: EVIL, workflow: EVIL, status: EVIL, created_at: EVIL, finished_at: null };
    const review = { id: EVIL, title: EVIL, node_id: "r", execution_id: EVIL };
    const pages = [
      executionPage(view({ events: [event], why, lines })),
      executionsPage({
        items: [item],
        next: EVIL,
        status: EVIL,
        reviews: [review],
        deadLetters: { count: 2, hasMore: false },
        isIncomplete: true,
      }),
    ];
    for (const page of pages) {
      expect(page).not.toMatch(/<script|<img|href="javascript/i);
      expect(page.isWellFormed() && !page.includes("\u0000")).toBe(true);
      // It would turn round the state that stands after a name.
      expect(page).not.toContain("\u202E");
      expect(page).toContain("&lt;script&gt;");
    }
  });

  test("show the last lines that handlers logged, and where they threw what with its lines", () => {
    const line = { at: "2026-01-01T00:00:00.000Z", node_id: "a", attempt: 1, message: "reading", fields: { n: 1 } };
    const many = Array.from({ length: 150 }, (_, n) => ({ ...line, message: `line ${n}.` }));
    const stack = "TypeError: no\n    at a (file:///w.ts:3:5)";
    const page = executionPage(view({ lines: [...many, { ...line, attempt: 2, level: "error", message: stack }] }));
    expect(page).toContain("The last 100 of 151");
    expect(page).not.toContain("line 50.");
    expect(page).toContain("line 51.  {&quot;n&quot;:1}");
    expect(page).toMatch(/<code>a<\/code> attempt 2<\/td>\n<td><pre tabindex="0">TypeError: no\n {4}at a/);
    expect(executionPage(view())).toContain("have logged nothing");
    expect(executionPage(view({ lines: undefined }))).toContain("<code>millrace logs 0198-1</code>");
  });

  test("say each state in a word, once in the picture and once in the table", () => {
    const page = executionPage(view());
    expect(page).toContain("✗ failed · transform");
    expect(page).toMatch(/<tr id="node-b">[\s\S]*<span aria-hidden="true">–<\/span> skipped[\s\S]*upstream_failed/);
    expect(page).toContain('<a href="/runs/0198-2">child execution</a>');
  });

  test("come back by themselves only if they were asked to, and while there is something to come", () => {
    const running = { ...EXECUTION, status: "RUNNING", error: null };
    expect(executionPage(view({ execution: running }))).not.toContain("http-equiv");
    expect(executionPage(view({ execution: running, isLive: true }))).toContain(
      '<meta http-equiv="refresh" content="2">',
    );
    expect(executionPage(view({ isLive: true }))).not.toContain("http-equiv");
  });

  test("say what people call a node beside its id", () => {
    const named = checkDefinition({
      name: "w",
      nodes: [
        { id: "a", name: "Read <it>", handler: "transform", config: { value: 1 } },
        { id: "b", name: "b", handler: "output", dependencies: ["a"] },
      ],
    });
    const page = executionPage(view({ workflow: named.workflow! }));
    expect(page).toContain('<code>a</code></a> <span class="soft">Read &lt;it&gt;</span>');
    expect(page).toContain("<code>b</code></a></th>");
  });

  test("say how many reasons are left out", () => {
    const why = Array.from({ length: 53 }, (_, i) => ({
      node_id: `n${i}`,
      reason: "parents",
      sentence: "It waits.",
      details: {},
    }));
    const execution = { ...EXECUTION, status: "RUNNING", error: null };
    expect(executionPage(view({ execution, why }))).toContain("<p>And 3 more: <code>millrace why 0198-1</code></p>");
    expect(executionPage(view({ execution, why: why.slice(3) }))).not.toContain("more: <code>millrace why");
  });

  test("draw no picture that nobody could read", () => {
    const many = {
      ...workflow,
      nodes: Array.from({ length: 401 }, (_, i) => ({ ...workflow.nodes[0]!, id: `n${i}` })),
    };
    expect(executionPage(view({ workflow: many }))).toContain("401 nodes are too many for a picture here");
  });

  test("escape by default", () => {
    expect(markup`<p title="${'"'}">${"<b>"}${undefined}${false}${3}${[markup`<i>`, markup`</i>`]}</p>`.text).toBe(
      '<p title="&quot;">&lt;b&gt;3<i></i></p>',
    );
  });

  test("show what the SDK adds to a node only where it is what goes wrong", () => {
    const built = { name: "p", nodes: [{ id: "a", handler: "transform", config: { value: 1 } }] };
    const parts = ["a#when", "a#title"].map((id) => ({ ...built.nodes[0]!, id, "x-millrace-part-of": "a" }));
    const { workflow: folded } = checkDefinition({ ...built, nodes: [...built.nodes, ...parts] });
    const { a } = EXECUTION.nodes!;
    const nodes = { a: a!, "a#when": { ...a!, status: "COMPLETED" }, "a#title": { ...a!, status: "FAILED" } };
    const text = executionPage(view({ execution: { ...EXECUTION, nodes }, workflow: folded! }));
    expect([text.includes("a#when"), text.includes("a#title")]).toEqual([false, true]);
  });
});
