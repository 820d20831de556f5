import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EDGE_TABLE } from "../src/core/execution/edges.ts";
import { HANDLER_ALIASES } from "../src/definition/builtin-handlers.ts";
import {
  MAX_RETRIES_FIELD,
  NODE_FIELDS,
  REPEAT_FIELDS,
  RETRY_FIELDS,
  WORKFLOW_FIELDS,
} from "../src/definition/fields.ts";
import { DEFAULT_RETRY } from "../src/definition/load-retry.ts";
import { readDefinition } from "../src/definition/read.ts";
import type { Workflow } from "../src/definition/workflow.ts";
import { FUNCTIONS, METHODS } from "../src/expression/cel-functions.ts";
import { MACRO_NAMES } from "../src/expression/cel-macros.ts";
import { FILTER_NAMES } from "../src/expression/filters.ts";
import { builtinHandlers } from "../src/handlers/builtins.ts";
import { nodeHost } from "../src/host/node-host.ts";
import type { Json, JsonObject } from "../src/json/json.ts";
import type { ExecutionView } from "../src/sdk/backend.ts";
import { LocalBackend } from "../src/sdk/local-backend.ts";
import { VirtualWorld } from "../src/testing/virtual-world.ts";

const PAGE = readFileSync(join(import.meta.dirname, "..", "docs/workflows.md"), "utf8");
const DAY_MS = 86_400_000;

/** What one line below an example says: with this input, and perhaps something done meanwhile, it ends like that. */
interface Run {
  readonly input: string;
  readonly does?: string;
  readonly node: string;
  readonly data: string;
  readonly status: string;
  /** The output, or the code of the error. */
  readonly result: string;
  /** `id STATUS reason`, or of a node that failed its code. */
  readonly nodes: readonly string[];
}

const EXAMPLES = [...PAGE.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text]) => ({
  text: text!,
  name: /^name: (.+)$/m.exec(text!)?.[1] ?? text!,
  runs: [...text!.matchAll(/^# (.+) gives ([A-Z]+) (.+)$/gm)].map(([, given, status, rest]): Run => {
    const [input, more = ""] = given!.split(/, (?=signal |approve |reject )/);
    const [, does, node = "", data = "null"] = /^(\w+) (\S+)(?: (.+))?$/.exec(more) ?? [];
    const [result, ...nodes] = rest!.split(/, (?=[\w.-]+ (?:COMPLETED|FAILED|SKIPPED|CANCELLED)\b)/);
    return { input: input!, ...(does !== undefined && { does }), node, data, status: status!, result: result!, nodes };
  }),
}));

function read(text: string): Workflow {
  const { workflow, errors, warnings } = readDefinition(text, { format: "yaml" });
  expect({ errors, warnings: warnings.map(({ code }) => code) }).toEqual({ errors: [], warnings: [] });
  return workflow!;
}

/** Runs it in a time of its own, so that nobody waits for its waits. */
async function ended(text: string, { input, does, node, data }: Run): Promise<ExecutionView> {
  let world: VirtualWorld | undefined;
  const host = { ...nodeHost, sleep: (ms: number, signal?: AbortSignal) => world!.host.sleep(ms, signal) };
  const builtins = builtinHandlers({ host, env: {} });
  world = new VirtualWorld({
    seed: 1,
    startAtMs: Date.UTC(2030, 0, 1),
    patienceMs: 20,
    handlers: builtins.handlers,
    queues: [...builtins.handlers.keys()],
    logged: () => {},
  });
  try {
    await world.boot();
    const backend = new LocalBackend(world.service, async () => {});
    const ask = <T>(asked: Promise<T>): Promise<T> => world.until(asked);
    // Itself, and what it calls by the name that another example has.
    for (const other of EXAMPLES.filter(({ name }) => text.includes(`name: ${name}`)))
      await ask(backend.publish(read(other.text) as unknown as JsonObject));
    const request = { input: JSON.parse(input) as Json };
    const { execution_id: id } = await ask(backend.start(read(text).name, request, "start"));
    await world.settle();
    if (does === "signal")
      await ask(backend.command(id, "signal", { name: node, data: JSON.parse(data) as Json }, "s"));
    else if (does !== undefined) {
      const decision = does as "approve" | "reject";
      await ask(backend.decide(`${id}:1:${node}`, { decision, data: JSON.parse(data) as Json }, "d"));
    }
    await world.advance(8 * DAY_MS);
    return await ask(backend.execution(id));
  } finally {
    await world.close();
    await builtins.close();
  }
}

describe("docs/workflows.md", () => {
  test.each(EXAMPLES)("$name is valid, without a warning", ({ text }) => {
    read(text);
  });

  test.each(EXAMPLES.flatMap(({ name, text, runs }) => runs.map((run) => ({ name, text, run }))))(
    "$name with $run.input gives $run.status $run.result",
    async ({ text, run }) => {
      const { status, output, error, nodes = {} } = await ended(text, run);
      expect(`${status} ${status === "FAILED" ? error?.code : JSON.stringify(output)}`).toBe(
        `${run.status} ${run.status === "FAILED" ? run.result : JSON.stringify(JSON.parse(run.result))}`,
      );
      const shown = run.nodes.map((said) => {
        const id = said.slice(0, said.indexOf(" "));
        const { status: state, reason, error: why } = nodes[id]!;
        return [id, state, why?.code ?? reason].filter((word) => word !== null).join(" ");
      });
      expect(shown).toEqual(run.nodes);
    },
    30_000,
  );

  test("has no example that does not run", () => {
    expect(EXAMPLES.filter(({ runs }) => runs.length === 0)).toEqual([]);
    // A comment that is not read as a run would say something that nobody proves.
    expect(PAGE.match(/^# \{.*$/gm)).toHaveLength(EXAMPLES.flatMap(({ runs }) => runs).length);
  });

  test("says what each dependency comes to, and the defaults of a retry", () => {
    const rows = [...PAGE.matchAll(/^\| .+ \| (ok|void|bad) \| (ok|void|bad) \| (ok|void|bad) \|$/gm)];
    expect(rows.map(([, ...verdicts]) => verdicts)).toEqual(
      Object.values(EDGE_TABLE).map(({ completed, failed, done }) => [completed, failed, done]),
    );
    for (const [field, value] of Object.entries(DEFAULT_RETRY)) expect(PAGE).toMatch(`\`${field}\` (${value}`);
  });

  test("names every field, other name, filter and function that there is", () => {
    const tables = [WORKFLOW_FIELDS, NODE_FIELDS, RETRY_FIELDS, REPEAT_FIELDS, { max_retries: MAX_RETRIES_FIELD }];
    const fields = tables.flatMap((table) =>
      Object.entries(table).flatMap(([name, { aliases = [] }]) => [name, ...aliases]),
    );
    const called = [...FUNCTIONS.keys(), ...METHODS.keys(), ...MACRO_NAMES, ...FILTER_NAMES];
    const spans = new Set([...PAGE.matchAll(/`([^`\n]+)`/g)].flatMap(([, span]) => span!.match(/[\w.]+/g) ?? []));
    expect([...fields, ...called, ...HANDLER_ALIASES.keys()].filter((name) => !spans.has(name))).toEqual([]);
  });
});
