import { type Handlers, readyHandlers } from "../sdk/handlers.ts";
import { Client, type InputArguments } from "../sdk/client.ts";
import type { Body } from "../sdk/closure.ts";
import { type Duration, durationMs } from "../sdk/duration.ts";
import { LocalBackend } from "../sdk/local-backend.ts";
import { ThrownErrors } from "../sdk/thrown-errors.ts";
import { PARTS, type Workflow } from "../sdk/workflow.ts";
import { prepare } from "./stand-ins.ts";
import { type TestLog, TestRun } from "./run-under-test.ts";
import { VirtualWorld } from "./virtual-world.ts";

export type { TestLog, TestNode, TestRun } from "./run-under-test.ts";

export interface TestOptions {
  /** Instead of what nodes do, by node: called with the same arguments. Of a sub-workflow: with its input. */
  readonly mocks?: Readonly<Record<string, Body>>;
  /** Nodes, or items of a map such as `ocr[2]`, whose first attempt fails. */
  readonly failOnce?: readonly string[];
  /** Handlers by name, for nodes that are no functions. */
  readonly handlers?: Handlers;
  /** The same seed gives the same ids and jitter. */
  readonly seed?: number;
  /** What the clock shows at the beginning; 2030-01-01 by default. */
  readonly startAt?: Date;
  /** How long, in real time, to wait for a function that does not end, before time may pass without it; 1 s by default. */
  readonly patience?: Duration;
}

const START = Date.UTC(2030, 0, 1);

/**
 * Runs a workflow without infrastructure, in a time of its own: the production engine and worker over a store in memory.
 * Gives the run as far as it comes before time has to pass or somebody has to do something.
 */
export async function testRun<In, Out>(
  workflow: Workflow<In, Out>,
  ...[input, options = {}]: InputArguments<NoInfer<In>, TestOptions>
): Promise<TestRun<Out>> {
  const { mocks = {}, failOnce = [], handlers = {}, seed = 1, startAt, patience = "1s" } = options;
  const prepared = prepare(workflow[PARTS], { mocks, failOnce, handlers: readyHandlers(handlers).handlers });
  const logs: TestLog[] = [];
  const thrown = new ThrownErrors();
  const world = new VirtualWorld({
    seed,
    startAtMs: startAt?.getTime() ?? START,
    patienceMs: durationMs(patience, "patience"),
    handlers: new Map([...prepared.handlers].map(([name, handler]) => [name, thrown.of(handler)])),
    queues: prepared.queues,
    // Only what it said: a test finds what was thrown as the cause of the run's error.
    logged: ({ node, attempt }, { level, ...entry }) =>
      level === undefined ? void logs.push({ node, attempt, ...entry }) : undefined,
  });
  await world.boot();
  const client = (): Client => new Client(new LocalBackend(world.service, async () => {}, thrown), world.host);
  const tested = { ...workflow, [PARTS]: prepared.parts } as Workflow<In, Out>;
  const starting = client().start(tested, ...([input] as unknown as InputArguments<NoInfer<In>, never>));
  try {
    const { id } = await world.until(starting);
    return await TestRun.begin<Out>(id, world, () => client().get<Out>(id), { logs, thrown });
  } catch (error) {
    await world.close();
    throw error;
  }
}
