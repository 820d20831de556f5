import { isOver } from "../drawing/states.ts";
import type { Json } from "../json/json.ts";
import { transitionOf } from "../process/transitions.ts";
import { abortAfter } from "./abort-after.ts";
import type { Call } from "./call.ts";
import { EXIT, exitCodeOf, type ExitCode } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { failureText } from "./failure-text.ts";
import { printJson } from "./print.ts";
import { progressOn } from "./progress.ts";
import type { ShownEvent, ShownExecution, ShownExplanation } from "./shapes.ts";
import { followQueued, handlersOf, waitingInVain } from "./waiting-in-vain.ts";
import { writtenNodes } from "./written-nodes.ts";

/** Where an execution can be followed: on a server, or in this process. */
export interface ExecutionSource {
  execution(id: string): Promise<ShownExecution>;
  /** The whole output. */
  output(id: string): Promise<Json>;
  events(id: string, after: number, signal: AbortSignal): AsyncIterable<ShownEvent>;
  /** Of all nodes that have not ended, or of one, which may be an item of a map. */
  explain(id: string, node?: string): Promise<readonly ShownExplanation[]>;
}

export interface FollowOptions {
  readonly timeoutMs: number | undefined;
  /** Stop when only a person can go on. */
  readonly leaveReviews: boolean;
  /** What becomes of the execution when nobody follows it any more, and what one can do then. */
  readonly onLeave: { readonly goesOn: boolean };
  /** Of a process that nobody else can join: whether it waits in vain for somebody with such a handler. */
  readonly bringsNobody?: (handler: string) => boolean;
}

/** Follows an execution to its end, shows how it goes, prints its output on stdout. */
export async function followExecution(
  call: Call,
  source: ExecutionSource,
  id: string,
  options: FollowOptions,
): Promise<ExitCode> {
  const { terminal } = call;
  const leaving = new AbortController();
  const interrupts = terminal.interrupts();
  const interrupt = (): void => leaving.abort("interrupted");
  if (interrupts.aborted) interrupt();
  interrupts.addEventListener("abort", interrupt, { once: true });
  const stopTimer = abortAfter(leaving, options.timeoutMs);
  try {
    const before = await source.execution(id);
    const progress = progressOn(terminal);
    progress.begin({ id, workflow: before.workflow, nodes: writtenNodes(before.nodes) });
    let left: string | undefined;
    try {
      left = await show(source, id, { ...options, progress, leaving });
    } finally {
      progress.end();
    }
    const execution = await source.execution(id);
    if (!isOver(execution.status)) return leave(call, execution, left ?? "interrupted", options);
    return await tell(call, source, execution, options);
  } finally {
    stopTimer();
    interrupts.removeEventListener("abort", interrupt);
  }
}

/** Shows events as they come. Why it stopped before the end, if it did. */
async function show(
  source: ExecutionSource,
  id: string,
  parts: FollowOptions & { readonly progress: ReturnType<typeof progressOn>; readonly leaving: AbortController },
): Promise<string | undefined> {
  const { progress, leaving, bringsNobody } = parts;
  const queuedAfter = followQueued();
  let hasAsked = false;
  for await (const event of source.events(id, 0, leaving.signal)) {
    const transition = transitionOf(event);
    if (transition === undefined) continue;
    progress.change(transition);
    const { status, reason } = transition;
    const queued = queuedAfter(transition);
    if (bringsNobody !== undefined && queued.size > 0) {
      const nodes = (await waitingInVain(source, id, bringsNobody, queued)) ?? [];
      // What is told may be ahead of what was shown.
      if (nodes.length > 0 && nodes.every(({ node_id: node }) => queued.has(node))) throw unserved(id, nodes);
    }
    hasAsked ||= status === "WAITING" && (reason === "review" || reason === "budget");
    // Whatever else is under way may end after it has asked.
    if (!parts.leaveReviews || !hasAsked || UNDER_WAY.has(status)) continue;
    if (await waitsOnlyForPeople(source, id)) return "review";
  }
  return leaving.signal.aborted ? String(leaving.signal.reason) : undefined;
}

const UNDER_WAY = new Set(["QUEUED", "RUNNING"]);
/** Reasons that somebody else's decision does not lie behind. */
const OTHERS = new Set(["parents", "held"]);

async function waitsOnlyForPeople(source: ExecutionSource, id: string): Promise<boolean> {
  const open = await source.explain(id);
  return open.some(asksPerson) && open.every((each) => asksPerson(each) || OTHERS.has(each.reason));
}

function unserved(id: string, nodes: readonly ShownExplanation[]): Failure {
  const first = `${nodes[0]!.node_id}${nodes.length > 1 ? ` and ${nodes.length - 1} more` : ""}`;
  return new Failure(
    EXIT.failed,
    `${id} ends here: ${first} would wait for ever, as nobody brings ${handlersOf(nodes)}.`,
    {
      code: "UNKNOWN_HANDLER",
      hint: "name the module that brings it: --handlers FILE   or run it where workers do: --server",
    },
  );
}

/** A budget that is used up may ask for more by a review. */
function asksPerson({ reason, details }: ShownExplanation): boolean {
  return reason === "review" || (reason === "budget" && typeof details?.["review"] === "string");
}

/** Nobody but the one process can see what is in its memory. */
const ELSEWHERE = "To have it decided, run it where it goes on: --server";

function leave(
  call: Call,
  { execution_id: id, status }: ShownExecution,
  why: string,
  { onLeave: { goesOn } }: FollowOptions,
): ExitCode {
  const { terminal } = call;
  const fate = goesOn ? `It goes on: millrace watch ${id}` : "It ends with this process.";
  switch (why) {
    case "timeout":
      terminal.err(`millrace: ${id} is still ${status} after the timeout. ${fate}\n`);
      return EXIT.timeout;
    case "review":
      terminal.err(`millrace: ${id} waits for a person${goesOn ? ": millrace reviews" : `. ${fate} ${ELSEWHERE}`}\n`);
      return EXIT.waitingForPerson;
    default:
      terminal.err(`millrace: interrupted; ${id} is ${status}. ${fate}\n`);
      return EXIT.interrupted;
  }
}

async function tell(
  call: Call,
  source: ExecutionSource,
  execution: ShownExecution,
  { onLeave }: FollowOptions,
): Promise<ExitCode> {
  const { status, execution_id: id } = execution;
  if (call.json) printJson(call, execution);
  else if (status === "COMPLETED" || status === "PARTIAL") printJson(call, await source.output(id));
  if (status !== "COMPLETED") call.terminal.err(failureText(execution, onLeave.goesOn));
  return exitCodeOf(status);
}
