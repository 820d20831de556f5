import { upstreamFailed } from "../../core/execution/reopen.ts";
import type { ExecutionState } from "../../core/execution/state.ts";
import { type NodeSummary, retryableFrom, viewNode } from "../../core/execution/view.ts";
import type { ErrorValue } from "../../core/message.ts";
import type { KeptValue } from "../../core/value.ts";
import type { Json } from "../../json/json.ts";
import { MAX_NODES_SHOWN } from "../limits.ts";
import { batchStatus } from "./batch-status.ts";
import type { Payload } from "./payloads.ts";

/**
 * An answer as it is written: text with places for payloads. Payloads are written once, where they are found, and never
 * copied into an object only to be written again.
 */
export interface AnswerDraft {
  readonly payloads: readonly Payload[];
  /** The whole text, given those of the payloads. */
  compose(texts: readonly string[]): string;
}

export function iso(ms: number | null): string | null {
  return ms === null ? null : isoTime(ms);
}

let knownSecond = Number.NaN;
let knownText = "";

/** The same as `toISOString`. What stands in one answer has mostly happened in the same few seconds. */
export function isoTime(ms: number): string {
  const second = Math.floor(Math.trunc(ms) / 1_000);
  if (second !== knownSecond) {
    knownText = new Date(second * 1_000).toISOString().slice(0, -"000Z".length);
    knownSecond = second;
  }
  return `${knownText}${String(Math.trunc(ms) - second * 1_000).padStart(3, "0")}Z`;
}

export function nodeHref(id: string, node: string): string {
  return `/v1/executions/${id}/nodes/${encodeURIComponent(node)}`;
}

/** `GET /v1/executions/{id}`. `version` is the number of its workflow. */
export function draftExecution(state: ExecutionState, version: number | null): AnswerDraft {
  const { id, plan } = state;
  const { nodeCount, ids } = plan.graph;
  const isShown = nodeCount <= MAX_NODES_SHOWN;
  const output = draftOutput(state);
  const spared = isShown ? upstreamFailed(state) : new Set<number>();
  const nodes = isShown ? ids.map((_, node) => viewNode(state, node, spared)) : [];
  const payloads: Payload[] = [
    { value: state.input, href: `/v1/executions/${id}/input` },
    ...output.payloads,
    ...nodes.map(({ output: value }, node) => new NodePayload(value, id, ids[node]!)),
  ];
  const head = JSON.stringify({
    execution_id: id,
    workflow: plan.workflow.name,
    version,
    workflow_definition_id: plan.hash,
    status: state.status.toUpperCase(),
    generation: state.generation,
    seq: state.version,
    labels: state.labels ?? {},
  });
  const retryable = retryableFrom(state);
  const batch = batchStatus(state);
  const tail = JSON.stringify({
    error: executionError(state.end?.error ?? null),
    created_at: iso(state.createdAtMs),
    started_at: iso(state.startedAtMs),
    finished_at: iso(state.endedAtMs),
    ...(batch !== undefined && { batch_status: batch }),
    ...(state.parent !== null && { parent: parentOf(state) }),
    ...(state.quarantined !== null && { quarantined: shownError(state.quarantined) }),
    ...((state.status === "failed" || state.status === "partial") && { retryable_from: retryable }),
    ...(!isShown && { nodes_omitted: nodeCount }),
  });
  return {
    payloads,
    compose: (texts) => {
      const first = 1 + output.payloads.length;
      const shown = `${head.slice(0, -1)},"input":${texts[0]},"output":${output.compose(texts.slice(1, first))},${tail.slice(1)}`;
      if (!isShown) return shown;
      const members = nodes.map((node, i) => `${JSON.stringify(ids[i])}:${nodeText(node, texts[first + i]!)}`);
      return `${shown.slice(0, -1)},"nodes":{${members.join(",")}}}`;
    },
  };
}

/** One node, or one item of a map, with its output; `name` if it was asked for by another than it has in its execution. */
export function draftNode(
  state: ExecutionState,
  unit: number,
  spared?: ReadonlySet<number>,
  name: string = state.nameOf(unit),
): AnswerDraft {
  const node = viewNode(state, unit, spared);
  return {
    payloads: [{ value: node.output, href: nodeHref(state.id, state.nameOf(unit)) }],
    compose: ([text]) => `{"node_id":${JSON.stringify(name)},${nodeText(node, text!).slice(1)}`,
  };
}

/** What an `end` node gave, else what the `output` nodes gave, else those on which nothing depends. */
export function draftOutput(state: ExecutionState): AnswerDraft {
  const { plan, end, id } = state;
  const whole = (value: KeptValue | null): AnswerDraft => ({
    payloads: [{ value, href: `/v1/executions/${id}/output` }],
    compose: ([text]) => text!,
  });
  if (end === null || end.status === "failed" || end.status === "cancelled") return whole(null);
  if (end.output !== null) return whole(end.output);
  const completed = plan.outputs.filter((node) => state.statusOf(node) === "completed");
  const outputOf = (node: number | undefined): KeptValue | null =>
    node === undefined ? null : (state.runs[node]?.output ?? null);
  if (plan.soleOutput) return whole(outputOf(completed[0]));
  const { ids } = plan.graph;
  return {
    payloads: completed.map((node) => new NodePayload(outputOf(node), id, ids[node]!)),
    compose: (texts) => `{${joined(texts, (text, i) => `${JSON.stringify(ids[completed[i]!])}:${text}`)}}`,
  };
}

/** Most are shown whole, and their address is of no use. */
class NodePayload implements Payload {
  readonly value: KeptValue | null;
  readonly #execution: string;
  readonly #node: string;

  constructor(value: KeptValue | null, execution: string, node: string) {
    this.value = value;
    this.#execution = execution;
    this.#node = node;
  }

  get href(): string {
    return nodeHref(this.#execution, this.#node);
  }
}

const BLOCK = 1_000;

/** Of a hundred thousand members so many are there at a time, and not all of them beside the text of all. */
function joined(texts: readonly string[], member: (text: string, i: number) => string): string {
  const blocks: string[] = [];
  for (let from = 0; from < texts.length; from += BLOCK) {
    const block = texts.slice(from, from + BLOCK);
    blocks.push(block.map((text, i) => member(text, from + i)).join(","));
  }
  return blocks.join(",");
}

function nodeText(node: NodeSummary, output: string): string {
  const head = JSON.stringify({ status: node.status, attempt: node.attempt, deliveries: node.deliveries });
  const tail = JSON.stringify({
    error: node.error === null ? null : shownError(node.error),
    reason: node.reason,
    until: iso(node.until),
    queued_at: iso(node.queuedAtMs),
    started_at: iso(node.startedAtMs),
    finished_at: iso(node.endedAtMs),
    usage: node.usage ?? null,
    child_execution_id: node.child ?? null,
    ...(node.cachedFrom !== undefined && { cached_from: node.cachedFrom }),
    ...(node.iteration !== undefined && { iteration: node.iteration }),
    ...(node.items !== undefined && { items: node.items }),
  });
  return `${head.slice(0, -1)},"output":${output},${tail.slice(1)}`;
}

export function shownError({ code, message, retryable, details }: ErrorValue): Json {
  return { code, message, retryable, ...(details !== undefined && { details }) };
}

/** That of an execution names the node that failed first. */
export function executionError(error: NonNullable<ExecutionState["end"]>["error"]): Json {
  if (error === null) return null;
  return { ...(shownError(error) as object), ...(error.node !== undefined && { node_id: error.node }) };
}

function parentOf({ parent }: ExecutionState): Json {
  const { entity, instance } = parent!;
  return { execution_id: entity.slice(entity.indexOf("/") + 1), node_id: instance };
}
