import type { Machine, MachineEvent } from "../core/machine.ts";
import type { Message } from "../core/message.ts";

interface Tally {
  readonly id: string;
  version: number;
  readonly children: Map<string, string>;
  createdAtMs: number;
}

interface ChildCounted extends MachineEvent {
  readonly kind: "childCounted";
  readonly child: string;
  readonly status: string;
}

/**
 * A second kind of entity, for the simulator: hears of the end of executions by mail and counts each once. It stands for
 * the parents, batches and limits that will live beside executions, and proves that the shell does not care.
 */
export const tallyMachine: Machine<Tally, ChildCounted> = {
  kind: "tally",
  eventFormat: 1,
  snapshotFormat: 1,
  definitionOf: () => undefined,
  isStart: (body) => body.kind === "childEnded",
  prepareDefinition: () => undefined,
  create: (id) => ({ id, version: 0, children: new Map(), createdAtMs: 0 }),
  decide: (state, message: Message, context) => {
    const { body } = message;
    if (body.kind !== "childEnded" || state.children.has(`${body.child}:${body.generation}`)) return { events: [] };
    const child = `${body.child}:${body.generation}`;
    return { events: [{ kind: "childCounted", atMs: context.nowMs, child, status: body.status }] };
  },
  advance: () => ({ events: [] }),
  evolve: (state, event) => {
    state.version++;
    if (state.version === 1) state.createdAtMs = event.atMs;
    if (event.kind === "childCounted") state.children.set(event.child, event.status);
  },
  check: () => {},
  hasWork: () => false,
  nextWakeMs: () => null,
  liveTokens: () => [],
  liveTasks: () => new Map(),
  liveCount: () => 0,
  openTasks: () => ({ tasks: [], needs: [] }),
  withdrawn: () => [],
  isEnded: () => false,
  versionOf: (state) => state.version,
  header: (state) => ({
    class: "open",
    status: "COUNTING",
    workflow: "tally",
    tenant: "default",
    createdAtMs: state.createdAtMs,
    endedAtMs: null,
  }),
  snapshot: (state) => JSON.stringify({ version: state.version, children: [...state.children], at: state.createdAtMs }),
  restore: (id, _definition, text) => {
    const { version, children, at } = JSON.parse(text) as { version: number; children: [string, string][]; at: number };
    return { id, version, children: new Map(children), createdAtMs: at };
  },
  definitionOfSnapshot: () => undefined,
};
