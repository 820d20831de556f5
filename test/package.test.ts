import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const FOLDER = mkdtempSync(join(tmpdir(), "millrace-package-"));
const PROJECT = join(FOLDER, "project");
const PATIENCE_MS = 600_000;

/** With the Node that runs the tests first on the path, so that programs find the same. */
function run(program: string, args: readonly string[], cwd: string): { status: number | null; output: string } {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`, NO_COLOR: "1" };
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, env, encoding: "utf8" });
  return { status, output: error === undefined ? stdout + stderr : String(error) };
}

function bin(name: string): string {
  return join(ROOT, "node_modules", ".bin", name);
}

let tarball = "";
/** Why the tarball could not be installed, though nothing is wrong with it: there is no registry, and no cache. */
let unreachable: string | undefined;

beforeAll(() => {
  const packed = run("npm", ["pack", "--pack-destination", FOLDER], ROOT);
  if (packed.status !== 0) throw new Error(packed.output);
  tarball = join(
    FOLDER,
    readdirSync(FOLDER).find((name) => name.endsWith(".tgz"))!,
  );

  mkdirSync(PROJECT);
  writeFileSync(join(PROJECT, "package.json"), JSON.stringify({ name: "empty", private: true, type: "module" }));
  // Without install scripts: nothing that runs needs one.
  const args = ["install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", tarball];
  const installed = run("npm", args, PROJECT);
  if (installed.status === 0) return;
  if (!/ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ENOTCACHED|network/.test(installed.output)) {
    throw new Error(installed.output);
  }
  unreachable = installed.output.split("\n").find((line) => line.includes("npm error")) ?? installed.output;
}, PATIENCE_MS);
afterAll(() => rmSync(FOLDER, { recursive: true, force: true }));

/** A test that needs the installed package, and says why if it cannot be had. */
function installedTest(name: string, check: () => void): void {
  test(name, { timeout: PATIENCE_MS }, ({ skip }) => {
    skip(unreachable !== undefined, `the packed tarball could not be installed: ${unreachable}`);
    check();
  });
}

function runScript(text: string): string {
  writeFileSync(join(PROJECT, "script.js"), text);
  const { status, output } = run(process.execPath, ["script.js"], PROJECT);
  expect(status, output).toBe(0);
  return output;
}

describe("the package", () => {
  test("is in order by publint", { timeout: PATIENCE_MS }, () => {
    const { status, output } = run(bin("publint"), ["run", tarball, "--strict"], ROOT);
    expect(status, output).toBe(0);
    expect(output).toContain("All good!");
  });

  test("has types that resolve wherever they can be asked for", { timeout: PATIENCE_MS }, () => {
    const { status, output } = run(bin("attw"), [tarball, "--profile", "esm-only", "--format", "ascii"], ROOT);
    expect(status, output).toBe(0);
    expect(output).toContain("🟢 (ESM)");
  });

  test("holds what runs and what documents it, and no tests", () => {
    const { output } = run("tar", ["-tzf", tarball], ROOT);
    const files = output.trim().split("\n");
    for (const wanted of [
      "dist/src/sdk/index.js",
      "dist/src/sdk/index.d.ts",
      "bin/millrace.js",
      "schema/workflow.json",
    ]) {
      expect(files).toContain(`package/${wanted}`);
    }
    expect(files).toContain("package/dist/src/drivers/redis/lua/commit.lua");
    expect(files.filter((file) => /\.test\.|\/test-|conformance/.test(file))).toEqual([]);
  });

  test("imports what is there once it is built", () => {
    const wrong: string[] = [];
    const dist = join(ROOT, "dist");
    for (const file of readdirSync(dist, { recursive: true, encoding: "utf8" })) {
      if (!file.endsWith(".js")) continue;
      // Imports come first; further down, the same words may stand in the text of a template.
      const head = /^(?:import [^;]*;\n)*/.exec(readFileSync(join(dist, file), "utf8"))![0];
      for (const [, target] of head.matchAll(/from "(\.[^"]*)"/g)) {
        if (!existsSync(join(dist, dirname(file), target!))) wrong.push(`${file} imports ${target}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  installedTest("needs no install script, neither its own nor of what it depends on", () => {
    const lock = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    expect(lock.packages["node_modules/millrace"]).toBeDefined();
    const withScripts = Object.entries(lock.packages).filter(([, entry]) => entry.hasInstallScript === true);
    expect(withScripts.map(([path]) => path)).toEqual([]);
  });

  installedTest("runs a workflow in plain JavaScript, in memory and on disk", () => {
    const output = runScript(`
      import { embedded, workflow } from "millrace";
      const wf = workflow("hello");
      const load = wf.node("load", () => ({ pages: ["one", "two"] }));
      const each = wf.map("each", { after: { load }, over: ({ load }) => load.pages }, (page) => page.toUpperCase());
      const merge = wf.node("merge", { after: { each } }, ({ each }) => each.join(" "));
      const hello = wf.output({ merge });
      for (const dataDir of [false, "data"]) {
        const engine = await embedded({ dataDir });
        console.log(JSON.stringify(await engine.run(hello)));
        await engine.close();
      }
    `);
    expect(
      output
        .trim()
        .split("\n")
        .filter((line) => line.startsWith("{")),
    ).toEqual(['{"merge":"ONE TWO"}', '{"merge":"ONE TWO"}']);
  });

  installedTest("runs a worker over HTTP, whose leases a thread keeps", () => {
    const output = runScript(`
      import { connect, embedded, worker, workflow } from "millrace";
      const wf = workflow("far");
      const far = wf.output({ pid: wf.node("pid", async () => { await new Promise((r) => setTimeout(r, 1_500)); return 1; }) });
      const server = await embedded({ dataDir: false, port: 0 });
      const remote = worker({ url: server.url, workflows: [far] });
      await remote.start();
      const client = connect({ url: server.url });
      console.log(JSON.stringify(await client.run(far)));
      await client.close();
      await remote.stop();
      await server.close();
    `);
    expect(output).toContain('{"pid":1}');
  });

  installedTest("tests a workflow in plain JavaScript", () => {
    const output = runScript(`
      import { workflow } from "millrace";
      import { testRun } from "millrace/testing";
      const wf = workflow("nap");
      const nap = wf.sleep("nap", { for: "1d" });
      const built = wf.output({ up: wf.node("up", { after: { nap } }, () => "awake") });
      const t = await testRun(built);
      await t.advance("1d");
      console.log(t.status, JSON.stringify(t.output));
      await t.close();
    `);
    expect(output).toContain('COMPLETED {"up":"awake"}');
  });

  installedTest("has a command", () => {
    const command = join(PROJECT, "node_modules", ".bin", "millrace");
    writeFileSync(join(PROJECT, "dag.json"), JSON.stringify({ name: "x", nodes: [{ id: "a", handler: "nonsense" }] }));
    const { status, output } = run(process.execPath, [command, "validate", "dag.json"], PROJECT);
    expect(status, output).toBe(3);
    expect(output).toContain("UNKNOWN_HANDLER");
  });

  installedTest("says what to install for a handler that needs more", () => {
    const nodes = [{ id: "a", handler: "pdf.text", config: { base64: "JVBERi0=" } }];
    writeFileSync(join(PROJECT, "pdf.json"), JSON.stringify({ name: "pdf", nodes }));
    const command = join(PROJECT, "node_modules", ".bin", "millrace");
    const { status, output } = run(process.execPath, [command, "run", "pdf.json"], PROJECT);
    expect(status, output).not.toBe(0);
    expect(output).toContain("npm i unpdf");
  });

  installedTest("type-checks in a project of its own, however modules are resolved", () => {
    writeFileSync(
      join(PROJECT, "typed.ts"),
      `import { embedded, workflow } from "millrace";
       import { testRun, type TestRun } from "millrace/testing";
       const wf = workflow("typed");
       const n = wf.node("n", () => 1);
       const built = wf.output({ n });
       export const run: Promise<TestRun<{ readonly n: number }>> = testRun(built);
       export const result: Promise<{ readonly n: number }> = embedded().then((engine) => engine.run(built));
       // @ts-expect-error the result has no such field
       export const wrong = result.then(({ m }) => m);`,
    );
    for (const [module, moduleResolution] of [
      ["nodenext", "nodenext"],
      ["esnext", "bundler"],
    ]) {
      const options = [
        "--noEmit",
        "--strict",
        "--target",
        "es2024",
        "--lib",
        "es2024,esnext.disposable,dom",
        "--types",
        "",
      ];
      const args = [...options, "--module", module!, "--moduleResolution", moduleResolution!, "typed.ts"];
      const { status, output } = run(bin("tsc"), args, PROJECT);
      expect(status, output).toBe(0);
    }
  });
});
