import { existsSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { asyncBufferFromFile, parquetReadObjects } from "hyparquet";
import { afterAll, describe, expect, test } from "vitest";
import { cleanUp, folder, millrace, serve, start } from "./program.ts";

afterAll(cleanUp);

const HANDLERS = `import { existsSync, appendFileSync } from "node:fs";
export const handlers = {
  work: async ({ n }) => {
    appendFileSync("calls", n + "\\n");
    while (existsSync("wait") && n > 4) await new Promise((go) => setTimeout(go, 10));
    if (existsSync("broken") && n % 10 === 3) throw new Error("no " + n);
    return n * 2;
  },
};
`;
const WORKFLOW = `name: double
input_schema: { type: object, required: [n], properties: { n: { type: number } } }
nodes:
  - { id: a, handler: work, config: { n: "{{ input.n }}" }, retry: { max_attempts: 1 } }
  - { id: out, handler: output, dependencies: [a], config: { twice: "{{ a }}" } }
`;
const items = (count: number): string => Array.from({ length: count }, (_, n) => `{"n": ${n}}\n`).join("");
const args = ["batch", "run", "wf.yaml", "--input", "items.jsonl", "-o", "out.jsonl", "--handlers", "handlers.mjs"];

interface Result {
  readonly index: number;
  readonly status: string;
  readonly execution_id: string;
  readonly output: unknown;
  readonly error: { readonly code: string; readonly message: string } | null;
}

function results(here: string): Result[] {
  const lines = readFileSync(join(here, "out.jsonl"), "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Result).sort((a, b) => a.index - b.index);
}

/** The rows of a Parquet file, in the order of the items. */
async function table(file: string): Promise<{ readonly index: bigint }[]> {
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) });
  return (rows as { readonly index: bigint }[]).sort((a, b) => Number(a.index - b.index));
}

function project(count: number, more: Readonly<Record<string, string>> = {}): string {
  return folder({ "wf.yaml": WORKFLOW, "handlers.mjs": HANDLERS, "items.jsonl": items(count), ...more });
}

describe("batch run", () => {
  test("outlives a promise that a handler forgot, and so does a run", async () => {
    const handlers = `export const handlers = {
  work: async ({ n }) => {
    if (n === 3) void Promise.reject(new Error("forgotten"));
    await new Promise((go) => setTimeout(go, 20));
    return n * 2;
  },
};
`;
    const here = project(6, { "handlers.mjs": handlers });
    const done = await millrace([...args, "--concurrency", "2"], { cwd: here });
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining("6 of 6 completed")]);
    const run = await millrace(["run", "wf.yaml", "--handlers", "handlers.mjs", "-i", '{"n": 3}'], { cwd: here });
    expect([run.code, run.stderr]).toEqual([0, expect.stringContaining("forgotten")]);
  });

  test("ends where only handlers are waited for that nobody can bring, and goes on with them", async () => {
    const map = "{ items: [1, 2], handler: other, config: { n: '{{ item }}' } }";
    const workflow = `name: some
nodes:
  - { id: a, handler: work, condition: "input.n % 3 == 0", config: { n: "{{ input.n }}" } }
  - { id: b, handler: other, condition: "input.n % 3 == 1", config: { n: "{{ input.n }}" } }
  - { id: m, handler: map, condition: "input.n % 3 == 2", config: ${map} }
  - { id: p, handler: delay, config: { seconds: 0.2 } }
`;
    const other = `export const handlers = { other: async ({ n }) => n * 3 };`;
    const here = project(6, { "wf.yaml": workflow, "other.mjs": other });
    const left = await millrace([...args, "--allow-missing-handlers"], { cwd: here });
    expect(left.code).toBe(1);
    expect(left.stderr).toMatch(
      /b-[\w-]+ ends here: what is left of it would wait for ever, as nobody brings "other"\.\n {2}hint: .*--handlers FILE/,
    );
    const done = await millrace([...args, "--handlers", "other.mjs"], { cwd: here });
    expect([done.code, done.stderr]).toEqual([0, expect.stringMatching(/^resuming b-[^]*: 6 of 6 completed\n/)]);
    expect(results(here).map(({ output }) => (output as Record<string, unknown>)["m"])).toEqual([
      undefined,
      undefined,
      [3, 6],
      undefined,
      undefined,
      [3, 6],
    ]);
  });

  test("has a result for every item, and tries again what failed", async () => {
    const here = project(60, { broken: "" });
    const first = await millrace([...args, "--concurrency", "20"], { cwd: here });
    expect([first.code, first.stdout]).toEqual([9, ""]);
    expect(first.stderr).toMatch(/: 54 of 60 completed, 6 did not\n/);
    const told = results(here);
    expect(told.map(({ index }) => index)).toEqual(Array.from({ length: 60 }, (_, i) => i));
    expect(told[7]).toMatchObject({ status: "COMPLETED", output: { twice: 14 }, error: null });
    expect(told[13]).toMatchObject({ status: "FAILED", output: null, error: { code: "CHILD_FAILED" } });
    expect(told[13]!.error!.message).toContain("no 13");

    rmSync(join(here, "broken"));
    const second = await millrace([...args, "--retry-failed", "--json"], { cwd: here });
    expect(second.code).toBe(0);
    expect(JSON.parse(second.stdout)).toMatchObject({ total: 60, completed: 60, failed: 0 });
    expect(results(here).map(({ output }) => output)).toEqual(Array.from({ length: 60 }, (_, n) => ({ twice: n * 2 })));
    // What had completed was not done again.
    expect(readFileSync(join(here, "calls"), "utf8").trimEnd().split("\n")).toHaveLength(66);
  });

  test("goes on where it was after kill -9, by the same command", async () => {
    const here = project(120, { wait: "" });
    const killed = start([...args, "--concurrency", "10"], { cwd: here });
    // Some are done, some are under way, most have not begun.
    while (!existsSync(join(here, "calls")) || readFileSync(join(here, "calls"), "utf8").split("\n").length < 10) {
      await sleep(10);
    }
    killed.child.kill("SIGKILL");
    await killed.ended;
    // As if it had died while it wrote.
    writeFileSync(join(here, "out.jsonl"), '{"index":0,"status":"COMPLETED","output":1}\n{"index":1,"sta');
    rmSync(join(here, "wait"));
    // Another time is not another input.
    utimesSync(join(here, "items.jsonl"), 1, 1);
    const { code, stderr } = await millrace([...args, "--concurrency", "20"], { cwd: here });
    expect([code, stderr]).toEqual([
      0,
      expect.stringMatching(/^resuming b-\S+, with 10 items at a time as it began: --concurrency is for a new one$/m),
    ]);
    const told = results(here);
    expect(told.map(({ index }) => index)).toEqual(Array.from({ length: 120 }, (_, i) => i));
    expect(told.every(({ index, output }) => (output as { twice: number }).twice === index * 2)).toBe(true);
  });

  test("is begun anew when it was finished, but does not write over the results of another input", async () => {
    const here = project(3);
    expect((await millrace(args, { cwd: here })).code).toBe(0);
    const ids = (): readonly string[] => results(here).map((one) => one.execution_id);
    const first = ids();
    expect((await millrace(args, { cwd: here })).code).toBe(0);
    const second = ids();
    expect(second).not.toEqual(first);

    writeFileSync(join(here, "items.jsonl"), items(5));
    const refused = await millrace(args, { cwd: here });
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(
        /^millrace: out\.jsonl has the results of another input, of the batch b-\S+\.\n {2}hint: .*--fresh/,
      ),
    ]);
    expect(ids()).toEqual(second);
    expect((await millrace([...args, "--fresh"], { cwd: here })).code).toBe(0);
    expect(ids()).toHaveLength(5);
  });

  test("loses no results to an option that cannot be read", async () => {
    const here = project(2);
    expect((await millrace(args, { cwd: here })).code).toBe(0);
    const before = readFileSync(join(here, "out.jsonl"), "utf8");
    expect(await millrace([...args, "--label", "bad"], { cwd: here })).toMatchObject({ code: 2 });
    expect(readFileSync(join(here, "out.jsonl"), "utf8")).toBe(before);
  });

  test("does not write over a file that is of no batch", async () => {
    const here = project(2);
    writeFileSync(join(here, "out.jsonl"), "somebody's\n");
    const refused = await millrace(args, { cwd: here });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("out.jsonl is there already")]);
    expect(readFileSync(join(here, "out.jsonl"), "utf8")).toBe("somebody's\n");
    expect((await millrace([...args, "--fresh"], { cwd: here })).code).toBe(0);
    expect(results(here)).toHaveLength(2);
  });

  test("takes its items from stdin, and its results are a table if their name says so", async () => {
    const here = project(0, { broken: "" });
    const given = ["batch", "run", "wf.yaml", "-i", "-", "-o", "out.parquet", "--handlers", "handlers.mjs"];
    const first = await millrace(given, { cwd: here, input: items(25) });
    expect([first.code, first.stdout]).toEqual([9, ""]);
    const row = (index: number) => ({
      index: BigInt(index),
      status: "COMPLETED",
      error: null,
      output_twice: index * 2,
    });
    const told = await table(join(here, "out.parquet"));
    expect(told).toHaveLength(25);
    expect(told[7]).toMatchObject(row(7));
    expect(told[13]).toMatchObject({ status: "FAILED", error: { code: "CHILD_FAILED" }, output_twice: null });

    rmSync(join(here, "broken"));
    const other = await millrace([...given, "--retry-failed"], { cwd: here, input: items(24) });
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("the input has changed")]);
    expect((await millrace([...given, "--retry-failed"], { cwd: here, input: items(25) })).code).toBe(0);
    expect(await table(join(here, "out.parquet"))).toMatchObject(Array.from({ length: 25 }, (_, n) => row(n)));

    const piped = await millrace([...given.slice(0, 5), ...given.slice(7)], { cwd: here, input: items(3) });
    expect(piped.code).toBe(0);
    expect(piped.stdout.trimEnd().split("\n").sort()).toEqual(
      [0, 1, 2].map((n) => expect.stringContaining(`"index":${n},`)),
    );
  });

  test("runs on a server, and is found there", async () => {
    const here = project(30);
    const server = await serve("memory:", ["--handlers", "handlers.mjs"], { cwd: here });
    const env = { MILLRACE_URL: server.url };
    const { code } = await millrace([...args.slice(0, -2), "--server", "--label", "run=one"], { cwd: here, env });
    expect(code).toBe(0);
    expect(results(here)).toHaveLength(30);
    const listed = JSON.parse((await millrace(["batch", "ls", "--json"], { cwd: here, env })).stdout);
    const id = listed.items[0].batch_id as string;
    const shown = JSON.parse((await millrace(["batch", "show", id, "--json"], { cwd: here, env })).stdout);
    expect(shown).toMatchObject({ workflow: "double", status: "COMPLETED", labels: { run: "one" } });
    expect(shown.items).toHaveLength(shown.total);

    writeFileSync(join(here, "broken"), "");
    const partly = ["--server", "-o", "partly.jsonl"];
    expect((await millrace([...args.slice(0, 5), ...partly], { cwd: here, env })).code).toBe(9);
    const { stdout: listing } = await millrace(["ls", "--workflow", "double (batch)"], { cwd: here, env });
    expect(listing).toMatch(/^\S+ +✓ completed +double \(batch\)/m);
    const [, part = "none is partial"] = /^(\S+) +◐ partial +double \(batch\)/m.exec(listing) ?? [];
    expect((await millrace(["show", part], { cwd: here, env })).stdout).toContain("◐ partial");
    await server.stop();
  });

  test("says what is wrong with its input before anything runs", async () => {
    const here = project(3);
    writeFileSync(join(here, "items.jsonl"), `{"n": 1}\n\n{"n": }\n`);
    const bad = await millrace(args, { cwd: here });
    expect([bad.code, bad.stderr]).toEqual([3, expect.stringContaining("items.jsonl: item 2 is no JSON")]);
    expect(existsSync(join(here, "calls"))).toBe(false);
    const missing = await millrace([...args.slice(0, 4), "nothing.jsonl"], { cwd: here });
    expect([missing.code, missing.stderr]).toEqual([4, expect.stringContaining("nothing.jsonl")]);
    const none = await millrace([...args, "--retry-failed"], { cwd: project(1) });
    expect(none.code).toBe(4);
  });
});
