import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { dev, folder, getJson, millrace, postJson, cleanUp, serve } from "./program.ts";

afterAll(cleanUp);

interface Listed {
  readonly items: readonly { readonly execution_id: string; readonly workflow: string; readonly status: string }[];
}

interface Shown {
  readonly status: string;
  readonly output: unknown;
  readonly nodes: Readonly<
    Record<string, { readonly status: string; readonly attempt: number; readonly output: unknown }>
  >;
}

describe("millrace dev", () => {
  test("runs the sample where there is no workflow, and shows it on a page", async () => {
    const here = folder();
    const server = await dev([], { cwd: here });
    const [told] = await server.program.says(/ {2}hello #1 {3}completed in [\s\S]*?open \S+/);
    const [, id] = /\/runs\/(\S+)$/.exec(told)!;
    // How long each took, and which of them at the same time, is the machine's affair.
    expect(told.replaceAll(/ +\d+(\.\d+)? m?s/g, "   N").replaceAll(" ".repeat(3) + "(parallel)", "")).toBe(
      `  hello #1   completed in   N
    ✓ load   N
    ✓ ocr   N
    ✓ meta   N
    ✓ merge
  open ${server.url}/runs/${id}`,
    );
    const page = await (await fetch(`${server.url}/runs/${id}`)).text();
    expect(page).toContain("<svg");
    expect((await fetch(`${server.url}/docs`)).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  });

  test("runs again what is saved, tells what is wrong with it, and takes new handlers", async () => {
    const workflow = (text: string): string =>
      `name: mine\nnodes: [{ id: a, handler: up, config: { text: ${text} } }]\n`;
    const here = folder({
      "workflow.yaml": workflow("abc"),
      "handlers.mjs": "export const handlers = { up: (config) => config.text.toUpperCase() };\n",
    });
    const server = await dev([], { cwd: here });
    await server.program.says(/mine #1 {3}completed/);
    await server.program.says(/watching workflow\.yaml, handlers\.mjs – save to run again/);
    writeFileSync(join(here, "workflow.yaml"), workflow("def").replace("id: a,", "id: a, dependencies: [b],"));
    await server.program.says(/"a" depends on "b", which is not a node\./);
    writeFileSync(join(here, "workflow.yaml"), workflow("def"));
    await server.program.says(/mine #2 {3}completed/);
    writeFileSync(join(here, "handlers.mjs"), "export const handlers = { up: (config) => `<${config.text}>` };\n");
    await server.program.says(/mine #3 {3}completed/);
    const outputs: unknown[] = [];
    const { items } = await getJson<Listed>(`${server.url}/v1/executions`);
    for (const { execution_id: id } of items)
      outputs.push((await getJson<Shown>(`${server.url}/v1/executions/${id}`)).output);
    expect(outputs.toReversed()).toEqual([{ a: "ABC" }, { a: "DEF" }, { a: "<def>" }]);
    await server.stop();
  });

  test("runs a workflow in TypeScript as init writes it, where nothing is installed", async () => {
    const here = folder();
    const written = await millrace(["init", "hello"], { cwd: here });
    expect(written.stdout).toBe(
      "wrote hello/workflow.ts, hello/workflow.test.ts, hello/package.json, hello/.gitignore\n\nrun it:  cd hello && millrace dev\n",
    );
    const again = await millrace(["init", "hello"], { cwd: here });
    expect([again.code, again.stderr]).toEqual([
      5,
      expect.stringContaining("hello has workflow.ts, workflow.test.ts, package.json, .gitignore already."),
    ]);
    const project = join(here, "hello");
    const server = await dev([], { cwd: project });
    await server.program.says(/hello #1 {3}completed/);
    await server.program.says(/watching workflow\.ts/);
    writeFileSync(
      join(project, "workflow.ts"),
      readFileSync(join(project, "workflow.ts"), "utf8").replace("1200", "1300"),
    );
    await server.program.says(/hello #2 {3}completed/);
    const { items } = await getJson<Listed>(`${server.url}/v1/executions`);
    expect((await getJson<Shown>(`${server.url}/v1/executions/${items[0]!.execution_id}`)).output).toEqual({
      merge: { text: "one two", size: 1300 },
    });
    await server.stop();
    const once = await millrace(["run", "workflow.ts"], { cwd: project });
    expect([once.code, JSON.parse(once.stdout)]).toEqual([0, { merge: { text: "one two", size: 1300 } }]);
    const hook = pathToFileURL(join(import.meta.dirname, "offer-own-package.ts")).href;
    const tested = spawnSync(process.execPath, ["--import", hook, "--test"], {
      cwd: project,
      encoding: "utf8",
      env: { ...process.env, NODE_OPTIONS: "" },
    });
    expect(tested.stdout, tested.stderr).toMatch(/pass 1\b/);
    expect(tested.status).toBe(0);
  });

  test("runs again when something that is imported is saved, however far, and loads nothing else anew", async () => {
    const here = folder({
      "workflow.ts": `import { workflow } from "millrace";
import { word } from "./word.ts";
import { born } from "./kept.mjs";
const wf = workflow("importing");
export default wf.output({ said: wf.node("said", () => ({ word, born })) });
`,
      "word.ts": 'import { deep } from "./deep.mjs";\nexport const word: string = `<${deep}>`;\n',
      "deep.mjs": 'import required from "./required.cjs";\nexport const deep = `one ${required.n}`;\n',
      "required.cjs": 'module.exports = { n: require("./number.cjs") };\n',
      "number.cjs": "module.exports = 1;\n",
      "kept.mjs": "export const born = performance.now();\n",
      "handlers.mjs": 'import { deep } from "./deep.mjs";\nexport const handlers = { say: () => deep };\n',
      "by-name.yaml": "name: by-name\nnodes: [{ id: a, handler: say }]\n",
    });
    const server = await dev(["workflow.ts", "by-name.yaml"], { cwd: here });
    const lastOf = async (workflow: string): Promise<Shown> => {
      const { items } = await getJson<Listed>(`${server.url}/v1/executions?workflow=${workflow}`);
      return getJson<Shown>(`${server.url}/v1/executions/${items[0]!.execution_id}`);
    };
    const said = async (): Promise<unknown> => (await lastOf("importing")).output;
    await server.program.says(/watching /);
    const { said: first } = (await said()) as { said: { word: string; born: number } };
    expect(first.word).toBe("<one 1>");

    writeFileSync(join(here, "required.cjs"), 'module.exports = { n: require("./number.cjs") + 1 };\n');
    await server.program.says(/importing #2 {3}completed/);
    expect(await said()).toEqual({ said: { word: "<one 2>", born: first.born } });
    await server.program.says(/by-name #2 {3}completed/);
    expect((await lastOf("by-name")).output).toEqual({ a: "one 2" });

    // What it imports from now on is watched from now on.
    writeFileSync(join(here, "new.ts"), "export const deep: string = 'new';\n");
    writeFileSync(
      join(here, "word.ts"),
      'import { deep } from "./new.ts";\nexport const word: string = `<${deep}>`;\n',
    );
    await server.program.says(/importing #3 {3}completed/);
    expect(await said()).toEqual({ said: { word: "<new>", born: first.born } });
    // Looked for again until it is seen: the file may be saved before it is watched.
    const isNewer = async (): Promise<unknown> => {
      writeFileSync(join(here, "new.ts"), "export const deep: string = 'newer';\n");
      await new Promise((resolve) => setTimeout(resolve, 500));
      return said();
    };
    await expect.poll(isNewer, { timeout: 10_000 }).toEqual({ said: { word: "<newer>", born: first.born } });
    expect((await lastOf("by-name")).output).toEqual({ a: "one 2" });
    await server.stop();
  });

  test("runs the other template too", async () => {
    const here = folder();
    await millrace(["init", "--template", "yaml"], { cwd: here });
    expect((await millrace(["validate", "workflow.yaml"], { cwd: here })).code).toBe(0);
    expect((await millrace(["run", "workflow.yaml"], { cwd: here })).code).toBe(0);
    const server = await dev(["--ephemeral", "--no-watch"], { cwd: here });
    await server.program.says(/hello #1 {3}completed/);
    await server.stop();
  });

  test("says at once what a stop waits for, and takes the run up again at the next start", async () => {
    const here = folder({
      "handlers.mjs": `import { existsSync } from "node:fs";
        export const handlers = {
          long: async () => { while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 50)); return "done"; },
        };`,
      "workflow.yaml": "name: long\nnodes: [{ id: a, handler: long }]\n",
    });
    const first = await dev([], { cwd: here });
    const ids = async (url: string): Promise<Listed["items"]> => (await getJson<Listed>(`${url}/v1/executions`)).items;
    await expect.poll(async () => (await ids(first.url)).length).toBe(1);
    const [{ execution_id: id }] = (await ids(first.url)) as [Listed["items"][0]];
    const shown = async (url: string): Promise<Shown> => getJson(`${url}/v1/executions/${id}`);
    await expect.poll(async () => (await shown(first.url)).nodes["a"]!.status).toBe("RUNNING");
    first.program.child.kill("SIGINT");
    await first.program.says(
      /\nstopping: waits up to 30 s for 1 handler\. Ctrl-C again stops now\. What is not done by then goes on at the next start\.\n/,
    );
    first.program.child.kill("SIGINT");
    const { code, stdout } = await first.program.ended;
    expect([code, stdout]).toEqual([130, expect.not.stringContaining("watching")]);
    writeFileSync(join(here, "go"), "");
    const second = await dev(["--no-run"], { cwd: here });
    await expect.poll(async () => (await shown(second.url)).status, { timeout: 60_000 }).toBe("COMPLETED");
    await second.stop();
  }, 90_000);

  test("says who has the data when it is started twice, and shows the old runs when it is started again", async () => {
    const here = folder();
    const first = await dev([], { cwd: here });
    await first.program.says(/hello #1/);
    const { code, stderr } = await millrace(["dev", "--port", "0"], { cwd: here });
    expect(code).toBe(6);
    expect(stderr).toMatch(/millrace\.db is in use by process \d+ since \S+\. One process at a time can have it/);
    expect(stderr).toContain("STORE_LOCKED");
    expect((await first.stop()).code).toBe(0);
    const second = await dev(["--no-run"], { cwd: here });
    expect((await getJson<Listed>(`${second.url}/v1/executions`)).items).toMatchObject([
      { workflow: "hello", status: "COMPLETED" },
    ]);
    await second.stop();
  });
});

describe("a process that is killed in the middle of its work", () => {
  const DEFINITION = `name: work
nodes:
  - { id: a, handler: transform, config: { expression: "input.n * 2.0" } }
  - { id: b, handler: delay, dependencies: [a], config: { seconds: 0.3 } }
  - { id: c, handler: transform, dependencies: [a], config: { expression: "a.output + 1.0" } }
  - { id: out, handler: output, dependencies: [b, c], config: { n: "{{ c }}" } }
`;

  test("loses nothing: after kill -9 and a restart all executions end, with the right outputs", async () => {
    const here = folder({ "workflow.yaml": DEFINITION });
    const first = await dev(["--input", '{"n": 0}'], { cwd: here });
    await first.program.says(/work #1 {3}completed/);
    const inputs = Array.from({ length: 1_000 }, (_, n) => ({ n }));
    const { items } = await postJson<{ items: { execution_id: string }[] }>(
      `${first.url}/v1/workflows/work/executions`,
      { inputs },
    );
    expect(items).toHaveLength(1_000);
    await first.kill();

    const second = await dev(["--no-run"], { cwd: here });
    const [, open] = await second.program.says(/(\d+) executions go on from before/);
    expect(Number(open)).toBeGreaterThan(0);
    const ended = async (): Promise<number> => {
      const text = await (await fetch(`${second.url}/metrics`)).text();
      return Number(/millrace_executions_ended_total\{status="COMPLETED"\} (\d+)/.exec(text)?.[1] ?? 0);
    };
    await expect.poll(ended, { timeout: 90_000, interval: 500 }).toBe(Number(open));
    const outputs = await Promise.all(
      items.map(async ({ execution_id: id }) => (await getJson<Shown>(`${second.url}/v1/executions/${id}`)).output),
    );
    expect(outputs).toEqual(inputs.map(({ n }) => ({ n: n * 2 + 1 })));
    await second.stop();
  });

  test("hands its tasks back on SIGTERM: it is not ready first, and the attempt is not used up", async () => {
    const here = folder({
      "handlers.mjs": `import { existsSync } from "node:fs";
export const handlers = { long: async () => {
  while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 20));
  return "done";
} };`,
    });
    const store = `sqlite:${join(here, "m.db")}`;
    const args = ["--handlers", "handlers.mjs", "--grace", "4"];
    const first = await serve(store, args, { cwd: here });
    const definition = {
      name: "long",
      nodes: [{ id: "a", handler: "long", retry: { max_attempts: 1 } }],
    };
    const submitted = await postJson<{ execution_id: string }>(`${first.url}/v1/workflow?start=true`, { definition });
    await expect
      .poll(
        async () => (await getJson<Shown>(`${first.url}/v1/executions/${submitted.execution_id}`)).nodes["a"]!.status,
      )
      .toBe("RUNNING");
    const stopping = first.stop();
    await expect.poll(async () => (await fetch(`${first.url}/readyz`)).status).toBe(503);
    // Still served while it stops.
    expect((await fetch(`${first.url}/livez`)).status).toBe(200);
    expect((await stopping).code).toBe(0);
    writeFileSync(join(here, "go"), "");
    const second = await serve(store, args, { cwd: here });
    const shown = async (): Promise<Shown> => getJson(`${second.url}/v1/executions/${submitted.execution_id}`);
    await expect.poll(async () => (await shown()).status).toBe("COMPLETED");
    expect((await shown()).nodes["a"]).toMatchObject({ attempt: 1, output: "done" });
    await second.stop();
  });

  test("ends at once on the second interrupt", async () => {
    const here = folder({
      "handlers.mjs": "export const handlers = { long: () => new Promise((resolve) => setTimeout(resolve, 60_000)) };",
    });
    const server = await serve("memory:", ["--handlers", "handlers.mjs"], { cwd: here });
    const definition = { name: "long", nodes: [{ id: "a", handler: "long" }] };
    await postJson(`${server.url}/v1/workflow?start=true`, definition);
    server.program.child.kill("SIGINT");
    await server.program.says(/"asked to stop"/);
    server.program.child.kill("SIGINT");
    expect((await server.program.ended).code).toBe(130);
  });
});

describe("the log of a server", () => {
  test("is JSON, one line for each change of a node, with ids, whatever users write", async () => {
    const server = await serve("memory:");
    const name = "evil\u001B[31m name ${jndi:ldap://x}";
    const definition = {
      name,
      nodes: [
        { id: "a", handler: "transform", config: { value: 1 } },
        {
          id: "b",
          handler: "http",
          dependencies: ["a"],
          config: { url: "http://10.0.0.1/" },
          retry: { max_attempts: 1 },
        },
      ],
    };
    const refused = await postJson<{ code: string }>(`${server.url}/v1/workflow?start=true`, definition);
    expect(refused.code).toBe("INVALID_DEFINITION");
    const submitted = await postJson<{ execution_id: string }>(`${server.url}/v1/workflow?start=true`, {
      ...definition,
      name: "fine",
    });
    await server.program.says(/"status":"FAILED","seq":\d+,"at":"[^"]+","reason"/);
    const { stdout } = await server.stop();
    const lines = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const told = lines
      .filter(({ execution_id: id }) => id === submitted.execution_id)
      .map(({ node_id: node, status }) => [node, status]);
    expect(told).toEqual([
      [undefined, "RUNNING"],
      ["a", "QUEUED"],
      ["a", "COMPLETED"],
      ["b", "QUEUED"],
      ["b", "FAILED"],
      [undefined, "FAILED"],
    ]);
    expect(lines.at(-1)).toMatchObject({ level: "info", env: "dev", msg: "stopped" });
  });
});
