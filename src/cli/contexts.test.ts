import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Workflow } from "../definition/workflow.ts";
import type { Terminal } from "./call.ts";
import { contextsFile, readContexts, withContext } from "./contexts.ts";
import { main } from "./main.ts";
import { workflowChanges } from "./verbs/workflow-diff.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "millrace-contexts-"));
});
afterEach(() => rmSync(home, { recursive: true }));

async function millrace(argv: readonly string[], env: Record<string, string> = {}): Promise<[number, string, string]> {
  let [out, err] = ["", ""];
  const terminal = {
    out: (text: string) => void (out += text),
    err: (text: string) => void (err += text),
    directory: home,
    env: { HOME: home, ...env },
    style: (_: unknown, text: string) => text,
  } as unknown as Terminal;
  return [await main(argv, terminal), out, err];
}

test("a server is given a name, used, and forgotten", async () => {
  const add = ["context", "add", "prod", "--url", "https://example.org"];
  expect((await millrace(add, { MILLRACE_API_KEY: "secret" }))[0]).toBe(0);
  const env = { HOME: home };
  expect(statSync(contextsFile(env)).mode & 0o777).toBe(0o600);
  expect(withContext(env, undefined, false)).toEqual(env);
  expect((await millrace(["context", "use", "prod"]))[1]).toBe("commands go to prod\n");
  expect(withContext(env, undefined, false)).toMatchObject({
    MILLRACE_URL: "https://example.org",
    MILLRACE_API_KEY: "secret",
  });
  const [, listed] = await millrace(["context", "--json"]);
  expect(JSON.parse(listed)).toMatchObject({
    items: [
      { name: "local", current: false },
      { name: "prod", url: "https://example.org", current: true },
    ],
  });
  expect(listed).not.toContain("secret");
  await millrace(["context", "rm", "prod"]);
  expect(readContexts(env)).toEqual({ current: "local", contexts: {} });
});

test("the current one never lends its key to a server that was named otherwise", async () => {
  await millrace(["context", "add", "prod", "--url", "https://example.org"], { MILLRACE_API_KEY: "secret" });
  await millrace(["context", "use", "prod"]);
  const other = { HOME: home, MILLRACE_URL: "http://elsewhere" };
  expect(withContext(other, undefined, false)).toEqual(other);
  expect(withContext({ HOME: home }, undefined, true)).toEqual({ HOME: home });
  expect(withContext(other, "prod", false)).toMatchObject({ MILLRACE_URL: "https://example.org" });
  expect(withContext(other, "local", false)["MILLRACE_URL"]).toBeUndefined();
});

test.each<[string, readonly string[], number, RegExp]>([
  ["an unknown name", ["context", "use", "nowhere"], 4, /no context "nowhere"[^]*one of: local/],
  ["the same with a command", ["ls", "--context", "nowhere"], 4, /no context "nowhere"/],
  ["a name that is no name", ["context", "add", "a b", "--url", "http://x"], 2, /must be called/],
  ["the name of this machine", ["context", "add", "local", "--url", "http://x"], 2, /must be called/],
])("%s is refused", async (_, argv, code, told) => {
  const [exit, , err] = await millrace(argv);
  expect([exit, err]).toEqual([code, expect.stringMatching(told)]);
});

test("a file that somebody else has written is told", async () => {
  const file = join(home, "contexts.json");
  writeFileSync(file, "{}");
  const [exit, , err] = await millrace(["context"], { MILLRACE_CONTEXTS: file });
  expect([exit, err]).toEqual([2, expect.stringContaining("is not what `millrace context` has written")]);
});

test("two versions differ node by node and field by field", () => {
  const before = { name: "w", nodes: [{ id: "a", config: { x: 1, y: { z: [1] } } }, { id: "gone" }] };
  const after = {
    name: "w",
    on_error: "continue",
    nodes: [{ id: "a", config: { x: 2, y: { z: [1] } } }, { id: "new" }],
  };
  expect(workflowChanges(before as unknown as Workflow, after as unknown as Workflow)).toEqual([
    { path: "/on_error", before: null, after: "continue" },
    { path: "/nodes/a/config/x", before: 1, after: 2 },
    { path: "/nodes/gone", before: {}, after: null },
    { path: "/nodes/new", before: null, after: {} },
  ]);
  expect(workflowChanges(before as unknown as Workflow, before as unknown as Workflow)).toEqual([]);
});
