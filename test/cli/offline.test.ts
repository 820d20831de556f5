import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { BROKEN, FAILING, HELLO, MODULE, PARTIAL, REVIEW, REVIEW_FIRST, SLOW, SPENDING, TYPED_INPUT } from "./files.ts";
import { type Ended, folder, millrace, cleanUp, start } from "./program.ts";

afterAll(cleanUp);

const MINE = "name: mine\nnodes: [{ id: a, handler: text.up, config: { text: '{{ input.t }}' } }]\n";

const HERE = folder({
  "hello.yaml": HELLO,
  "failing.yaml": FAILING,
  "partial.yaml": PARTIAL,
  "slow.yaml": SLOW,
  "review.yaml": REVIEW,
  "review-first.yaml": REVIEW_FIRST,
  "spending.yaml": SPENDING,
  "typed.yaml": TYPED_INPUT,
  "broken.json": BROKEN,
  "module.ts": MODULE,
  "none.ts": "export const handlers = {};",
  "empty.json": "",
  "escape.json": "\u001B[31mred",
  "items.jsonl": "{}\n",
  "strange.jsonl": "{}\n",
  "strange.jsonl.batch": "not\nours\n",
  "handlers.mjs":
    "export const handlers = { 'text.up': (config) => config.text.toUpperCase(), boom: () => { throw undefined; } };",
  "mine.yaml": MINE,
  "secret.yaml": "name: s\nnodes: [{ id: a, handler: text.up, config: { text: '{{ secrets.WORD }}' } }]\n",
});

mkdirSync(join(HERE, "folder.yaml"));

function run(...args: readonly string[]): Promise<Ended> {
  return millrace(args, { cwd: HERE });
}

describe("bin/millrace", () => {
  test("says which version it is", async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8")) as {
      version: string;
    };
    expect(await run("--version")).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("lists every command, and tells of each", async () => {
    const { code, stdout } = await run("--help");
    expect(code).toBe(0);
    for (const command of ["init", "dev", "run", "validate", "why", "rerun", "dlq retry", "completion"])
      expect(stdout).toContain(`  ${command} `);
    const rerun = await run("rerun", "--help");
    expect(rerun.code).toBe(0);
    expect(rerun.stdout).toContain("--from NODE");
    expect(rerun.stdout).toContain("Also: millrace runs rerun");
  });

  // Golden: what is wrong, and what to do. stdout stays empty, as it holds data only.
  const rubbish: readonly [args: readonly string[], code: number, stderr: string][] = [
    [["grahp"], 2, 'millrace: there is no command "grahp".\n  hint: did you mean "graph"?\n'],
    [["frobnicate"], 2, 'millrace: there is no command "frobnicate".\n  hint: millrace --help lists all commands\n'],
    [["dlq", "retyr"], 2, 'millrace: there is no command "dlq retyr".\n  hint: did you mean "dlq retry"?\n'],
    [
      ["runs"],
      2,
      'millrace: "runs" needs one more word.\n  hint: one of: runs ls, runs show, runs io, runs open, runs result, runs watch, runs events, runs logs, runs why, runs cancel, runs pause, runs resume, runs release, runs retry, runs rerun, runs fork, runs signal, runs export\n',
    ],
    [["run"], 2, "millrace: <file|workflow> is missing.\n  hint: usage: millrace run <file|workflow> [options]\n"],
    [
      ["run", "a", "b"],
      2,
      'millrace: "b" is one argument too many.\n  hint: usage: millrace run <file|workflow> [options]\n',
    ],
    [
      ["run", "hello.yaml", "--inptu", "1"],
      2,
      'millrace: "run" has no option "--inptu".\n  hint: did you mean --input?\n',
    ],
    [
      ["run", "hello.yaml", "--input"],
      2,
      "millrace: --input needs a value.\n  hint: usage: millrace run <file|workflow> [options]\n",
    ],
    [
      ["validate", "hello.yaml", "--json=yes"],
      2,
      "millrace: --json takes no value.\n  hint: usage: millrace validate <file…> [options]\n",
    ],
    [
      ["run", "hello.yaml", "--timeout", "soon"],
      2,
      'millrace: --timeout must be a time such as 30s, 5m or 2h, not "soon".\n',
    ],
    [
      ["graph", "hello.yaml", "--format", "png"],
      2,
      'millrace: --format must be text, mermaid, dot or svg, not "png".\n',
    ],
    [["run", "nowhere.yaml"], 4, 'millrace: there is no file "nowhere.yaml".\n'],
    [["run", "nowhere.mts"], 4, 'millrace: there is no file "nowhere.mts".\n'],
    [
      ["run", "hello.yaml", "--no-watch"],
      2,
      "millrace: --no-watch is for an execution on a server; this file would run here.\n  hint: run it on a server with --server, --url or --context, or leave the option out\n",
    ],
    [
      ["run", "hello.yaml", "--context", "nowhere"],
      4,
      'millrace: there is no context "nowhere".\n  hint: one of: local\n',
    ],
    [["audit", "nowhere.jsonl"], 4, 'millrace: there is no file "nowhere.jsonl".\n'],
    [
      ["help", "frobnicate"],
      2,
      'millrace: there is no command "frobnicate".\n  hint: millrace --help lists all commands\n',
    ],
    [["validate", "."], 2, 'millrace: "." is a folder, not a file.\n'],
    [
      ["run", "hello.yaml", "--input", "@nowhere.json"],
      4,
      'millrace: --input names the file "nowhere.json", which cannot be read.\n',
    ],
    [
      ["serve", "--port", "99999"],
      2,
      'millrace: --port must be from 0 to 65535, not "99999".\n  hint: docs/settings.md lists all settings\n',
    ],
    [
      ["serve", "--store", "mysql://u:secret@h"],
      2,
      'millrace: MILLRACE_STORE must be sqlite:PATH, postgres://…, redis://… or memory:, not "mysql://…@h".\n',
    ],
    [
      ["serve", "--host", "0.0.0.0", "--store", "memory:", "--port", "0", "--log-level", "silent"],
      2,
      "millrace: refusing to listen on 0.0.0.0 without an API key: set MILLRACE_API_KEYS\n",
    ],
    [
      ["worker", "--store", "memory:"],
      2,
      "millrace: a memory store belongs to one process, which has its own worker.\n  hint: name a store that is shared: --store postgres://… or redis://…   a server: --url http://…   or a bus: --bus kafka://…\n",
    ],
    [
      ["serve", "--roles", "worker", "--port", "0"],
      2,
      "millrace: a sqlite store belongs to one process: nobody else could be its api or engine.\n  hint: let one process be all: --roles api,engine,worker   or name a store that is shared: --store postgres://… or redis://…\n",
    ],
    [
      ["serve", "--roles", "engine,worker", "--store", "memory:"],
      2,
      "millrace: a memory store belongs to one process: nobody else could be its api.\n  hint: let one process be all: --roles api,engine,worker   or name a store that is shared: --store postgres://… or redis://…\n",
    ],
    [
      ["serve", "--roles", "api", "--store", "memory:", "--port", "0"],
      2,
      "millrace: a memory store belongs to one process: nobody else could be its engine.\n  hint: let one process be all: --roles api,engine,worker   or name a store that is shared: --store postgres://… or redis://…\n",
    ],
    [["ls", "--url", "localhost:1"], 2, 'millrace: --url must begin with http:// or https://, not "localhost:1".\n'],
    [
      ["ls", "--url", "http://127.0.0.1:2"],
      6,
      "millrace: cannot reach http://127.0.0.1:2: nobody listens there.\n  hint: start a server with: millrace dev   (or name another with --url or MILLRACE_URL)\n",
    ],
    [
      ["ls", "--status", "sleeping"],
      2,
      'millrace: --status must be one of pending, running, paused, completed, partial, failed, cancelled, not "sleeping".\n',
    ],
    [["ls", "--limit", "0"], 2, 'millrace: --limit must be a number from 1 to 100000, not "0".\n'],
    [["rerun", "x"], 2, "millrace: --from NODE is missing.\n  hint: millrace rerun <execution> --from <node>\n"],
    [["dlq", "retry", "x", "--dry-run"], 2, "millrace: --dry-run goes with --all, not with ids.\n"],
    [["dlq", "drop", "x", "--class", "poison"], 2, "millrace: --class goes with --all, not with ids.\n"],
    [["dlq", "retry", "--all", "--set", "url=1"], 2, "millrace: --set goes with ids, not with --all.\n"],
    [["cancel", "x", "--workflow", "hello"], 2, "millrace: --workflow goes with --all, not with ids.\n"],
    [["completion", "csh"], 2, 'millrace: there is no completion for "csh".\n  hint: bash, zsh or fish\n'],
    [
      ["init", "--template", "cobol"],
      2,
      'millrace: there is no template "cobol".\n  hint: --template typescript or yaml\n',
    ],
    [
      ["test", "hello.yaml"],
      3,
      "millrace: hello.yaml: it is not JSON: Unexpected token 'a', \"name: hello\"... is not valid JSON.\n  hint: make one with: millrace export <execution>\n",
    ],
    [
      ["keys", "add", "--role", "king"],
      2,
      "millrace: --role must be one of viewer, author, operator, reviewer, worker, admin.\n",
    ],
    [["test", "."], 2, 'millrace: "." is a folder, not a file.\n'],
    [["run", "folder.yaml"], 2, 'millrace: "folder.yaml" is a folder, not a file.\n'],
    [["run", "hello.yaml", "--input", "@."], 2, 'millrace: --input names the folder ".", which cannot be read.\n'],
    [["batch", "run", "nowhere.yaml", "--input", "hello.yaml"], 4, 'millrace: there is no file "nowhere.yaml".\n'],
    [["batch", "run", "hello.yaml", "--input", "folder.yaml"], 2, 'millrace: "folder.yaml" is a folder, not a file.\n'],
    [
      [
        "batch",
        "run",
        "hello.yaml",
        "--input",
        "items.jsonl",
        "--output",
        "nowhere/results.jsonl",
        "--store",
        "memory:",
      ],
      6,
      "millrace: a file cannot be read or written: ENOENT: no such file or directory, open '",
    ],
    [
      ["batch", "run", "hello.yaml", "--input", "items.jsonl", "--output", "folder.yaml", "--store", "memory:"],
      2,
      'millrace: "folder.yaml" is a folder, not a file.\n',
    ],
    [
      ["batch", "run", "hello.yaml", "--input", "strange.jsonl", "--store", "memory:"],
      2,
      `millrace: ${realpathSync(HERE)}/strange.jsonl.batch does not tell how far a batch is.\n  hint: remove it, or write over it with --fresh\n`,
    ],
    // Whoever names a server means it, also for a file that could run here.
    [
      ["run", "hello.yaml", "--url", "http://127.0.0.1:2"],
      6,
      "millrace: cannot reach http://127.0.0.1:2: nobody listens there.",
    ],
    [
      ["batch", "run", "hello.yaml", "--input", "items.jsonl", "--url", "http://127.0.0.1:2"],
      6,
      "millrace: cannot reach http://127.0.0.1:2: nobody listens there.",
    ],
    [["run", "empty.json"], 3, "millrace: empty.json: This is not valid JSON: the text ends too early. (INVALID_JSON)"],
    // What would move the cursor or change colours is told without that.
    [
      ["test", "escape.json"],
      3,
      "millrace: escape.json: it is not JSON: Unexpected token ' ', \" [31mred\" is not valid JSON.\n  hint: make one with: millrace export <execution>\n",
    ],
    [["init", "/proc/x"], 6, "millrace: /proc/x cannot be written: "],
    [
      ["ls", "--since", "99999999999d", "--url", "http://127.0.0.1:2"],
      6,
      "millrace: cannot reach http://127.0.0.1:2: nobody listens there.",
    ],
    [
      ["run", "mine.yaml", "--handlers", "nowhere.mjs"],
      2,
      "millrace: The handler module nowhere.mjs cannot be loaded: ",
    ],
  ];
  test.each(rubbish)("answers %j by exit %i and a sentence", async (args, code, stderr) => {
    const ended = await run(...args);
    expect(
      ended.stderr.startsWith(stderr) && (stderr.endsWith("\n") ? ended.stderr === stderr : true),
      ended.stderr,
    ).toBe(true);
    expect(ended.code).toBe(code);
    expect(ended.stdout).toBe("");
  });

  test("tells errors as JSON on stderr with --json", async () => {
    const { code, stdout, stderr } = await run("run", "nowhere.yaml", "--json");
    expect([code, stdout]).toEqual([4, ""]);
    expect(JSON.parse(stderr)).toEqual({ error: { exit: 4, message: 'there is no file "nowhere.yaml".' } });
  });

  test("tells of a command by help as well", async () => {
    expect(await run("help", "run")).toEqual(await run("run", "--help"));
  });

  test("tells how a run ended though nobody reads what it says on the way", () => {
    const bin = join(import.meta.dirname, "../../bin/millrace");
    const { stdout } = spawnSync("bash", ["-c", `"${bin}" run failing.yaml 2> >(exec true); echo "exit $?"`], {
      cwd: HERE,
      encoding: "utf8",
    });
    expect(stdout).toContain("exit 1");
  });

  test("says what it is that answers where a server should", async () => {
    const other = createServer((_, response) => response.end("<html>")).listen(0, "127.0.0.1");
    await once(other, "listening");
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    const { code, stderr } = await run("ls", "--url", url);
    other.close();
    expect(code).toBe(6);
    expect(stderr).toMatch(
      /^millrace: http:\S+ does not answer as Millrace does: its answer is not JSON\.\n {2}hint: /,
    );
  });

  test("says nothing when whoever reads it stops reading", () => {
    const bin = join(import.meta.dirname, "../../bin/millrace");
    const { stdout, stderr } = spawnSync("sh", ["-c", `"${bin}" --help | head -1`], { encoding: "utf8" });
    expect(stdout).toContain("millrace:");
    expect(stderr).toBe("");
  });
});

describe("audit", () => {
  const here = folder({
    "log.yaml":
      "name: log\nnodes: [{ id: a, handler: audit, config: { event: sent, data: { n: '{{ input.n }}' } } }]\n",
  });
  const audit = (...args: readonly string[]): Promise<Ended> =>
    millrace(["audit", "audit.jsonl", ...args], { cwd: here });

  test("tells whether every line of a log follows the one before", async () => {
    for (const n of [1, 2, 3]) {
      const { code } = await millrace(["run", "log.yaml", "-i", `{"n":${n}}`, "--output-folder", here], { cwd: here });
      expect(code).toBe(0);
    }
    const { code, stdout } = await audit("--json");
    const { lines, hash, unfinished } = JSON.parse(stdout) as { lines: number; hash: string; unfinished: boolean };
    expect([code, lines, unfinished]).toEqual([0, 3, false]);
    expect((await audit("--has", hash)).stdout).toContain(
      `3 lines, none was changed, taken out or put in\nIt ends with ${hash}`,
    );

    const text = readFileSync(join(here, "audit.jsonl"), "utf8");
    const cut = text.trimEnd().split("\n").slice(0, 2).join("\n");
    writeFileSync(join(here, "audit.jsonl"), `${cut}\n`);
    expect((await audit()).code).toBe(0);
    expect(await audit("--has", hash)).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("no line has the hash"),
    });
    writeFileSync(join(here, "audit.jsonl"), text.replace('"n":2', '"n":9'));
    expect(await audit()).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("broken at line 2: it was changed"),
    });
  });
});

describe("validate", () => {
  test("prints every problem with place and hint", async () => {
    const { code, stdout } = await run("validate", "broken.json");
    expect(code).toBe(3);
    expect(stdout).toBe(`broken.json: 7 problems

  UNKNOWN_HANDLER        nodes[0].handler   6:18
    No worker and no built-in node provides "htp".
    hint: Did you mean "http"? Name the module that brings it: --handlers FILE. To accept it before a worker connects: --allow-missing-handlers, over HTTP ?allow_missing_handlers=true.

  CYCLE_DETECTED         nodes[1]   11:5
    Nodes depend on each other in a circle: ocr → clean → check → ocr.
    hint: Remove one of these dependencies, for instance "check" from those of "ocr". To run a node again use "retry" or "repeat".

  TEMPLATE_REF_NOT_ANCESTOR nodes[2].config.value   29:18
    "clean" refers to "meta", which does not come before it.
    hint: Add "meta" to the dependencies of "clean".

  ORPHAN_STEPS           nodes[3]   32:5
    Never reached, because they come after a circle: "merge".
    hint: They become reachable once the circle is gone.

  UNKNOWN_DEPENDENCY     nodes[3].dependencies[1]   37:9
    "merge" depends on "metadata", which is not a node.

  INVALID_TIMEOUT        nodes[4].timeout_seconds   52:26
    "timeout_seconds" must be more than 0 and at most 31536000 seconds, not -5.

  DUPLICATE_NODE_ID      nodes[5].id   55:13
    "ocr" is already the id of /nodes/1.
    hint: Ids are compared exactly; give one of the two another.
`);
  });

  test("prints the same as JSON and SARIF", async () => {
    const json = JSON.parse((await run("validate", "broken.json", "--json")).stdout) as {
      valid: boolean;
      errors: { code: string }[];
    };
    expect([json.valid, json.errors.length]).toEqual([false, 7]);
    const sarif = JSON.parse((await run("validate", "broken.json", "hello.yaml", "--format", "sarif")).stdout) as {
      runs: [{ results: { ruleId: string; locations: [{ physicalLocation: { region: { startLine: number } } }] }[] }];
    };
    const [first] = sarif.runs[0].results;
    expect([first!.ruleId, first!.locations[0].physicalLocation.region.startLine]).toEqual(["UNKNOWN_HANDLER", 6]);
  });

  test("takes several files, stdin and the handlers of a module", async () => {
    expect(await run("validate", "hello.yaml", "failing.yaml")).toEqual({
      code: 0,
      stdout: "hello.yaml: hello is valid, 4 nodes\n\nfailing.yaml: failing is valid, 3 nodes\n".replace(
        "\n\n",
        "\n\n",
      ),
      stderr: "",
    });
    expect(await run("validate", "hello.yaml", "missing.yaml", "broken.json", ".")).toMatchObject({
      code: 4,
      stdout: expect.stringMatching(/^hello.yaml: hello is valid[^]*broken.json: \d+ problems/) as string,
      stderr: 'millrace: there is no file "missing.yaml".\nmillrace: "." is a folder, not a file.\n',
    });
    const rest = await run("validate", "hello.yaml", "missing.yaml", "--json");
    expect(JSON.parse(rest.stdout)).toMatchObject([
      { file: "hello.yaml", valid: true },
      { file: "missing.yaml", valid: false, unreadable: 'there is no file "missing.yaml".' },
    ]);
    const piped = await millrace(["validate", "-"], { cwd: HERE, input: HELLO });
    expect(piped).toEqual({ code: 0, stdout: "stdin: hello is valid, 4 nodes\n", stderr: "" });
    expect((await run("validate", "mine.yaml")).code).toBe(0);
    expect((await run("validate", "mine.yaml", "--handlers", "none.ts")).code).toBe(3);
    expect((await run("validate", "mine.yaml", "--handlers", "handlers.mjs")).code).toBe(0);
    expect((await run("validate", "mine.yaml", "--handlers", "none.ts", "--allow-missing-handlers")).code).toBe(0);
    expect((await run("validate", "empty.json")).code).toBe(3);
  });
});

describe("a workflow in TypeScript", () => {
  test("is validated, planned and drawn as what it becomes, with all that its module exports", async () => {
    expect(await run("validate", "module.ts")).toEqual({
      code: 0,
      stdout: "module.ts: outer is valid, 3 nodes\n\nmodule.ts: inner is valid, 2 nodes\n",
      stderr: "",
    });
    const plan = JSON.parse((await run("plan", "module.ts", "--json")).stdout) as object;
    expect(plan).toMatchObject({ name: "outer", handlers: ["outer/load"], handlers_missing: [] });
    expect((await run("graph", "module.ts")).stdout).toMatch(/child +workflow inner +after load/);
  });

  test("that is none says so", async () => {
    const none = await run("validate", "none.ts");
    expect([none.code, none.stderr]).toEqual([3, expect.stringContaining("none.ts exports no workflow.")]);
    expect((await run("plan", "nowhere.ts")).code).toBe(4);
  });
});

describe("graph and plan", () => {
  test("draw and reckon without a server", async () => {
    expect((await run("graph", "hello.yaml")).stdout).toBe(`hello   4 nodes · 4 dependencies · 3 levels

level 1
  load    transform

level 2
  wait    delay       after load
  twice   transform   after load

level 3
  merge   output      after wait, twice
`);
    expect((await run("graph", "hello.yaml", "--format", "mermaid")).stdout).toContain("n0 --> n1");
    expect((await run("graph", "hello.yaml", "--format", "dot")).stdout).toMatch(/^digraph "hello" \{/);
    expect((await run("graph", "hello.yaml", "--format", "svg")).stdout).toMatch(/^<svg [\s\S]*<\/svg>\n$/);
    expect((await run("plan", "failing.yaml")).stdout).toBe(`failing   3 nodes in 3 levels

critical path    ok → call → after
worst-case time  5 min 7 s if every attempt runs into its time limit
workflow timeout 7 d 0 h
width            1 side by side
handlers         http, transform
missing handlers none
`);
    const plan = JSON.parse((await run("plan", "mine.yaml", "--handlers", "none.ts", "--json")).stdout) as Record<
      string,
      unknown
    >;
    expect(plan).toMatchObject({ critical_path: ["a"], handlers_missing: ["text.up"], width: 1 });
  });
});

describe("run, with no server and no project", () => {
  test("prints the output on stdout and how it went on stderr", async () => {
    const { code, stdout, stderr } = await run("run", "hello.yaml", "--input", '{"n": 21}');
    expect([code, JSON.parse(stdout)]).toEqual([0, { twice: 42 }]);
    const lines = stderr.trimEnd().split("\n");
    for (const line of lines)
      expect(line).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z \S+ (running|queued|waiting|completed)\b/);
    expect(lines.at(-1)).toMatch(/ hello completed/);
  });

  test("takes its input from a file, from stdin and from a definition on stdin", async () => {
    const piped = await millrace(["run", "hello.yaml", "--input", "-"], { cwd: HERE, input: '{"n": 4}' });
    expect(JSON.parse(piped.stdout)).toEqual({ twice: 8 });
    const definition = await millrace(["run", "-"], { cwd: HERE, input: HELLO });
    expect(JSON.parse(definition.stdout)).toEqual({ twice: 2 });
  });

  const ends: readonly [file: string, more: readonly string[], code: number, says: RegExp][] = [
    [
      "failing.yaml",
      [],
      1,
      /FAILED {2}failing [\s\S]*node "call" failed\n {4}CONNECTION_FAILED: [\s\S]*1 node keeps its result; 1 did not run/,
    ],
    ["partial.yaml", [], 9, /PARTIAL {2}partial /],
    ["broken.json", [], 3, /The definition has 7 problems; nothing was stored\. \(INVALID_DEFINITION\)/],
    ["typed.yaml", [], 3, /INPUT_INVALID/],
    ["typed.yaml", ["--input", '{"n": "x"}'], 3, /must be a number|must be number|type/],
    ["mine.yaml", ["--handlers", "none.ts"], 3, /No worker and no built-in node provides "text\.up"/],
    ["slow.yaml", ["--timeout", "300ms"], 124, /is still RUNNING after the timeout\. It ends with this process\./],
    [
      "review.yaml",
      ["--no-wait-approval"],
      8,
      /waits for a person\. It ends with this process\. To have it decided, run it where it goes on: --server\n$/,
    ],
    ["review-first.yaml", ["--no-wait-approval"], 8, /other completed[^]*waits for a person/],
    ["spending.yaml", ["--no-wait-approval"], 8, /b waiting reason=budget[^]*waits for a person/],
  ];
  test.each(ends)("%s %j ends with %i", async (file, more, code, says) => {
    const ended = await run("run", file, ...more);
    expect(ended.stderr).toMatch(says);
    expect(ended.code).toBe(code);
  });

  test("waits as long as it is told, also beyond what one timer can hold", async () => {
    const { code, stderr } = await run("run", "hello.yaml", "--timeout", "30d");
    expect(stderr).not.toMatch(/Warning|timeout/);
    expect(code).toBe(0);
  });

  test("prints the whole execution with --json, also of one that failed", async () => {
    const { code, stdout } = await run("run", "failing.yaml", "--json");
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      status: "FAILED",
      nodes: { ok: { status: "COMPLETED" }, after: { status: "SKIPPED" } },
    });
  });

  test("finds the handlers that lie beside it as dev does, and leaves them alone if it needs none", async () => {
    expect(await run("run", "mine.yaml", "--input", '{"t": "abc"}')).toMatchObject({
      code: 0,
      stdout: '{\n  "a": "ABC"\n}\n',
    });
    const here = folder({ "handlers.ts": "throw new Error('not ours')", "hello.yaml": HELLO, "mine.yaml": MINE });
    expect((await millrace(["run", "hello.yaml"], { cwd: here })).code).toBe(0);
    expect((await millrace(["validate", "hello.yaml"], { cwd: here })).code).toBe(0);
    const needed = await millrace(["validate", "mine.yaml"], { cwd: here });
    expect([needed.code, needed.stderr]).toEqual([
      2,
      expect.stringMatching(/handlers\.ts cannot be loaded: .*not ours/),
    ]);
  });

  test("ends where only a handler is waited for that nobody can bring", async () => {
    const nodes = [
      "{ id: a, handler: transform, config: { value: 1 } }",
      "{ id: pause, handler: delay, config: { seconds: 0.3 } }",
      "{ id: b, handler: no.such, dependencies: [a], config: {} }",
      "{ id: c, handler: transform, dependencies: [b], config: { value: 1 } }",
    ];
    const map = "{ id: m, handler: map, config: { items: [1, 2], handler: no.such, config: { x: '{{ item }}' } } }";
    const here = folder({
      "missing.yaml": `name: missing\nnodes: [${nodes.join(", ")}]\n`,
      "map.yaml": `name: map\nnodes: [${nodes[1]}, ${map}]\n`,
    });
    const mapped = await millrace(["run", "map.yaml", "--allow-missing-handlers"], { cwd: here });
    expect(mapped.code).toBe(1);
    expect(mapped.stderr).toMatch(/pause completed\n[^]*: m\[0\] and 1 more would wait for ever/);
    const { code, stderr } = await millrace(["run", "missing.yaml", "--allow-missing-handlers"], { cwd: here });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /pause completed\n[^]*: b would wait for ever, as nobody brings "no\.such"\.\n {2}hint: .*--handlers FILE/,
    );
  });

  test("serves handlers of modules, and gives them secrets from the environment", async () => {
    const mine = await run("run", "mine.yaml", "--handlers", "handlers.mjs", "--input", '{"t": "abc"}');
    expect([mine.code, JSON.parse(mine.stdout)]).toEqual([0, { a: "ABC" }]);
    const env = { MILLRACE_SECRET_WORD: "hush" };
    const secret = await millrace(["run", "secret.yaml", "--handlers", "handlers.mjs"], { cwd: HERE, env });
    expect(secret.code).toBe(0);
    // What is secret is cut out of everything that is told, in the form it was given.
    expect(secret.stdout + secret.stderr).not.toContain("hush");
  });

  test("ends at once when it is interrupted, and says what becomes of the execution", async () => {
    const program = start(["run", "slow.yaml"], { cwd: HERE });
    await program.says(/pause waiting/);
    program.child.kill("SIGINT");
    const { code, stderr } = await program.ended;
    expect(code).toBe(130);
    expect(stderr).toMatch(/interrupted; \S+ is RUNNING\. It ends with this process\./);
  });
});

describe("completion", () => {
  test("gives scripts that their shells can read", async () => {
    const { stdout } = await run("completion", "bash");
    expect(spawnSync("bash", ["-n"], { input: stdout }).status).toBe(0);
    const script = `${stdout}\nCOMP_WORDS=(millrace dlq re); COMP_CWORD=2; _millrace; echo "\${COMPREPLY[@]}"\nCOMP_WORDS=(millrace validate --for); COMP_CWORD=2; _millrace; echo "\${COMPREPLY[@]}"`;
    expect(spawnSync("bash", [], { input: script, encoding: "utf8" }).stdout).toBe("retry\n--format\n");
    expect((await run("completion", "fish")).stdout).toContain("complete -c millrace");
    expect((await run("completion", "zsh")).stdout).toMatch(/^#compdef millrace/);
  });
});
