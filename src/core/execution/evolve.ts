import type {
  Accepted,
  CommandApplied,
  CommandRefused,
  DeliveryLostEvent,
  ExecutionEnded,
  ExecutionEvent,
  NodeCompleted,
  NodeFailed,
  NodeWaiting,
  Paused,
  Resumed,
  ReviewEscalated,
  Started,
  TaskCompletedEvent,
  TaskDispatched,
  TaskFailedEvent,
} from "./events.ts";
import {
  addAsk,
  answerAsk,
  AS_RESERVED,
  fallbackModel,
  forgetCache,
  gatesReturned,
  returnAsks,
  returnDelivery,
  returnStarted,
  stallAsk,
} from "./asks.ts";
import { isKeptLetter, letterId } from "./letters.ts";
import type { Value } from "../value.ts";
import { closeMap, endItem, openMap } from "./maps.ts";
import { assertMove, type NodeStatus } from "./moves.ts";
import { NO_NONCES } from "./node-run.ts";
import { openGeneration } from "./reopen.ts";
import { withChange } from "./review-listing.ts";
import { usedByFailure, usedByResult } from "./spending.ts";
import { repair } from "./sweep.ts";
import { deriveGraph, join, placeJoined, spread } from "./spread.ts";
import { type CommandAnswer, type ExecutionState, REMEMBERED_REQUESTS, WORKFLOW_TIMER } from "./state.ts";
import { dequeue, endWait, enqueue, indexWait, isClosing, isDefinite, setDue, setLive } from "./units.ts";

/** An output below this size stays in the state; dropping it would save nothing. */
const DROP_BYTES = 1024;

/**
 * Applies one event. The only function that changes an execution's state: replaying a journal through it is recovery,
 * reading and time travel alike, so it looks at nothing but the state and the event.
 */
export function evolve(state: ExecutionState, event: ExecutionEvent): void {
  state.version++;
  apply(state, event);
  state.timers.settle(state.timedCount + 1);
  state.calendar.settle(state.timedCount + 1);
}

function apply(state: ExecutionState, event: ExecutionEvent): void {
  switch (event.kind) {
    case "accepted":
      return accepted(state, event);
    case "started":
      return started(state, event);
    case "paused":
    case "resumed":
      return pausedOrResumed(state, event);
    case "generationOpened":
      assertMove("execution", state.status, event.kind, "running", state.id);
      return openGeneration(state, event);
    case "taskDispatched":
      return taskDispatched(state, event);
    case "taskStarted": {
      const unit = unitOf(state, event.node);
      move(state, unit, event, "running");
      state.run(unit).startedAtMs = event.startedAtMs;
      setDue(state, unit, event.runDeadlineAtMs);
      returnStarted(state, unit);
      return;
    }
    case "taskCompleted":
      return taskCompleted(state, event);
    case "taskFailed":
      return taskFailed(state, event);
    case "deliveryLost":
      return deliveryLost(state, event);
    case "retryDue":
    case "roundDue": {
      const unit = unitOf(state, event.node);
      move(state, unit, event, "pending");
      setDue(state, unit, null);
      if (event.kind === "roundDue") beginRound(state, unit);
      return enqueue(state, unit);
    }
    case "roundEnded": {
      const unit = unitOf(state, event.node);
      dequeue(state, unit, true);
      move(state, unit, event, event.nextAtMs === null ? "completed" : "waiting");
      if (event.nextAtMs === null) return endUnit(state, unit, event.atMs);
      return setDue(state, unit, event.nextAtMs);
    }
    case "nodeCompleted":
      return nodeCompleted(state, event);
    case "nodeFailed":
      return nodeFailed(state, event);
    case "nodeSkipped": {
      const unit = unitOf(state, event.node);
      move(state, unit, event, "skipped");
      state.run(unit).skipReason = event.reason;
      return endUnit(state, unit, event.atMs);
    }
    case "nodeWaiting":
      return nodeWaiting(state, event);
    case "mapOpened": {
      const unit = unitOf(state, event.node);
      move(state, unit, event, "running");
      dequeue(state, unit);
      const run = state.run(unit);
      run.startedAtMs = event.atMs;
      run.seen = event.seen;
      return openMap(state, unit, event);
    }
    case "signalReceived": {
      const kept = state.signals.get(event.name);
      if (kept === undefined) state.signals.set(event.name, [event.data]);
      else kept.push(event.data);
      return;
    }
    case "childrenCancelled":
      for (const name of event.instances) {
        const unit = unitOf(state, name);
        state.orphans.delete(unit);
        state.run(unit).wait = null;
      }
      return;
    case "gateAsked": {
      const unit = unitOf(state, event.node);
      dequeue(state, unit);
      return addAsk(state, unit, event);
    }
    case "gateGranted":
    case "gateRefused": {
      const unit = unitOf(state, event.node);
      answerAsk(state, unit, event);
      return enqueue(state, unit);
    }
    case "entryAsked":
      state.entry = { gate: event.gate, ask: event.ask, status: "asked" };
      state.askCount = Math.max(state.askCount, event.ask);
      return;
    case "entryGranted":
      state.entry = { gate: event.gate, ask: event.ask, status: "granted" };
      return;
    case "entryLeft":
      return leaveEntry(state);
    case "gateStalled":
      return stallAsk(state, unitOf(state, event.node), event);
    case "gatesReturned":
      return gatesReturned(state, event.returns);
    case "parentCalled":
      state.parent = { ...state.parent!, call: event.call };
      // One that is under way answers by its end.
      state.owesAnswer = state.isEnded;
      return;
    case "parentAnswered":
      state.owesAnswer = false;
      return;
    case "executionEnded":
      return executionEnded(state, event);
    case "commandApplied":
    case "commandRefused":
      return remember(state, event.request, answerTo(event));
    case "lateResult": {
      const run = state.run(unitOf(state, event.node));
      run.late = { output: event.output, inputHash: run.inputHash! };
      return;
    }
    case "letterDiscarded":
      state.letters.delete(event.letter);
      return;
    case "repaired":
      return repair(state, unitOf(state, event.node), event.refiled === true);
    case "quarantined":
      state.quarantined = event.error;
      return;
    case "parked":
      state.parked.push(event.message);
      return;
    case "released":
      state.quarantined = null;
      state.parked = [];
      return;
    case "reviewChanged":
      state.run(unitOf(state, event.node)).wait = withChange(state.run(unitOf(state, event.node)).wait!, event);
      return;
    case "reviewEscalated":
      return reviewEscalated(state, event);
    case "reviewDue":
    case "resultIgnored":
      return;
  }
}

function accepted(state: ExecutionState, event: Accepted): void {
  assertMove("execution", state.status, event.kind, "pending", state.id);
  state.status = "pending";
  state.input = event.input;
  state.bodyHash = event.bodyHash;
  state.by = event.by;
  state.tenant = event.tenant;
  state.trace = event.trace;
  state.parent = event.parent ?? null;
  state.around = event.around ?? null;
  state.labels = event.labels ?? null;
  state.createdAtMs = event.atMs;
  for (const { node, output } of event.fork?.kept ?? []) keepForked(state, unitOf(state, node), output, event.atMs);
  if (event.fork !== undefined) deriveGraph(state);
}

/** Done before it began. Its output stays in memory: no event of its own brings it back. */
function keepForked(state: ExecutionState, node: number, output: Value, atMs: number): void {
  const run = state.run(node);
  run.output = "json" in output ? { json: output.json } : output;
  run.answered = true;
  run.endedAtMs = atMs;
  run.endedVersion = state.version;
  state.setStatus(node, "completed");
  const { routed } = state.planOf(node);
  if (routed.length > 0) run.chosen = chosenBy(state, output);
}

function started(state: ExecutionState, event: Started): void {
  assertMove("execution", state.status, event.kind, "running", state.id);
  state.status = "running";
  state.startedAtMs = event.atMs;
  state.deadlineAtMs = event.deadlineAtMs;
  if (event.input !== undefined) state.input = event.input;
  if (event.labels !== undefined) state.labels = event.labels;
  if (event.deadlineAtMs !== null) state.timers.push(event.deadlineAtMs, WORKFLOW_TIMER);
  if (state.runs.some((run) => run !== undefined)) return deriveGraph(state, placeJoined);
  for (let node = 0; node < state.plan.graph.nodeCount; node++) {
    if (state.undecided[node] === 0) join(state, node, placeJoined);
  }
}

function pausedOrResumed(state: ExecutionState, event: Paused | Resumed): void {
  const to = event.kind === "paused" ? "paused" : "running";
  assertMove("execution", state.status, event.kind, to, state.id);
  state.status = to;
  if (to === "paused") leaveGates(state);
  if (to === "paused" && state.entry?.status === "asked") leaveEntry(state);
}

function taskDispatched(state: ExecutionState, event: TaskDispatched): void {
  const unit = unitOf(state, event.node);
  move(state, unit, event, "queued");
  const run = state.run(unit);
  if (event.attempt !== run.attempt) {
    run.attempt = event.attempt;
    run.lost = 0;
    run.nonces = NO_NONCES;
  }
  run.round = event.round ?? 0;
  run.delivery = event.delivery;
  // Most have one, and a list that grows makes room for sixteen more, also one that begins with the items of another.
  run.nonces = run.nonces.length === 0 ? sole(event.nonce) : [...run.nonces, event.nonce];
  run.inputHash = event.inputHash;
  run.seen = event.seen;
  run.answered = false;
  // The work is begun anew: what came late of an earlier try is not what comes of this one.
  run.late = null;
  run.queuedAtMs = event.atMs;
  run.startedAtMs = null;
  dequeue(state, unit);
  setLive(state, unit, true);
  setDue(state, unit, event.queueDeadlineAtMs);
}

/** All that one owner dispatches for the first time have the same list, which nobody writes to. */
let lastSole: readonly [string] = [""];

function sole(nonce: string): readonly string[] {
  return lastSole[0] === nonce ? lastSole : (lastSole = [nonce]);
}

function taskCompleted(state: ExecutionState, event: TaskCompletedEvent): void {
  const unit = unitOf(state, event.node);
  const run = state.run(unit);
  run.startedAtMs = event.startedAtMs;
  run.output = event.output;
  run.outputVersion = state.version;
  run.error = null;
  run.answered = true;
  run.usage = event.usage ?? null;
  if (state.asks.size > 0) {
    // What another model has said is not what the work of this node comes to.
    const keeps = fallbackModel(state, unit) === undefined ? { keeps: event.node } : {};
    // A delivery that was given up and has answered after all was counted then, and the next is not out yet.
    const used = state.live.has(unit) ? { used: usedByResult(event) } : {};
    returnAsks(state, unit, { closeForMs: event.closeForMs, outcome: "good", ...used, ...keeps });
  }
  if (state.planOf(unit).until === null) {
    move(state, unit, event, "completed");
    return endUnit(state, unit, event.atMs);
  }
  // The round has to be judged, by an expression that may have to fetch what it reads.
  move(state, unit, event, "waiting");
  setLive(state, unit, false);
  setDue(state, unit, null);
  dequeue(state, unit);
  enqueue(state, unit);
}

function deliveryLost(state: ExecutionState, event: DeliveryLostEvent): void {
  const unit = unitOf(state, event.node);
  move(state, unit, event, "queued");
  const run = state.run(unit);
  if (event.handedBack) returnDelivery(state, unit, {});
  else run.lost++;
  run.startedAtMs = null;
  setLive(state, unit, false);
  setDue(state, unit, null);
  enqueue(state, unit);
}

/** It gives its place back, or leaves the line. */
function leaveEntry(state: ExecutionState): void {
  if (state.entry !== null) state.returns.push({ gate: state.entry.gate, ask: state.entry.ask });
  state.entry = null;
}

/** Nothing new starts: whoever has not begun leaves its gates, and asks again when it goes on. */
function leaveGates(state: ExecutionState): void {
  for (const unit of state.asks.keys()) {
    if (state.live.has(unit)) continue;
    returnAsks(state, unit);
    if (state.inLine[unit] === 0) enqueue(state, unit);
  }
}

function taskFailed(state: ExecutionState, event: TaskFailedEvent): void {
  const unit = unitOf(state, event.node);
  const { error } = event;
  const outcome = error.retryable ? "bad" : isDefinite(error.code) ? "good" : undefined;
  returnAsks(state, unit, {
    closeForMs: event.closeForMs,
    ...(outcome && { outcome }),
    used: usedByFailure(event),
    hasFailed: true,
  });
  const run = state.run(unit);
  if (event.startedAtMs !== undefined) run.startedAtMs = event.startedAtMs;
  if (event.usage !== undefined) run.usage = event.usage;
  run.error = event.error;
  run.answered = isDefinite(event.error.code);
  if (event.retryAtMs !== null) {
    move(state, unit, event, "waiting");
    setLive(state, unit, false);
    setDue(state, unit, event.retryAtMs);
    return;
  }
  move(state, unit, event, "failed");
  noteLetter(state, unit, event.error.retryable, event.error.code);
  endUnit(state, unit, event.atMs);
}

/** The next round is a fresh piece of work: its attempts count from 1, and it sees what there is to see now. */
function beginRound(state: ExecutionState, unit: number): void {
  const run = state.run(unit);
  run.round++;
  run.attempt = 0;
  run.delivery = 0;
  run.lost = 0;
  run.nonces = NO_NONCES;
  run.seen = null;
}

function nodeCompleted(state: ExecutionState, event: NodeCompleted): void {
  const unit = unitOf(state, event.node);
  const closing = isClosing(state, unit);
  move(state, unit, event, "completed");
  const run = state.run(unit);
  run.output = event.output;
  run.outputVersion = state.version;
  run.error = null;
  run.answered = true;
  run.failures = event.failures ?? 0;
  if (event.reason === "late_result") {
    run.wasLate = true;
    run.late = null;
  }
  if (event.reason === "cached") {
    run.cachedFrom = event.from ?? "";
    forgetCache(state, unit);
  }
  if (event.signal !== undefined) takeSignal(state, event.signal);
  const { routed } = state.planOf(unit);
  if (routed.length > 0 && !state.isItem(unit)) run.chosen = chosenBy(state, event.output);
  endUnit(state, unit, event.atMs, closing);
}

function nodeFailed(state: ExecutionState, event: NodeFailed): void {
  const unit = unitOf(state, event.node);
  const closing = isClosing(state, unit);
  move(state, unit, event, "failed");
  const run = state.run(unit);
  run.error = event.error;
  run.failures = event.failures ?? 0;
  noteLetter(state, unit, event.error.retryable, event.error.code);
  endUnit(state, unit, event.atMs, closing);
}

function chosenBy(state: ExecutionState, output: Value): readonly number[] {
  const { chosen } = "json" in output ? (output.json as { chosen: readonly string[] }) : { chosen: [] };
  return chosen.map((id) => state.plan.graph.indexOf.get(id)!);
}

function takeSignal(state: ExecutionState, name: string): void {
  const kept = state.signals.get(name)!;
  kept.shift();
  if (kept.length === 0) state.signals.delete(name);
}

function nodeWaiting(state: ExecutionState, event: NodeWaiting): void {
  const unit = unitOf(state, event.node);
  move(state, unit, event, "waiting");
  dequeue(state, unit);
  const run = state.run(unit);
  run.startedAtMs = event.atMs;
  run.wait = event.wait;
  run.waitVersion = state.version;
  if (event.wait.for === "child") run.child = event.wait.child;
  indexWait(state, unit);
  setDue(state, unit, event.dueAtMs);
}

/** Others look at it from now on, and the moment that is waited for is another one. */
function reviewEscalated(state: ExecutionState, event: ReviewEscalated): void {
  const unit = unitOf(state, event.node);
  const run = state.run(unit);
  const wait = withChange(run.wait!, event);
  run.wait = wait;
  if ("calendarAtMs" in wait && wait.calendarAtMs !== undefined) state.calendar.push(wait.calendarAtMs, unit);
}

/**
 * One event closes everything. Nodes that are still open keep their own last state, so that what was out can be
 * withdrawn; how they read from now on follows from the end (see `viewNode`).
 */
function executionEnded(state: ExecutionState, event: ExecutionEnded): void {
  assertMove("execution", state.status, event.kind, event.status, state.id);
  state.status = event.status;
  state.end = {
    status: event.status,
    reason: event.reason,
    error: event.error ?? null,
    output: event.output ?? null,
    ...(event.cause !== undefined && { cause: event.cause }),
  };
  state.endedAtMs = event.atMs;
  state.deadlineAtMs = null;
  state.timers.clear();
  state.calendar.clear();
  state.ready.clear();
  state.inLine.fill(0);
  state.closing = 0;
  state.skips.clear();
  state.skipReasons.clear();
  for (const unit of state.children) state.orphans.add(unit);
  state.children.clear();
  for (const unit of state.asks.keys()) returnAsks(state, unit, state.live.has(unit) ? AS_RESERVED : {});
  leaveEntry(state);
}

/** A unit has ended: whoever depends on it hears of it, and what only it could still read is let go. */
function endUnit(state: ExecutionState, unit: number, atMs: number, closing = false): void {
  const run = state.run(unit);
  run.endedAtMs = atMs;
  run.endedVersion = state.version;
  setLive(state, unit, false);
  setDue(state, unit, null);
  dequeue(state, unit, closing);
  endWait(state, unit);
  returnAsks(state, unit);
  if (state.isItem(unit)) return endItem(state, unit);
  if (state.skipReasons.delete(unit)) state.skips.remove(unit);
  state.joined[unit] = 1;
  state.openCount--;
  if (state.statusOf(unit) === "completed") state.completedCount++;
  if (state.statusOf(unit) === "failed") state.failed.push(unit);
  closeMap(state, unit);
  spread(state, unit, atMs);
  for (const read of state.planOf(unit).reads) {
    state.readersLeft[read]!--;
    dropIfUnread(state, read);
  }
  dropIfUnread(state, unit);
}

function dropIfUnread(state: ExecutionState, node: number): void {
  if (state.readersLeft[node]! > 0 || state.plan.nodes[node]!.final) return;
  const run = state.runs[node];
  if (run === undefined || run.output === null || !("json" in run.output)) return;
  const bytes = run.output.bytes ?? 0;
  if (bytes < DROP_BYTES || run.endedAtMs === null) return;
  run.output = { past: { version: run.outputVersion, bytes } };
}

function noteLetter(state: ExecutionState, unit: number, retryable: boolean, code: string): void {
  if (isKeptLetter(state, unit, retryable, code)) state.letters.set(letterId(state, unit), "open");
}

/** What the same request is answered when it comes again. */
function answerTo(event: CommandApplied | CommandRefused): CommandAnswer {
  const hash = event.bodyHash === undefined ? {} : { bodyHash: event.bodyHash };
  if (event.kind === "commandApplied") {
    const { status, generation } = event;
    return {
      applied: true,
      ...(status !== undefined && { status }),
      ...(generation !== undefined && { generation }),
      ...hash,
    };
  }
  const { code, detail, errors } = event;
  return {
    applied: false,
    code,
    ...hash,
    ...(detail !== undefined && { detail }),
    ...(errors !== undefined && { errors }),
  };
}

function remember(state: ExecutionState, request: string, answer: CommandAnswer): void {
  state.requests.set(request, answer);
  if (state.requests.size <= REMEMBERED_REQUESTS) return;
  const oldest = state.requests.keys().next().value;
  if (oldest !== undefined) state.requests.delete(oldest);
}

function move(state: ExecutionState, unit: number, event: ExecutionEvent, to: NodeStatus): void {
  assertMove("node", state.statusOf(unit), event.kind, to, state.nameOf(unit));
  state.setStatus(unit, to);
}

function unitOf(state: ExecutionState, name: string): number {
  const unit = state.unitOf(name);
  if (unit === undefined) throw new Error(`event for a node that the definition does not have: ${name}`);
  return unit;
}
