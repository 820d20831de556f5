import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compile } from "./compile.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const PAGE = readFileSync(join(ROOT, "docs/sdk.md"), "utf8");
const FOLDER = mkdtempSync(join(tmpdir(), "millrace-docs-"));

/** The examples of the page, each with what it prints. */
const EXAMPLES = [...PAGE.matchAll(/```ts\n(\/\/ file: (\S+)\n[\s\S]*?)```(?:\s*```text\n([\s\S]*?)```)?/g)].map(
  ([, text, file, prints]) => ({ file: file!, text: text!, prints }),
);

beforeAll(() => {
  symlinkSync(join(ROOT, "node_modules"), join(FOLDER, "node_modules"));
  writeFileSync(join(FOLDER, "package.json"), JSON.stringify({ type: "module" }));
  for (const { file, text } of EXAMPLES) writeFileSync(join(FOLDER, file), text);
});
afterAll(() => rmSync(FOLDER, { recursive: true }));

describe("docs/sdk.md", () => {
  test("has no example that is not tested", () => {
    expect(PAGE.match(/```(ts|js|typescript)/g)).toHaveLength(EXAMPLES.length);
  });

  test("has examples that type-check", () => {
    const { errors } = compile(Object.fromEntries(EXAMPLES.map(({ file, text }) => [file, text])));
    expect(Object.fromEntries(errors)).toEqual(Object.fromEntries(EXAMPLES.map(({ file }) => [file, []])));
  });

  test.each(EXAMPLES.filter(({ prints }) => prints !== undefined).map(({ file, prints }) => [file, prints!] as const))(
    "%s prints what the page says",
    (file, prints) => {
      const hook = pathToFileURL(join(import.meta.dirname, "resolve-millrace.ts")).href;
      const args = ["--no-warnings", "--import", hook, file];
      const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: FOLDER, encoding: "utf8" });
      expect({ stdout, stderr }).toEqual({ stdout: prints, stderr: "" });
    },
  );

  test("names every kind of node", () => {
    const source = readFileSync(join(ROOT, "src/sdk/builder.ts"), "utf8");
    const methods = new Set([...source.matchAll(/^ {2}(\w+)[<(]/gm)].map(([, name]) => name!));
    for (const method of methods) expect(PAGE).toContain(`wf.${method}(`);
  });
});
