import type { NodeCompleted, NodeFailed, NodeWaiting } from "../../core/execution/events.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Command } from "../history.ts";
import { shorten } from "./data.ts";
import type { Commit, Evidence } from "./evidence.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { fieldOf, mockOf } from "./reference-nodes.ts";
import { UNKNOWN, valueOf } from "./reference-path.ts";
import { MOST_SIGNALS } from "./reference-rules.ts";
import { sameJson } from "./same-json.ts";
import type { Story } from "./story.ts";

/** The requests of a kind that a commit has applied to an execution, as people sent them. */
function appliedIn<Kind extends Command["kind"]>(
  kind: Kind,
  story: Story,
  commit: Commit,
  { clients }: Evidence,
): Extract<Command, { readonly kind: Kind }>[] {
  const events = commit.entry.records.find(({ entity }) => entity === story.entity)?.events ?? [];
  const asked = clients.get(story.id)?.commands ?? [];
  return events.flatMap((event) => {
    if (event.kind !== "commandApplied" || event.command !== kind) return [];
    const sent = asked.find(({ entry, order }) => entry.request === event.request && order < commit.order);
    return sent?.entry.command.kind === kind ? [sent.entry.command as Extract<Command, { readonly kind: Kind }>] : [];
  });
}

/** Each signal is kept until a wait takes it, the oldest first, and is taken once. */
const signals: Invariant = {
  id: "C5-signal",
  name: "signals",
  before(step, found) {
    const { event, node, story, commit, evidence } = step;
    if (event.kind === "signalReceived") {
      const same = appliedIn("signal", story, commit, evidence).some(
        ({ name, data }) => name === event.name && sameJson(data as Json, event.data as Json),
      );
      if (!same) found(`A signal ${event.name} was received that nobody had sent`, placeOf(step));
      const kept = story.signals.get(event.name)?.length ?? 0;
      if (kept >= MOST_SIGNALS) found(`${kept} signals ${event.name} were kept, and one more`, placeOf(step));
    }
    if (node === undefined || node.end !== null) return;
    if (event.kind === "nodeCompleted") judgeTaken(step, event, node, found);
    if (event.kind === "nodeFailed" && event.error.code === "SIGNAL_TIMEOUT") judgeTimeout(step, node, found);
  },
  committed(story, commit, { world }, found) {
    if (world.lossy) return;
    const events = commit.entry.records.find(({ entity }) => entity === story.entity)?.events ?? [];
    const received = events.filter((event) => event.kind === "signalReceived").length;
    const applied = events.filter((event) => event.kind === "commandApplied" && event.command === "signal").length;
    if (received === applied) return;
    found(`${applied} signals were acknowledged, and ${received} were received`, { execution: story.id, commit });
  },
};

function judgeTaken(step: Step, event: NodeCompleted, node: NodeStory, found: Found): void {
  const { story } = step;
  const name = fieldOf("signal", readerOf(step, node));
  const isForSignal = node.spec.handler === "wait" && name !== undefined;
  if (!isForSignal) {
    if (event.signal !== undefined) found(`It took the signal ${event.signal}, and waits for none`, placeOf(step));
    return;
  }
  if (event.signal === undefined) return found("It is done, and took no signal", placeOf(step));
  if (name !== UNKNOWN && name !== event.signal) {
    found(`It took the signal ${event.signal}, and waits for another`, placeOf(step));
  }
  const oldest = story.signals.get(event.signal)?.[0];
  if (oldest === undefined) return found(`It took a signal ${event.signal}, and none was there`, placeOf(step));
  if (!sameJson(event.output as Json, oldest as Json)) {
    found(`It took another signal ${event.signal} than the oldest`, placeOf(step));
  }
}

function judgeTimeout(step: Step, { wait }: NodeStory, found: Found): void {
  const name = wait?.for === "signal" ? wait.signal : undefined;
  if (name === undefined) return found("It gave up waiting for a signal, and waited for none", placeOf(step));
  const kept = step.story.signals.get(name)?.length ?? 0;
  if (kept > 0) found(`It gave up waiting for the signal ${name}, and ${kept} were there`, placeOf(step));
}

/** A review is decided once, by somebody who was asked, or by what is to happen when nobody is. */
const reviews: Invariant = {
  id: "C6-review",
  name: "reviews",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null || node.spec.handler !== "review") return;
    if (event.kind === "nodeWaiting") return judgeReview(step, event, node, found);
    if (event.kind === "nodeCompleted") return judgeDecision(step, event, node, found);
    if (event.kind === "nodeFailed") judgeExpiry(step, event, node, found);
  },
  committed(story, commit, evidence, found) {
    // Whoever raises a budget decides nothing but that: until its gate has answered, another may raise it further.
    const decisions = appliedIn("decideReview", story, commit, evidence).filter(
      ({ instance }) => story.node(instance)?.spec.handler === "review",
    );
    const names = decisions.map(({ instance, generation }) => `${generation}:${instance}`);
    // Of two people the first has not decided it yet.
    const events = commit.entry.records.find(({ entity }) => entity === story.entity)?.events ?? [];
    const halves = events.filter((event) => event.kind === "reviewChanged" && event.first !== undefined).length;
    if (names.length - new Set(names).size <= halves) return;
    found("A review was decided twice by the same commit", { execution: story.id, commit });
  },
  world({ world }, stories, found) {
    if (!world.liveness || world.lossy) return;
    const listed = new Set(world.remains.listed);
    for (const story of stories.values()) {
      if (story.isQuarantined) continue;
      for (const node of story.units()) {
        const isOpen = story.isOpen && node.end === null && node.wait?.for === "review";
        const id = `review ${story.id}:${node.generation}:${node.instance}`;
        const place = { execution: story.id, node: node.instance };
        if (isOpen && !listed.has(id)) found("It waits for a person, and is on no list", place);
        if (!isOpen && listed.has(id)) found("It is on the list of open reviews, and waits for nobody", place);
      }
    }
  },
};

/** An owner knows the store's clock only from its answers, which have been on their way. */
const CLOCK_ERROR_MS = 5_000;

function judgeReview(step: Step, { wait }: NodeWaiting, node: NodeStory, found: Found): void {
  if (wait.for !== "review") return found(`It waits for a ${wait.for}, and is a review`, placeOf(step));
  const seconds = fieldOf("due_seconds", readerOf(step, node));
  if (typeof seconds !== "number") return;
  const latest = step.evidence.latestClockMs(step.commit.entry.at) + seconds * 1000 + CLOCK_ERROR_MS;
  const { dueAtMs } = wait.review.escalate ?? { dueAtMs: wait.calendarAtMs };
  if (Math.max(wait.calendarAtMs, dueAtMs) > latest)
    found(`It may take until ${wait.calendarAtMs}, and ${latest} is right`, placeOf(step));
}

function judgeDecision(step: Step, event: NodeCompleted, node: NodeStory, found: Found): void {
  const { story, commit, evidence } = step;
  const mock = mockOf(readerOf(step, node));
  if (mock !== undefined) return;
  const output = valueOf(event.output, evidence);
  if (output === UNKNOWN) return;
  const said = isJsonObject(output) ? output : {};
  const decisions = appliedIn("decideReview", story, commit, evidence).filter(
    ({ instance, generation }) => instance === node.instance && generation === story.generation,
  );
  const { review, first } = node.wait?.for === "review" ? node.wait : {};
  const isDecided = decisions.some(({ decision, data, comment }) => {
    const isSaid = said["decision"] === decision && sameJson(said["data"]!, saidIn(node.wait, decision, data));
    return isSaid && (said["comment"] ?? null) === (comment ?? null);
  });
  const isHalf = review?.fourEyes === true && first === undefined;
  if (isDecided && isHalf) return found("It is done, and one of two people has decided it", placeOf(step));
  const corrected = review?.values === undefined ? undefined : correctedFields(review.values, said["data"] ?? null);
  if (!sameJson(corrected ?? null, said["locks"] ?? null)) {
    return found(
      `It locks ${shorten(said["locks"] ?? null)}, and ${shorten(corrected ?? null)} is right`,
      placeOf(step),
    );
  }
  if (isDecided || isByDueDate(step, said, node)) return;
  found(`It is done as ${shorten(output)}, and nobody had decided that`, placeOf(step));
}

/** Who approves without a word approves what the first of two did, or what was proposed. */
export function saidIn(wait: NodeStory["wait"], decision: "approve" | "reject", data: Json): Json {
  if (data !== null || decision === "reject" || wait?.for !== "review") return data;
  const { first, review } = wait;
  return (first?.decision === "approve" ? first.data : review.values) ?? null;
}

/** The fields of the simulator's reviews are plain texts and flags. */
function correctedFields(values: Json, data: Json): Json {
  if (!isJsonObject(data)) return [];
  return Object.keys(data).filter((name) => !isJsonObject(values) || values[name] !== data[name]);
}

function isByDueDate(
  { story, commit }: Step,
  said: Readonly<Record<string, Json>>,
  { wait, instance }: NodeStory,
): boolean {
  if (wait?.for !== "review" || wait.review.onDue === "fail") return false;
  const { decision, data = null } = wait.review.onDue;
  const events = commit.entry.records.find(({ entity }) => entity === story.entity)?.events ?? [];
  const isDue = events.some((event) => event.kind === "reviewDue" && event.node === instance);
  return isDue && said["decision"] === decision && sameJson(said["data"] ?? null, saidIn(wait, decision, data));
}

function judgeExpiry(step: Step, { error }: NodeFailed, { wait }: NodeStory, found: Found): void {
  if (error.code !== "REVIEW_EXPIRED") return;
  if (wait?.for !== "review") return found("Its review expired, and none was open", placeOf(step));
  if (wait.review.onDue !== "fail") found("Its review expired, and it says what then to decide", placeOf(step));
  if (error.retryable) found("Its review expired, and that can be retried", placeOf(step));
}

/** A wait lasts as long as it says. */
const waits: Invariant = {
  id: "C6-wait",
  name: "waits",
  before(step, found) {
    const { event, node } = step;
    if (node === undefined || node.end !== null || (node.spec.handler !== "wait" && node.spec.handler !== "delay"))
      return;
    if (event.kind === "nodeWaiting") judgeWait(step, event, node, found);
    if (event.kind === "nodeCompleted" && node.wait === null) judgeNoWait(step, node, found);
  },
};

function judgeWait(step: Step, { wait, dueAtMs, atMs }: NodeWaiting, node: NodeStory, found: Found): void {
  const reader = readerOf(step, node);
  const [seconds, until, signal, timeout] = WAIT_FIELDS.map((name) => fieldOf(name, reader));
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (typeof seconds === "number") {
    if (wait.for !== "timer" || dueAtMs !== atMs + seconds * 1000)
      say(`It waits until ${dueAtMs}, not for ${seconds} s`);
  } else if (typeof until === "string") {
    const isRight = wait.for === "timer" && wait.calendarAtMs === Date.parse(until);
    if (!isRight) say(`It waits for another date than ${until}`);
  } else if (typeof signal === "string") {
    if (wait.for !== "signal" || wait.signal !== signal) say(`It does not wait for the signal ${signal}`);
    else if (typeof timeout === "number" && dueAtMs !== atMs + timeout * 1000) {
      say(`It waits for its signal until ${dueAtMs}, not for ${timeout} s`);
    }
    if ((step.story.signals.get(signal)?.length ?? 0) > 0) say(`It waits for the signal ${signal}, and one is there`);
  }
}

const WAIT_FIELDS = ["seconds", "until", "signal", "timeout_seconds"] as const;

/** It is done at once: there was nothing to wait for. */
function judgeNoWait(step: Step, node: NodeStory, found: Found): void {
  const reader = readerOf(step, node);
  const [seconds, until] = WAIT_FIELDS.map((name) => fieldOf(name, reader));
  if (typeof seconds === "number" && seconds > 0) found(`It is done at once, and says ${seconds} s`, placeOf(step));
  if (typeof until !== "string" || step.evidence.latestClockMs(step.commit.entry.at) >= Date.parse(until)) return;
  found(`It is done at once, and ${until} is still to come`, placeOf(step));
}

export const WAITS: readonly Invariant[] = [signals, reviews, waits];
