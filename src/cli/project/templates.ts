import { SAMPLE } from "./sample.ts";

/** The files of a new project, by path. */
export type Template = (name: string, version: string) => Readonly<Record<string, string>>;

const GITIGNORE = "node_modules/\n.millrace/\n.env\n";

function packageJson(name: string, version: string, scripts: Readonly<Record<string, string>>): string {
  const dependencies = { millrace: `^${version}` };
  return `${JSON.stringify({ name, private: true, type: "module", scripts, dependencies }, null, 2)}\n`;
}

const WORKFLOW = `import { workflow } from "millrace";

// load ─┬─ ocr  ─┬─ merge: both in the middle run at the same time.
//       └─ meta ─┘
const wf = workflow("hello");

const load = wf.node("load", () => ({ pages: ["one", "two"], bytes: 1200 }));

const ocr = wf.node("ocr", { after: { load }, retry: { attempts: 3, backoff: "1s" } }, async ({ load, ctx }) => {
  ctx.log("reading", { pages: load.pages.length });
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { text: load.pages.join(" ") };
});

const meta = wf.node("meta", { after: { load }, timeout: "5s" }, ({ load }) => ({ size: load.bytes }));

const merge = wf.node("merge", { after: { ocr, meta } }, ({ ocr, meta }) => ({ text: ocr.text, size: meta.size }));

export default wf.output({ merge });
`;

const TEST = `import assert from "node:assert/strict";
import { test } from "node:test";
import { testRun } from "millrace/testing";
import hello from "./workflow.ts";

test("a page that cannot be read at first is read again, in a time of its own", async (t) => {
  const run = await testRun(hello, undefined, {
    mocks: { load: () => ({ pages: ["p1"], bytes: 7 }), ocr: () => ({ text: "p1" }) },
    failOnce: ["ocr"],
  });
  t.after(() => run.close());
  await run.advance("1s"); // the wait before the second attempt
  assert.equal(run.status, "COMPLETED");
  assert.equal(run.node("ocr").attempts, 2);
  assert.deepEqual(run.output, { merge: { text: "p1", size: 7 } });
});
`;

const HANDLERS = `// Handlers for workflow.yaml: functions by name. The config arrives with its templates resolved.
export const handlers = {
  "text.shout": (config, ctx) => {
    ctx.log("shouting", { chars: config.text.length });
    return { text: config.text.toUpperCase() };
  },
};
`;

const YAML = `${SAMPLE.replace("    config: {", '    config: {\n      shouted: "{{ shout.text }}",').replace("dependencies: [ocr, meta]", "dependencies: [ocr, meta, shout]")}  - { id: shout, handler: text.shout, dependencies: [load], config: { text: "{{ load.pages[0] }}" } }
`;

export const TEMPLATES: Readonly<Record<string, Template>> = {
  typescript: (name, version) => ({
    "workflow.ts": WORKFLOW,
    "workflow.test.ts": TEST,
    "package.json": packageJson(name, version, { start: "millrace dev", test: "node --test" }),
    ".gitignore": GITIGNORE,
  }),
  yaml: (name, version) => ({
    "workflow.yaml": YAML,
    "handlers.mjs": HANDLERS,
    "package.json": packageJson(name, version, {
      start: "millrace dev",
      check: "millrace validate workflow.yaml",
    }),
    ".gitignore": GITIGNORE,
  }),
};
