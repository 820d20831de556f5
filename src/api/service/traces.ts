import { entityId } from "../../core/entity.ts";
import { upstreamFailed } from "../../core/execution/reopen.ts";
import type { ExecutionState } from "../../core/execution/state.ts";
import { type NodeSummary, viewNode } from "../../core/execution/view.ts";
import type { Parent } from "../../core/message.ts";
import { contentHash } from "../../json/hash.ts";
import type { ExecutionReader } from "./execution-reader.ts";

/** A piece of work and its times, as tracing tools show it. */
export interface Span {
  /** 32 hex digits: all that belongs together. */
  readonly traceId: string;
  /** 16 hex digits. The same work has the same, whoever tells of it. */
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** Why it failed, if it did. */
  readonly error: string | undefined;
}

/** Where the spans of an execution belong. */
export interface SpanPlace {
  readonly traceId: string;
  readonly parentSpanId: string | undefined;
}

/** Of an execution with more nodes than this, the first are told; the rest are counted. */
const MAX_STEPS = 1_000;
const MAX_ERROR_CHARS = 500;

/** Executions as traces tell of them, once they are over. */
export class Traces {
  readonly #reader: ExecutionReader;

  constructor(reader: ExecutionReader) {
    this.#reader = reader;
  }

  /** The last generation of an execution and what ran in it; nothing if whoever has called wants it not traced. */
  async spans(id: string): Promise<readonly Span[]> {
    const { trace, parent } = await this.#reader.read(id, ({ state }) => ({
      trace: state.trace,
      parent: state.parent,
    }));
    const given = readTrace(trace);
    if (given?.isWanted === false) return [];
    const caller = parent === null ? undefined : await this.#caller(parent);
    const place = {
      traceId: given?.traceId ?? contentHash(`trace ${caller?.root ?? id}`).slice(0, 32),
      parentSpanId: caller?.spanId ?? given?.parentSpanId,
    };
    return this.#reader.read(id, ({ state }) => spansOf(state, place));
  }

  /** The node that it was called by, and the execution that nobody has called. Where one is gone, the line ends. */
  async #caller(parent: Parent): Promise<{ readonly spanId: string; readonly root: string }> {
    const id = entityId(parent.entity);
    const above = await this.#reader.find(id, ({ state }) => ({ generation: state.generation, parent: state.parent }));
    let root = id;
    for (let next = above?.parent ?? null; next !== null;) {
      root = entityId(next.entity);
      next = (await this.#reader.find(root, ({ state }) => state.parent)) ?? null;
    }
    return { spanId: spanIdOf(id, above?.generation ?? 1, parent.instance), root };
  }
}

/** A span for the generation as a whole, and below it one for each node and item that ran in it. */
export function spansOf(state: ExecutionState, { traceId, parentSpanId }: SpanPlace): Span[] {
  const { id, generation, plan, endedAtMs } = state;
  if (endedAtMs === null) return [];
  const whole = spanIdOf(id, generation, "");
  const common = { "workflow.name": plan.workflow.name, "workflow.id": plan.hash, "execution.id": id };
  const spared = upstreamFailed(state);
  const steps: Span[] = [];
  let omitted = 0;
  for (let unit = 0; unit < state.runs.length; unit++) {
    // What was kept of an earlier generation was told with that.
    if (state.runs[unit]?.generation !== generation) continue;
    const view = viewNode(state, unit, spared);
    const startMs = startOf(view);
    if (startMs === undefined) continue;
    if (steps.length >= MAX_STEPS) {
      omitted++;
      continue;
    }
    const above = state.isItem(unit) ? spanIdOf(id, generation, state.nameOf(state.mapOf(unit).node)) : whole;
    const { spec } = state.planOf(unit);
    // The graph of an item has no handler.
    const handler = spec.handler === "" ? "graph" : spec.handler;
    steps.push({
      traceId,
      spanId: spanIdOf(id, generation, state.nameOf(unit)),
      parentSpanId: above,
      name: `workflow.step.${(spec.type ?? handler).toLowerCase()}`,
      startMs,
      endMs: Math.max(startMs, view.endedAtMs ?? endedAtMs),
      attributes: {
        "step.id": state.nameOf(unit),
        ...(spec.name !== undefined && { "step.name": spec.name }),
        "step.handler": handler,
        "step.status": view.status,
        "step.attempts": view.attempt,
        ...common,
      },
      error: view.status === "FAILED" ? inShort(view.error) : undefined,
    });
  }
  // Of a later generation only its nodes tell when it began.
  const began = generation === 1 ? (state.startedAtMs ?? state.createdAtMs) : endedAtMs;
  const startMs = steps.reduce((first, step) => Math.min(first, step.startMs), began);
  const root: Span = {
    traceId,
    spanId: whole,
    parentSpanId,
    name: "workflow.execution",
    startMs,
    endMs: Math.max(startMs, endedAtMs),
    attributes: {
      ...common,
      "execution.generation": generation,
      "execution.status": state.status.toUpperCase(),
      ...(omitted > 0 && { "steps.omitted": omitted }),
    },
    error: state.end?.status === "failed" ? inShort(state.end.error) : undefined,
  };
  return [root, ...steps];
}

/** What was never begun is no work: skipped nodes, and those that the end of the execution has caught waiting. */
function startOf({ status, startedAtMs, queuedAtMs, endedAtMs }: NodeSummary): number | undefined {
  if (status === "SKIPPED") return undefined;
  // The engine's own nodes take no time.
  const atOnce = status === "COMPLETED" || status === "FAILED" ? endedAtMs : null;
  return startedAtMs ?? queuedAtMs ?? atOnce ?? undefined;
}

function inShort(error: { readonly code: string; readonly message: string } | null): string {
  return error === null ? "failed" : `${error.code}: ${error.message}`.slice(0, MAX_ERROR_CHARS).toWellFormed();
}

/** The same for everybody who asks, so that a child knows the span of the node that has called it. */
function spanIdOf(execution: string, generation: number, instance: string): string {
  return contentHash(JSON.stringify([execution, generation, instance])).slice(0, 16);
}

/** A W3C traceparent; undefined if there was none, or one that means nothing. */
function readTrace(
  trace: string,
): { readonly traceId: string; readonly parentSpanId: string; readonly isWanted: boolean } | undefined {
  const [, traceId, parentSpanId, flags] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(trace) ?? [];
  if (traceId === undefined || /^0+$/.test(traceId) || /^0+$/.test(parentSpanId!)) return undefined;
  return { traceId, parentSpanId: parentSpanId!, isWanted: (Number.parseInt(flags!, 16) & 1) === 1 };
}
