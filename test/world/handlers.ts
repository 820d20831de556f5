import { open } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "../../src/json/json.ts";
import type { TaskContext } from "../../src/sdk/task-context.ts";
import { HandlerError } from "../../src/worker/handler.ts";
import type { LedgerLine } from "./notes.ts";
import { LEDGER_VARIABLE } from "./plan.ts";

type Run<Config> = (config: Config, context: TaskContext) => Json | Promise<Json>;

/** The world outside: it stays when the process dies, and remembers who did what under which key. */
const ledger = await open(process.env[LEDGER_VARIABLE]!, "a");

async function note(context: TaskContext, kind: LedgerLine["kind"]): Promise<void> {
  const { executionId: execution, nodeId: node, attempt, idempotencyKey: key } = context;
  const at = Number(process.hrtime.bigint()) / 1e6;
  const line: LedgerLine = { at, pid: process.pid, kind, execution, node, attempt, key };
  // On a line of its own, whatever a process that was killed has left of the one before.
  await ledger.appendFile(`\n${JSON.stringify(line)}\n`);
}

export function recorded<Config>(run: Run<Config>): Run<Config> {
  return async (config, context) => {
    await note(context, "begun");
    const output = await run(config, context);
    await note(context, "done");
    await ledger.datasync();
    return output;
  };
}

export const handlers = {
  add: recorded(({ a, b }: { a: number; b: number }) => ({ sum: a + b })),
  double: recorded(({ value }: { value: number }) => ({ value: value * 2 })),
  total: recorded(({ values }: { values: readonly number[] }) => ({ total: values.reduce((sum, n) => sum + n, 0) })),
  /** Fails as often as it is told; a restart must not make it fail less or more often. */
  flaky: recorded(({ value, failures }: { value: number; failures: number }, { attempt }) => {
    if (attempt <= failures) throw new HandlerError("FLAKY", `attempt ${attempt}`, { retryable: true });
    return { value };
  }),
  /** Succeeds once somebody has asked for it again. */
  mended: recorded(({ value }: { value: number }, { generation }) => {
    if (generation === 1) throw new HandlerError("BROKEN", "not yet", { retryable: false });
    return { value };
  }),
  /** The round it is in, as its key tells it. */
  round: recorded((_config: object, { idempotencyKey }) => ({ round: Number(/@(\d+)\//.exec(idempotencyKey)?.[1]) })),
  large: recorded(({ letter, count }: { letter: string; count: number }) => ({ text: letter.repeat(count) })),
  measure: recorded(({ text }: { text: string }) => ({ first: text[0]!, length: text.length })),
  slow: recorded(async ({ value, ms }: { value: number; ms: number }, { signal }) => {
    await sleep(ms, undefined, { signal });
    return { value };
  }),
  /** The first attempt never ends by itself. */
  stuck: recorded(async ({ value }: { value: number }, { attempt, signal }) => {
    if (attempt === 1) await sleep(3_600_000, undefined, { signal });
    return { value };
  }),
};
