import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FAILING, HELLO, MODULE, PARTIAL, REVIEW, SIGNAL, SLOW, SPENDING, TYPED_INPUT } from "./files.ts";
import { type Ended, folder, millrace, cleanUp, serve, type Serving } from "./program.ts";

afterAll(cleanUp);

const HANDLERS = `import { defineHandler } from "millrace";
let failures = 1;
export const handlers = {
  flaky: (config, ctx) => {
    ctx.log("called", { x: config.x });
    if (failures-- > 0) throw new Error("not yet");
    return { x: config.x, authorization: "Bearer abcdefghijkl" };
  },
  sum: defineHandler({ name: "sum", config: { type: "object", required: ["a", "b"] }, run: ({ a, b }) => a + b }),
};
`;

const FLAKY = `name: flaky
on_error: fail_branch
nodes:
  - { id: a, handler: flaky, config: { x: "{{ input.x }}" }, retry: { max_attempts: 2, base_delay_seconds: 0.1 } }
  - { id: pause, handler: delay, dependencies: [a], config: { seconds: 0.2 } }
  - { id: gate, handler: wait, dependencies: [pause], config: { signal: go } }
  - { id: many, handler: map, dependencies: [a], config: { items: [1, 2, 3], handler: transform, config: { value: "{{ item }}" } } }
  - { id: bad, handler: http, dependencies: [a], config: { url: "http://10.0.0.1/" }, retry: { max_attempts: 1 } }
  - { id: out, handler: output, dependencies: [gate, many], config: { gate: "{{ gate }}", many: "{{ many }}" } }
`;

/** The parts begin later than the whole: in the same millisecond either may be the first in a list. */
const PARTS = `name: parts
nodes:
  - { id: later, handler: delay, config: { seconds: 0.02 } }
  - id: m
    handler: map
    dependencies: [later]
    config:
      items: ["{{ input.x }}"]
      nodes: [{ id: a, handler: transform, config: { expression: "1 / int(item)" }, retry: { max_attempts: 1 } }]
`;

describe.each(["memory", "sqlite"])("commands against a server on %s", (kind) => {
  const here = folder({
    "hello.yaml": HELLO,
    "failing.yaml": FAILING,
    "partial.yaml": PARTIAL,
    "slow.yaml": SLOW,
    "spending.yaml": SPENDING,
    "review.yaml": REVIEW,
    "signal.yaml": SIGNAL,
    "typed.yaml": TYPED_INPUT,
    "flaky.yaml": FLAKY,
    "parts.yaml": PARTS,
    "two.yaml": "name: two\nnodes: [{ id: ask, handler: review, config: { four_eyes: true, values: { total: 4 } } }]\n",
    "wrong.yaml":
      "# what it is for\nname: wrong\nnodes:\n  - id: a\n    handler: transform\n    config: { value: 1 }\n    retyr: {}\n",
    "twice.json":
      '{"name": "twice", "nodes": [{"id": "a", "handler": "transform",\n "config": {"value": 1, "value": 2}}]}',
    "named.yaml":
      "name: named\nnodes: [{ id: a, name: What it is called, handler: transform, config: { value: 1 } }]\n",
    "module.ts": MODULE,
    "handlers.mjs": HANDLERS,
  });
  let server: Serving;
  beforeAll(async () => {
    const store = kind === "memory" ? "memory:" : `sqlite:${join(here, "data/millrace.db")}`;
    // An hour, which is no whole number of milliseconds in days.
    const kept = ["--retention-days", "0.0416667"];
    server = await serve(store, ["--handlers", "handlers.mjs", ...kept], { cwd: here });
  });
  afterAll(() => server.stop());

  const run = (...args: readonly string[]): Promise<Ended> =>
    millrace(args, { cwd: here, env: { MILLRACE_URL: server.url } });
  const json = async <Answer>(...args: readonly string[]): Promise<Answer> => {
    const { stdout, stderr } = await run(...args, "--json");
    expect(stdout, stderr).not.toBe("");
    return JSON.parse(stdout) as Answer;
  };
  const started = async (file: string, ...more: readonly string[]): Promise<string> => {
    const { stdout, stderr, code } = await run("run", file, "--server", ...more);
    expect([code, stderr]).toEqual([0, ""]);
    return stdout.trim();
  };

  test("submit and trigger are two steps, and each can be repeated with its key", async () => {
    const first = await run("submit", "hello.yaml", "--key", `k-${kind}`);
    expect(first.code).toBe(0);
    expect(first.stderr).toBe(`hello version 1, pending; run it: millrace trigger ${first.stdout.trim()}\n`);
    const again = await run("submit", "hello.yaml", "--key", `k-${kind}`);
    expect(again.stdout).toBe(first.stdout);
    const id = first.stdout.trim();
    expect((await run("why", id)).stdout).toContain("has not been triggered yet");
    expect((await run("trigger", id, "--input", '{"n": 5}')).code).toBe(0);
    const watched = await run("watch", id);
    expect([watched.code, JSON.parse(watched.stdout)]).toEqual([0, { twice: 10 }]);
    const over = await run("trigger", id);
    expect([over.code, over.stderr]).toEqual([5, `millrace: The execution ${id} is over. (ALREADY_TERMINAL)\n`]);
  });

  test("run, ls, show, graph, events and result tell of it", async () => {
    const id = await started("hello.yaml", "--input", '{"n": 3}');
    expect((await run("watch", id)).code).toBe(0);
    const { items } = await json<{ items: { execution_id: string; status: string }[] }>(
      "ls",
      "--workflow",
      "hello",
      "--status",
      "completed",
    );
    expect(items.find(({ execution_id }) => execution_id === id)?.status).toBe("COMPLETED");
    expect((await run("ls")).stdout).toMatch(new RegExp(`${id} +✓ completed +hello`));
    expect((await run("runs", "ls", "--since", "1h", "--limit", "1")).stdout.trim().split("\n")).toHaveLength(2);
    expect((await run("show", id)).stdout).toMatch(
      /hello v1 +\S+\n✓ completed in .*\n\nNODE +STATUS[\s\S]*merge +✓ completed[\s\S]*output \{"twice":6\}\n$/,
    );
    expect((await json<{ output: unknown }>("show", id, "--node", "twice")).output).toBe(6);
    expect((await run("graph", id)).stdout).toContain("  ✓ completed  merge   output      after wait, twice\n");
    expect((await run("graph", "hello")).stdout).toContain("hello   4 nodes");
    expect((await run("result", id)).stdout).toBe('{\n  "twice": 6\n}\n');
    const events = (await run("events", id, "--json")).stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { seq: number; type: string });
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, i) => i + 1));
    expect(events.at(-1)!.type).toBe("execution_ended");
    const followed = await run("events", id, "--follow", "--after", String(events.length - 1), "--json");
    expect(followed.stdout.trimEnd().split("\n")).toHaveLength(1);
    expect((await run("why", id)).stdout).toBe(`${id} is over: completed.\n`);
  });

  test("an option that the server cannot read is an error of usage, and what finds nothing says so", async () => {
    expect((await run("logs", "@latest", "--attempt", "x")).code).toBe(2);
    expect((await run("dlq", "ls", "--class", "x")).code).toBe(2);
    expect((await run("ls", "--since", "99999999999d")).code).toBe(0);
    const nothing = await run("cancel", "--all", "--workflow", "nobody");
    expect([nothing.code, nothing.stderr]).toEqual([0, "there is nothing to cancel\n"]);
    const unwritten = await run("reviews", "export", "-o", "nowhere/x.jsonl");
    expect([unwritten.code, unwritten.stderr]).toEqual([6, expect.stringMatching(/^millrace: a file cannot be .*\n$/)]);
  });

  test("io, open, ls --search, queues, versions and diff tell of parts of it", async () => {
    const id = await started("hello.yaml", "--input", '{"n": 4}');
    await run("watch", id);
    expect(JSON.parse((await run("io", id, "twice")).stdout)).toMatchObject({
      node: "twice",
      status: "COMPLETED",
      input: { n: 4 },
      output: 8,
    });
    expect((await run("open", id)).stdout).toBe(`${server.url}/runs/${id}\n`);
    expect((await run("open")).stdout).toBe(`${server.url}/\n`);
    const found = await json<{ items: { execution_id: string }[] }>("ls", "--search", id.slice(0, 20).toUpperCase());
    expect(found.items.map(({ execution_id }) => execution_id)).toContain(id);
    expect((await json<{ items: unknown[] }>("ls", "--search", "nowhere")).items).toEqual([]);
    expect((await run("queues")).stdout).toMatch(/^QUEUE +WAITING +OLDEST +RUNNING +WORKERS\n[^]*transform +0 +0 +1\n/);
    writeFileSync(join(here, "other.yaml"), readFileSync(join(here, "hello.yaml"), "utf8").replace("hello", "twins"));
    await run("workflow", "push", "other.yaml");
    writeFileSync(join(here, "other.yaml"), `${readFileSync(join(here, "other.yaml"), "utf8")}\ntimeout_seconds: 60\n`);
    await run("workflow", "push", "other.yaml");
    expect((await run("workflow", "versions", "twins")).stdout.trim().split("\n")).toHaveLength(3);
    expect((await run("workflow", "diff", "twins", "1")).stdout).toBe("~ /timeout_seconds  604800 → 60\n");
    expect((await run("workflow", "diff", "twins", "2", "2")).stdout).toBe("they are the same\n");
  });

  test("show tells what people call a node", async () => {
    const id = await started("named.yaml");
    expect((await run("watch", id)).code).toBe(0);
    expect((await run("show", id)).stdout).toMatch(/^a +✓ completed +1 .* What it is called$/m);
  });

  test("an execution whose workflow was deleted is shown and run again like any other", async () => {
    const id = await started("named.yaml");
    expect((await run("watch", id)).code).toBe(0);
    expect((await fetch(`${server.url}/v1/workflows/named`, { method: "DELETE" })).status).toBe(204);
    expect((await run("show", id)).stdout).toMatch(/^a +✓ completed +1 .* What it is called$/m);
    expect((await run("graph", id)).stdout).toContain("a");
    expect(JSON.parse((await run("io", id, "a")).stdout)).toMatchObject({ config: { value: 1 }, output: 1 });
    expect(JSON.parse((await run("export", id)).stdout)).toMatchObject({ definition: { name: "named" } });
    expect(await (await fetch(`${server.url}/runs/${id}`)).text()).toContain("What it is called");
    expect((await run("rerun", id, "--from", "a", "--set", "value=7")).code).toBe(0);
    expect(JSON.parse((await run("watch", id)).stdout)).toEqual({ a: 7 });
  });

  test("run starts a stored workflow by its name", async () => {
    expect((await run("workflow", "push", "hello.yaml")).stdout).toMatch(/^hello version \d+\n$/);
    const watched = await run("run", "hello", "--watch", "--input", '{"n": 8}');
    expect([watched.code, JSON.parse(watched.stdout)]).toEqual([0, { twice: 16 }]);
    expect((await run("workflow", "ls")).stdout).toContain("hello");
    expect(JSON.parse((await run("workflow", "show", "hello", "1")).stdout)).toMatchObject({ name: "hello" });
    const unknown = await run("run", "goodbye");
    expect([unknown.code, unknown.stderr]).toEqual([4, 'millrace: There is no workflow "goodbye". (NOT_FOUND)\n']);
  });

  test("a workflow in TypeScript is sent as what it becomes, after those that it calls", async () => {
    const refused = await run("workflow", "push", "module.ts");
    expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining('"inner/two"')]);
    const allow = "--allow-missing-handlers";
    expect((await run("workflow", "push", "module.ts", allow)).stdout).toBe("outer version 1\n");
    const inner = await json<{ readonly workflow_definition_id: string }>("workflow", "show", "inner");
    expect((await run("workflow", "show", "outer")).stdout).toContain(inner.workflow_definition_id);
    for (const args of [["submit"], ["submit", "--input", "{}"], ["run", "--server"]]) {
      const [verb, ...more] = args as [string, ...string[]];
      const { code, stdout, stderr } = await run(verb, "module.ts", allow, ...more);
      expect(code, stderr).toBe(0);
      expect(await json("show", stdout.trim())).toMatchObject({ workflow: "outer" });
      // Nobody brings its functions, and doctor would tell of that further down.
      expect((await run("cancel", stdout.trim())).code).toBe(0);
    }
  });

  test("a fault is shown where it stands in the file, with an input and labels too", async () => {
    const given = [[], ["--input", "{}"], ["--label", "a=b"]];
    for (const more of given) {
      for (const args of [["submit"], ["run", "--server"]]) {
        const [verb, ...rest] = args as [string, ...string[]];
        const wrong = await run(verb, "wrong.yaml", ...rest, ...more);
        expect([wrong.code, wrong.stderr]).toEqual([
          3,
          expect.stringMatching(/UNKNOWN_FIELD +nodes\[0\]\.retyr +7:5\n/),
        ]);
      }
      const twice = await run("submit", "twice.json", ...more);
      expect([twice.code, twice.stderr]).toEqual([3, expect.stringContaining("DUPLICATE_KEY")]);
    }
  });

  test("exit codes are those of the execution", async () => {
    expect((await run("run", "failing.yaml", "--server", "--watch")).code).toBe(1);
    expect((await run("run", "partial.yaml", "--server", "--watch")).code).toBe(9);
    expect((await run("run", "slow.yaml", "--server", "--watch", "--timeout", "200ms")).code).toBe(124);
    expect((await run("run", "slow.yaml", "--server", "--timeout", "200ms")).code).toBe(124);
    expect((await run("run", "typed.yaml", "--server")).code).toBe(3);
    const asking = await run("run", "review.yaml", "--server", "--watch", "--no-wait-approval");
    expect([asking.code, asking.stderr]).toEqual([8, expect.stringMatching(/waits for a person: millrace reviews\n$/)]);
    expect((await run("show", "01a1df52-786b-7150-bdd6-813261709c81")).code).toBe(4);
    const slow = await started("slow.yaml");
    expect((await run("cancel", slow)).stdout).toBe(`${slow} cancelled\n`);
    expect((await run("watch", slow)).code).toBe(7);
  });

  test("an option that cannot be read starts nothing", async () => {
    const wrong = await run("run", "slow.yaml", "--server", "--watch", "--timeout", "soon", "--label", "try=typo");
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--timeout must be a time")]);
    expect(await json("ls", "--label", "try=typo")).toMatchObject({ items: [] });
  });

  test("pause, resume and cancel act on ids, or on all that a filter finds", async () => {
    const [one, two] = [await started("slow.yaml"), await started("slow.yaml")];
    expect((await run("pause", one, two)).stdout).toBe(`${one} paused\n${two} paused\n`);
    expect((await run("resume", one)).stdout).toBe(`${one} running\n`);
    const wrong = await run("resume", one, two);
    expect([wrong.code, wrong.stdout]).toEqual([5, `${two} running\n`]);
    expect(wrong.stderr).toContain("NOT_PAUSED");
    const unsure = await run("cancel", "--all", "--workflow", "slow");
    expect([unsure.code, unsure.stderr]).toEqual([
      2,
      expect.stringMatching(/^millrace: this would cancel \d+ executions\.\n {2}hint: say so with --yes\n$/),
    ]);
    expect((await run("cancel", "--all", "--workflow", "slow", "--yes")).code).toBe(0);
    expect((await json<{ items: unknown[] }>("ls", "--workflow", "slow", "--status", "running")).items).toEqual([]);
    expect((await run("cancel")).code).toBe(2);
    expect((await run("cancel", one, "--all")).code).toBe(2);
  });

  test("@latest and @failed name what somebody has started, not what it has called", async () => {
    const named = async (name: string): Promise<string> =>
      (await json<{ execution_id: string }>("show", name)).execution_id;
    const failing = await run("run", "parts.yaml", "--server", "--watch", "--json", "--input", '{"x": 0}');
    const { execution_id: failed } = JSON.parse(failing.stdout) as { execution_id: string };
    const good = await run("run", "parts.yaml", "--server", "--watch", "--json", "--input", '{"x": 1}');
    const { execution_id: latest } = JSON.parse(good.stdout) as { execution_id: string };
    expect((await json<{ items: { workflow: string }[] }>("ls", "--limit", "1")).items[0]!.workflow).toBe("parts[m]");
    expect([await named("@latest"), await named("@failed")]).toEqual([latest, failed]);
  });

  test("retry and rerun keep what completed, and say beforehand what they would do", async () => {
    const { stdout } = await run("run", "failing.yaml", "--server", "--watch", "--json");
    const { execution_id: id } = JSON.parse(stdout) as { execution_id: string };
    const failure = expect.stringMatching(
      `^FAILED  failing ${id}\n  node "call" failed\n[^]*next: millrace retry ${id}`,
    );
    expect((await run("why", id)).stdout).toEqual(failure);
    expect(await run("result", id)).toMatchObject({ code: 1, stdout: "null\n", stderr: failure });
    expect((await run("retry", id, "--dry-run")).stdout).toContain(`${id} would run again: call, after\n`);
    // Nobody has to be asked before he looks.
    const tried = await run("retry", "--all", "--workflow", "failing", "--dry-run");
    expect([tried.code, tried.stdout]).toEqual([0, expect.stringContaining(`${id} would run again: call, after\n`)]);
    expect((await run("retry", "@failed")).code).toBe(0);
    expect((await run("watch", id)).code).toBe(1);
    const only = await run("rerun", id, "--from", "ok", "--only", "--set", "value=7");
    expect([only.code, only.stdout]).toEqual([0, `${id} running, generation 3\n`]);
    await run("watch", id);
    expect((await json<{ output: unknown }>("show", id, "--node", "ok")).output).toBe(7);
    expect((await run("rerun", id, "--from", "ok", "--only", "--set", 'expression="3 * 3"')).code).toBe(0);
    await run("watch", id);
    expect((await json<{ output: unknown }>("show", id, "--node", "ok")).output).toBe(9);
    expect((await run("rerun", id, "--from", "nobody")).code).toBe(4);
    expect((await run("rerun", id, "--from", "ok", "--set", "value=text")).code).toBe(2);
  });

  test("rerun takes another input, for what runs again", async () => {
    const started = await run("run", "hello.yaml", "--server", "--watch", "--input", '{"n": 3}', "--json");
    const { execution_id: id } = JSON.parse(started.stdout) as { execution_id: string };
    const again = await run("rerun", id, "--from", "load", "--input", '{"n": 5}');
    expect([again.code, again.stderr]).toEqual([0, ""]);
    const watched = await run("watch", id);
    expect([watched.code, JSON.parse(watched.stdout)]).toEqual([0, { twice: 10 }]);
    expect((await run("rerun", id, "--from", "load", "--input", "{n")).code).toBe(3);
  });

  test("a stored workflow runs in the version that is asked for, of a file there is only one", async () => {
    const version = (value: number): string =>
      `name: versioned\nnodes: [{ id: a, handler: output, config: { is: ${value} } }]\n`;
    for (const value of [1, 2]) {
      writeFileSync(join(here, "versioned.yaml"), version(value));
      expect((await run("workflow", "push", "versioned.yaml")).stdout).toBe(`versioned version ${value}\n`);
    }
    const output = async (...more: string[]): Promise<unknown> =>
      JSON.parse((await run("run", "versioned", "--watch", ...more)).stdout);
    expect(await output()).toEqual({ is: 2 });
    expect(await output("--version", "1")).toEqual({ is: 1 });
    expect((await run("run", "versioned", "--version", "3")).code).toBe(4);
    const items = join(here, "versioned.jsonl");
    writeFileSync(items, "{}\n");
    const batch = await run("batch", "run", "versioned", "--version", "1", "--input", items);
    expect([batch.code, batch.stdout]).toEqual([0, expect.stringContaining('"output":{"is":1}')]);
    for (const command of [["run"], ["batch", "run"]]) {
      const file = await run(...command, "versioned.yaml", "--version", "1", "--input", items);
      expect([file.code, file.stderr]).toEqual([2, expect.stringContaining("--version is of a stored workflow")]);
    }
  });

  test("a budget is raised, and a limit set and given back", async () => {
    const paused = await run("run", "spending.yaml", "--server", "--watch", "--no-wait-approval");
    expect([paused.code, paused.stderr]).toEqual([8, expect.stringContaining("b waiting reason=budget")]);
    const { items } = await json<{ items: { key: string }[] }>("budgets");
    const id = items[0]!.key;
    expect((await run("budgets")).stdout).toMatch(
      new RegExp(`^BUDGET +KEY +UNIT +ALLOWS +SPENT +RESERVED +WAITING\nspending +${id} +calls +1 +1 +0 +1\n$`),
    );
    const unsaid = await run("budgets", "raise", "spending");
    expect([unsaid.code, unsaid.stderr]).toEqual([2, expect.stringContaining("for instance --usd 10")]);
    const unknown = await run("budgets", "raise", "spending", "--key", "nobody", "--calls", "3");
    expect([unknown.code, unknown.stderr]).toEqual([4, expect.stringContaining('no budget "spending" of "nobody"')]);
    const second = await run("run", "spending.yaml", "--server", "--watch", "--no-wait-approval");
    expect(second.code).toBe(8);
    const several = await run("budgets", "raise", "spending", "--calls", "3");
    expect([several.code, several.stderr]).toEqual([2, expect.stringContaining("there are 2 budgets")]);
    const raised = await run("budgets", "raise", "spending", "--key", id, "--calls", "3");
    expect(raised.stdout).toMatch(new RegExp(`\nspending +${id} +calls +3 +`));
    const watched = await run("watch", id);
    expect([watched.code, JSON.parse(watched.stdout)]).toEqual([0, { b: 2 }]);
    expect((await run("limits", "set", "site", "--rate", "5", "--per", "minute")).stdout).toMatch(
      /\nsite +rate +5 a minute, 1 at once \(overridden\)/,
    );
    expect((await run("limits", "set", "site")).stdout).toMatch(
      /\nsite +rate +100 a second, 100 at once +0 +0 +open\n$/,
    );
    expect((await run("limits", "set", "site", "--rate", "fast")).code).toBe(2);
  });

  test("the first of two people is told that a second has to decide", async () => {
    const id = await started("two.yaml");
    await expect.poll(async () => (await run("why", id)).stdout).toContain("ask waits for a person");
    expect((await run("approve", `${id}:1:ask`, "--data", '{"total": 5}', "--comment", "five")).stdout).toBe(
      `${id}:1:ask approved by one person; it stays open until a second decides\n`,
    );
    expect((await run("reviews", "show", `${id}:1:ask`)).stdout).toMatch(
      /local said approve; a second has to\n"five"\nFIELD +VALUE +LOCAL .*\ntotal +4 +5/,
    );
    const { stdout } = await run("cancel", id);
    expect(stdout).toBe(`${id} cancelled\n`);
    // What was cancelled can be gone on with, as the one that failed before any node did.
    expect((await run("why", id)).stdout).toBe(`CANCELLED  two ${id}\n  next: millrace retry ${id}\n`);
  });

  test("who does not wait for people watches until one is needed, also without a terminal", async () => {
    expect((await run("run", "two.yaml", "--server", "--no-wait-approval")).code).toBe(8);
  });

  test("reviews are listed and decided once", async () => {
    const id = await started("review.yaml");
    await expect
      .poll(async () => (await run("why", id, "ask")).stdout)
      .toMatch(/^ask waits for a person since \d\d:\d\d UTC; expires in .*; decide: millrace approve /);
    const { items } = await json<{ items: { id: string; execution_id: string }[] }>("reviews");
    const review = items.find(({ execution_id }) => execution_id === id)!.id;
    expect((await run("approve", review)).code).toBe(3);
    const failed = await run("approve", "@failed");
    expect([failed.code, failed.stderr]).toEqual([2, expect.stringContaining('"@failed" names no review.')]);
    expect((await run("reviews", "assign", review, "ann", "bob")).stdout).toBe(`${review} is for ann, bob to decide\n`);
    expect((await run("reviews", "show", review)).stdout).toMatch(/for ann, bob[^]*to +bob +line 1/);
    expect((await run("approve", review, "--data", '{"ok": true}', "--comment", "fine")).stdout).toBe(
      `${review} approved\n`,
    );
    const exported = await run("reviews", "export", "--workflow", "review");
    const examples = exported.stdout.trim().split("\n");
    expect(JSON.parse(examples[0]!)).toMatchObject({
      id: review,
      values: { to: "bob" },
      locks: ["ok"],
      comment: "fine",
    });
    const late = await run("reject", review, "--data", '{"ok": false}');
    expect([late.code, late.stderr]).toEqual([5, expect.stringContaining("REVIEW_CLOSED")]);
    expect(JSON.parse((await run("watch", id)).stdout)).toEqual({ decision: "approve", data: { ok: true } });
  });

  test("signal reaches who waits for it", async () => {
    const id = await started("signal.yaml");
    expect((await run("signal", id, "go", "--data", '{"v": 1}')).code).toBe(0);
    expect(JSON.parse((await run("watch", id)).stdout)).toEqual({ got: { v: 1 } });
  });

  test("dead letters are listed, shown, replayed and dropped", async () => {
    await run("run", "failing.yaml", "--server", "--watch");
    const { items } = await json<{ items: { id: string; node_id: string; status: string }[] }>(
      "dlq",
      "--class",
      "poison",
    );
    const letter = items.find(({ status }) => status === "open")!;
    expect(letter.node_id).toBe("call");
    expect((await json<{ error: { code: string } }>("dlq", "show", letter.id)).error.code).toBe("EGRESS_BLOCKED");
    expect((await run("dlq", "retry", letter.id)).stdout).toMatch(/runs again in/);
    const open = items.filter(({ status, id }) => status === "open" && id !== letter.id);
    expect(open.length).toBeGreaterThan(0);
    expect((await run("dlq", "drop", open[0]!.id)).stdout).toBe(`${open[0]!.id} dropped\n`);
    expect((await run("dlq", "show", open[0]!.id)).code).toBe(4);

    await run("run", "failing.yaml", "--server", "--watch");
    const filters = ["--class", "poison", "--queue", "http"];
    const { items: more } = await json<{ items: { id: string; execution_id: string }[] }>(
      "dlq",
      ...filters,
      "--status",
      "open",
    );
    const [one] = more;
    const all = [...filters, "--all", "--execution", one!.execution_id];
    expect((await run("dlq", "retry", ...all, "--dry-run")).stdout).toBe("1 would run again\n");
    expect((await run("dlq", "retry", one!.id, "--set", 'method="POST"')).stdout).toMatch(/runs again in/);
    expect((await json<{ status: string }>("dlq", "show", one!.id)).status).toBe("replayed");
    await run("watch", one!.execution_id);
    expect((await run("dlq", "retry", ...all)).stdout).toBe("1 runs again\n");
    await run("watch", one!.execution_id);
    expect(await run("dlq", "drop", ...all, "--status", "replayed")).toMatchObject({
      code: 2,
      stderr: "millrace: this would drop 2 dead letters.\n  hint: say so with --yes\n",
    });
    const dropped = await run("dlq", "drop", ...all, "--status", "replayed", "--yes");
    expect(dropped.stdout).toMatch(/dropped\n.*dropped\n/);
    expect((await run("dlq", "drop")).code).toBe(2);
  });

  test("logs keep what handlers say; export and test replay it all offline", async () => {
    const id = await started("flaky.yaml", "--input", '{"x": 5, "password": "hunter2"}');
    await expect.poll(async () => (await run("why", id)).stdout).toContain('waits for the signal "go"');
    await run("signal", id, "go", "--data", '"now"');
    expect((await run("watch", id)).code).toBe(9);
    const lines = (await run("logs", id)).stdout.trimEnd().split("\n");
    const [called, threw, ...rest] = lines.map((line) => line.replace(/^\d\S+ +/, ""));
    expect([called, threw]).toEqual(['a  attempt 1  called  {"x":5}', "a  attempt 1  error  Error: not yet"]);
    expect(rest[0]).toMatch(/^ {8}at .*handlers\.mjs:\d+:\d+/);
    expect(rest.at(-1)).toBe('a  attempt 2  called  {"x":5}');
    const page = await (await fetch(`${server.url}/runs/${id}`)).text();
    expect(page).toMatch(/<pre tabindex="0">Error: not yet\n {4}at .*handlers\.mjs:\d+:\d+/);
    expect((await run("logs", id, "--attempt", "2")).stdout.trimEnd().split("\n")).toHaveLength(1);
    const none = await run("logs", id, "--node", "many");
    expect(none).toMatchObject({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(/^nothing was logged; .*HTTP/) as string,
    });
    const nobody = await run("logs", id, "--node", "nobody");
    expect([nobody.code, nobody.stderr]).toEqual([4, expect.stringContaining('"nobody"')]);
    expect((await run("export", id, "-o", "run.json")).stderr).toBe(
      "wrote run.json; replay it: millrace test run.json\n",
    );
    const text = readFileSync(join(here, "run.json"), "utf8");
    expect(text).not.toContain("hunter2");
    expect(text).not.toContain("abcdefghijkl");
    const same = await run("test", "run.json");
    expect([same.code, same.stdout]).toEqual([
      0,
      expect.stringMatching(/^run\.json: the same: PARTIAL, .* of its time in .*\n$/),
    ]);
    writeFileSync(
      join(here, "changed.yaml"),
      FLAKY.replace("{{ item }}", "{{ item * 2.0 }}").replace("seconds: 0.2", "seconds: 3600"),
    );
    const changed = await run("test", "run.json", "--definition", "changed.yaml");
    expect(changed.code).toBe(1);
    expect(changed.stdout).toContain("many: recorded the output [1,2,3], now [2,4,6]");
  });

  test("workers and doctor tell what is served", async () => {
    expect((await run("workers")).stdout).toMatch(/http, llm, transform, .*flaky, sum/);
    const { code, stdout } = await run("doctor");
    expect(code).toBe(0);
    expect(stdout).toMatch(/✓ server +http:\S+ is ready/);
    expect(stdout).toMatch(/✓ clock/);
  });
});

test("a worker that is full with a handler that does not stop is found by every way there is to look", async () => {
  const here = folder({
    "deaf.mjs": `export const handlers = { deaf: () => new Promise(() => setInterval(() => undefined, 1e6)) };`,
    "deaf.yaml": `name: deaf
nodes:
  - { id: first, handler: deaf, timeout_seconds: 0.1, retry: { max_attempts: 1 } }`,
  });
  const env = { WORKER_CONCURRENCY: "1", WORKER_HEARTBEAT_INTERVAL: "0.2" };
  const server = await serve("memory:", ["--handlers", "deaf.mjs"], { cwd: here, env });
  try {
    const run = (...args: readonly string[]): Promise<Ended> =>
      millrace(args, { cwd: here, env: { MILLRACE_URL: server.url } });
    const kept = (await run("run", "deaf.yaml", "--server")).stdout.trim();
    const [line] = await server.program.says(/.*a handler does not stop when asked.*/);
    expect(JSON.parse(line)).toMatchObject({ deaf: 1, handler: "deaf", execution_id: kept, node_id: "first" });

    const waiting = (await run("run", "deaf.yaml", "--server")).stdout.trim();
    // Who serves what is looked up every two seconds.
    const why = expect.poll(async () => (await run("why", waiting)).stdout, { interval: 500, timeout: 15_000 });
    await why.toContain(`full with handlers that do not stop when asked: "deaf" (first of ${kept})`);
    const workers = await run("workers");
    expect(workers.stdout).toContain("1 of 1, 1 does not stop");
    expect(workers.stderr).toContain(`deaf (first of ${kept})`);
    expect((await run("queues")).stdout).toContain("1 (1 full with handlers that do not stop)");
    const doctor = await run("doctor");
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringMatching(/✗ workers +1 task waits for "deaf"/)]);
  } finally {
    await server.kill();
  }
});

describe("a server with keys", () => {
  test("lets nobody in without one, and each role do its own", async () => {
    const here = folder({ "hello.yaml": HELLO });
    const server = await serve("memory:", [], { cwd: here, env: { MILLRACE_API_KEYS: "viewer:v-key,operator:o-key" } });
    const run = (key: string, ...args: readonly string[]): Promise<Ended> =>
      millrace(args, { cwd: here, env: { MILLRACE_URL: server.url, ...(key !== "" && { MILLRACE_API_KEY: key }) } });
    const without = await run("", "ls");
    expect([without.code, without.stderr]).toEqual([5, expect.stringMatching(/\n {2}hint: .*MILLRACE_API_KEY/)]);
    expect((await run("v-key", "ls")).code).toBe(0);
    const refused = await run("v-key", "submit", "hello.yaml");
    expect([refused.code, refused.stderr]).toEqual([
      5,
      expect.stringContaining('needs the permission "submit", which a key with the role author or admin has'),
    ]);
    await server.stop();
  });

  test("takes keys that were added to its store", async () => {
    const here = folder();
    const store = `sqlite:${join(here, "m.db")}`;
    const add = (): Promise<Ended> => millrace(["keys", "add", "--role", "viewer", "--store", store], { cwd: here });
    const added = await add();
    // It may come before the first start, and then says that it has made the store.
    expect([added.code, added.stderr]).toEqual([0, expect.stringContaining(`no store at ${store}; one was made\n`)]);
    expect((await add()).stderr).not.toContain("no store");
    const server = await serve(store, [], { cwd: here });
    const env = { MILLRACE_URL: server.url };
    expect((await millrace(["ls"], { env })).code).toBe(5);
    expect((await millrace(["ls"], { env: { ...env, MILLRACE_API_KEY: added.stdout.trim() } })).code).toBe(0);
    await server.stop();
  });
});

test("whoever lists or revokes keys makes no store where there is none, and is told so", async () => {
  const here = folder();
  const options = { cwd: here };
  const store = ["--store", `sqlite:${join(here, "data/m.db")}`];
  for (const args of [
    ["keys", "ls"],
    ["keys", "revoke", "k"],
  ]) {
    for (const where of [[], store]) {
      const { code, stdout, stderr } = await millrace([...args, ...where], options);
      expect([args, code, stdout]).toEqual([args, 6, ""]);
      expect(stderr).toMatch(
        /There is no store at sqlite:.+\.db \(STORE_MISSING\)\n {2}hint: name the store you mean: --store/,
      );
    }
  }
  expect(readdirSync(here)).toEqual([]);
  const json = await millrace(["keys", "ls", "--json"], options);
  expect([json.code, json.stderr]).toEqual([6, expect.stringContaining("STORE_MISSING")]);
  await millrace(["keys", "add", "--role", "viewer", ...store], options);
  const listed = await millrace(["keys", "ls", ...store], options);
  expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining("viewer")]);
});
