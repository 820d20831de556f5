import type { CommandApplied, CommandRefused, ExecutionEvent, GenerationOpened } from "../../core/execution/events.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Command } from "../history.ts";
import type { Commit } from "./evidence.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";
import { journalFacts } from "./journal-facts.ts";
import { MOST_SIGNALS } from "./reference-rules.ts";
import { sameJson } from "./same-json.ts";
import { isReopened, type Story } from "./story.ts";
import { saidIn } from "./waits.ts";

/** The refusals that are decided by the execution itself, and so are in its journal. */
const DECIDED_CODES: ReadonlySet<string> = new Set([
  "ALREADY_TERMINAL",
  "ALREADY_RUNNING",
  "EXECUTION_OPEN",
  "NOT_RETRYABLE",
  "NOT_PAUSED",
  "REVIEW_CLOSED",
  "REVIEW_SAME_PERSON",
  "ALREADY_REPLAYED",
]);

/** A command is decided once, because somebody gave it; what was answered is in the journal. */
const oneDecision: Invariant = {
  id: "I43",
  name: "one decision",
  before(step, found) {
    const { story, event } = step;
    if (event.kind !== "commandApplied" && event.kind !== "commandRefused") return;
    const { command, request } = event;
    if (story.requests.has(request)) found(`The ${command} ${request} was decided a second time`, placeOf(step));
    if (!wasAsked(step, event)) found(`The ${command} ${request} was decided, and nobody had sent it`, placeOf(step));
  },
  world(evidence, stories, found) {
    const { commands } = journalFacts(evidence);
    const { lossy } = evidence.world;
    for (const [execution, { answers }] of evidence.clients) {
      for (const { entry } of answers) {
        const isApplied = entry.outcome === "ok";
        if (!isApplied && !DECIDED_CODES.has(entry.code ?? "")) continue;
        // What was parked is refused when a cancel lets an execution out of quarantine: it will be over.
        if (!isApplied && stories.get(execution)?.wasQuarantined) continue;
        const decided = (commands.get(entry.request) ?? []).filter(({ commit }) => lossy || commit.voidedAt === null);
        if (decided.some(({ applied }) => applied === isApplied)) continue;
        const answer = isApplied ? "ok" : entry.code;
        const what = `The ${entry.command} ${entry.request}`;
        found(`${what} was answered ${answer}, and no event of the journal says so`, { execution });
      }
    }
  },
};

/** Somebody had sent it; or the parent had, if it is a cancel. */
function wasAsked({ story, evidence, commit }: Step, { command, request }: CommandApplied | CommandRefused): boolean {
  const asked = evidence.clients.get(story.id)?.commands ?? [];
  const isSent = asked.some(
    ({ entry, order }) => entry.request === request && entry.command.kind === command && order < commit.order,
  );
  if (isSent || command !== "cancel") return isSent;
  const mails = evidence.mail.get(story.entity) ?? [];
  return mails.some(({ body, commit: sent }) => body["request"] === request && sent.order < commit.order);
}

/** What each command may find, and what follows on it in the journal. */
interface Operation {
  readonly allowed: (story: Story, command: Command | undefined, by: string) => boolean;
  readonly effects: readonly ExecutionEvent["kind"][];
  /** When a refusal with this code is right. */
  readonly refusals: Readonly<Record<string, (story: Story, command: Command | undefined, by: string) => boolean>>;
}

const isOver = ({ ended }: Story): boolean => ended !== null;
const endedAs =
  (...statuses: readonly string[]) =>
  ({ ended }: Story): boolean =>
    ended !== null && statuses.includes(ended.status);

/** What a command may do in which state, and what it is answered where it may not. */
const OPERATIONS: Readonly<Record<Command["kind"], Operation>> = {
  cancel: {
    allowed: (story) => !isOver(story),
    effects: ["executionEnded"],
    refusals: { ALREADY_TERMINAL: isOver },
  },
  trigger: {
    allowed: (story) => (isOver(story) ? endedAs("failed", "partial")(story) : !story.isStarted),
    effects: ["started", "generationOpened"],
    refusals: {
      ALREADY_RUNNING: (story) => story.isOpen,
      ALREADY_TERMINAL: endedAs("completed", "cancelled"),
      INPUT_FIXED: (story, command) =>
        endedAs("failed", "partial")(story) && command?.kind === "trigger" && command.input !== undefined,
    },
  },
  pause: {
    allowed: (story) => story.isOpen,
    effects: ["paused"],
    refusals: { ALREADY_TERMINAL: isOver, NOT_RUNNING: (story) => !story.isStarted },
  },
  resume: {
    allowed: (story) => story.isPaused,
    effects: ["resumed"],
    refusals: { NOT_PAUSED: (story) => !story.isPaused },
  },
  retry: {
    allowed: (story, command) =>
      isOver(story) && !(isOfFailed(command) && endedAs("completed")(story)) && !isOfReopened(story, command),
    effects: ["generationOpened"],
    refusals: {
      EXECUTION_OPEN: (story) => !isOver(story),
      NOT_RETRYABLE: (story, command) => !story.isStarted || (isOfFailed(command) && endedAs("completed")(story)),
      ALREADY_REPLAYED: (story, command) =>
        isOfReopened(story, command) ||
        (command?.kind === "retry" && (command.letters ?? []).some(({ id }) => story.replayed.has(id))),
    },
  },
  signal: {
    allowed: (story) => !isOver(story),
    effects: ["signalReceived"],
    refusals: {
      ALREADY_TERMINAL: isOver,
      RATE_LIMITED: (story, command) =>
        command?.kind === "signal" && (story.signals.get(command.name)?.length ?? 0) >= MOST_SIGNALS,
    },
  },
  decideReview: {
    allowed: (story, command, by) =>
      isBudgetOpen(story, command) ||
      (isReviewOpen(story, command) && fitsForm(story, command) && !isSamePerson(story, command, by)),
    effects: ["nodeCompleted", "reviewChanged"],
    refusals: {
      REVIEW_CLOSED: (story, command) => !isReviewOpen(story, command) && !isBudgetOpen(story, command),
      REVIEW_SAME_PERSON: isSamePerson,
      REVIEW_INVALID: (story, command) => isReviewOpen(story, command) && !fitsForm(story, command),
    },
  },
  assignReview: {
    allowed: isReviewOpen,
    effects: ["reviewChanged"],
    refusals: { REVIEW_CLOSED: (story, command) => !isReviewOpen(story, command) },
  },
  discardLetter: { allowed: () => true, effects: ["letterDiscarded"], refusals: {} },
};

function isOfFailed(command: Command | undefined): boolean {
  return command?.kind === "retry" && command.scope === "failed";
}

/** Of dead letters, and what has left them was all opened again since. */
function isOfReopened(story: Story, command: Command | undefined): boolean {
  const letters = command?.kind === "retry" ? (command.letters ?? []) : [];
  return letters.length > 0 && letters.every(({ id }) => isReopened(story, id));
}

function isReviewOpen(story: Story, command: Command | undefined): boolean {
  if (command?.kind !== "decideReview" && command?.kind !== "assignReview") return false;
  if (!story.isOpen || command.generation !== story.generation) return false;
  const node = story.node(command.instance);
  return node !== undefined && node.end === null && node.wait?.for === "review";
}

/** A raise lets through whom its gate then lets through; who is denied it has failed. */
const REFUSED_BUDGET: readonly ExecutionEvent["kind"][] = ["nodeFailed"];

/** It waits for somebody to raise a budget. */
function isBudgetOpen(story: Story, command: Command | undefined): boolean {
  if (command?.kind !== "decideReview" || !story.isOpen || command.generation !== story.generation) return false;
  return story.stalled.has(command.instance);
}

/** Where two have to decide, the first is not the second. */
function isSamePerson(story: Story, command: Command | undefined, by: string): boolean {
  if (command?.kind !== "decideReview" || !isReviewOpen(story, command)) return false;
  const wait = story.node(command.instance)?.wait;
  return wait?.for === "review" && wait.first?.by === by;
}

/** The forms of this simulator only say what has to be there. */
function fitsForm(story: Story, command: Command | undefined): boolean {
  if (command?.kind !== "decideReview") return true;
  const wait = story.node(command.instance)?.wait;
  if (wait?.for !== "review") return true;
  const { form } = wait.review;
  const required = isJsonObject(form) && Array.isArray(form["required"]) ? (form["required"] as readonly string[]) : [];
  const data = saidIn(wait, command.decision, command.data);
  if (command.decision === "reject" && data === null) return true;
  return required.every((name) => isJsonObject(data) && Object.hasOwn(data, name));
}

/** A command is applied when it may be, refused when it must be, and what it says happens in its commit. */
const operations: Invariant = {
  id: "C5-operations",
  name: "operations",
  before(step, found) {
    const { event } = step;
    if (event.kind === "commandApplied" || event.kind === "commandRefused") return judgeCommand(step, event, found);
    if (isUncaused(step)) found(`${event.kind}, and nobody had asked for it`, placeOf(step));
  },
};

function judgeCommand(step: Step, event: CommandApplied | CommandRefused, found: Found): void {
  const { story, commit, evidence } = step;
  const operation = OPERATIONS[event.command as Command["kind"]] as Operation | undefined;
  if (operation === undefined) return;
  const asked = evidence.clients.get(story.id)?.commands ?? [];
  const { command, by = "client" } = asked.find(({ entry }) => entry.request === event.request)?.entry ?? {};
  const state = story.ended?.status ?? (story.isPaused ? "paused" : story.isStarted ? "running" : "pending");
  if (event.kind === "commandRefused") {
    const refusal = operation.refusals[event.code];
    if (refusal === undefined || refusal(story, command, by)) return;
    return found(`The ${event.command} was refused with ${event.code}, and the execution is ${state}`, placeOf(step));
  }
  if (!operation.allowed(story, command, by)) {
    found(`The ${event.command} was applied, and the execution is ${state}`, placeOf(step));
  }
  const next = after(story, commit);
  // That a cancel stops is I24's.
  const isBudget = isBudgetOpen(story, command);
  const isRaised = isBudget && command?.kind === "decideReview" && command.decision === "approve";
  const isAsIs = event.command === "cancel" || (event.command === "pause" && story.isPaused) || isRaised;
  const effects = isBudget ? REFUSED_BUDGET : operation.effects;
  if (!isAsIs && (next === undefined || !effects.includes(next.kind))) {
    found(`The ${event.command} was applied, and nothing has come of it`, placeOf(step));
  } else if (command !== undefined && next !== undefined && !isAsAsked(command, next)) {
    found(`The ${event.command} was applied otherwise than was asked`, placeOf(step));
  }
}

/** A retry opens what it names; a trigger's input counts. */
function isAsAsked(command: Command, event: ExecutionEvent): boolean {
  if (command.kind === "decideReview" || command.kind === "assignReview") return isSameReview(command, event);
  if (command.kind === "trigger") return event.kind !== "started" || isSame(command.input, event.input);
  if (command.kind !== "retry" || event.kind !== "generationOpened") return true;
  const { scope, from, config, input, letters = [] } = command;
  const isSameNode = from === event.from && isSame(config, event.config) && isSame(input, event.input);
  return (
    scope === event.scope &&
    isSameNode &&
    isSame(
      letters.map(({ id }) => id),
      event.letters ?? [],
    )
  );
}

/** Who is asked is who was named; what the first of two says is kept. */
function isSameReview(command: Command, event: ExecutionEvent): boolean {
  if (event.kind !== "reviewChanged") return command.kind === "decideReview";
  if (command.kind === "assignReview") return isSame(command.assignees, event.assignees) && event.first === undefined;
  return command.kind === "decideReview" && event.first?.decision === command.decision && event.assignees === undefined;
}

function isSame(one: unknown, other: unknown): boolean {
  return sameJson((one ?? null) as Json, (other ?? null) as Json);
}

/** The event of the same commit that comes after the one at hand. */
function after(story: Story, commit: Commit): ExecutionEvent | undefined {
  return eventAt(story, commit, 2);
}

function eventAt({ entity, version }: Story, commit: Commit, offset: number): ExecutionEvent | undefined {
  const record = commit.entry.records.find((other) => other.entity === entity);
  return record?.events[version + offset - record.version];
}

const CAUSED: ReadonlySet<string> = new Set(["paused", "resumed", "letterDiscarded", "reviewChanged"]);

/** What only a command, or a parent, can bring about. */
function isUncaused(step: Step): boolean {
  const { story, event, commit } = step;
  const before = eventAt(story, commit, 0);
  const isCommanded = before?.kind === "commandApplied";
  if (event.kind === "started") return !isCommanded && (before?.kind !== "accepted" || wasHeld(step));
  if (event.kind === "generationOpened") {
    return !isCommanded && !wasCalled(step, event.call) && !wasRepaired(step, event);
  }
  if (event.kind === "parentCalled") return !wasCalled(step, event.call);
  return !isCommanded && CAUSED.has(event.kind);
}

/** Whoever submitted it wants it to wait for a trigger. */
function wasHeld({ story, evidence }: Step): boolean {
  const submits = evidence.clients.get(story.id)?.submits ?? [];
  const asked = submits.filter(({ entry }) => entry.bodyHash === story.accepted?.bodyHash);
  return asked.length > 0 && asked.every(({ entry }) => entry.hold === true);
}

function wasCalled({ story, commit, evidence }: Step, call: number | undefined): boolean {
  return (evidence.mail.get(story.entity) ?? []).some(({ body, commit: sent }) => {
    const parent = body["parent"] as { readonly call?: number } | undefined;
    return body.kind === "start" && sent.order < commit.order && call !== undefined && parent?.call === call;
  });
}

/** A child whose failure has ended it has completed after all, and nothing but what waits for it is opened again. */
function wasRepaired({ story, commit, evidence }: Step, { scope, letters, instances = [] }: GenerationOpened): boolean {
  const [instance] = instances;
  const node = instance === undefined ? undefined : story.node(instance);
  if (scope !== "letters" || letters !== undefined || instances.length !== 1 || node === undefined) return false;
  const isFailure = (node.item?.map ?? node).status === "failed" && (node.status === "failed" || node.failures > 0);
  const isOver = story.ended?.status === "failed" || story.ended?.status === "partial";
  const news = (evidence.mail.get(story.entity) ?? []).some(
    ({ body, commit: sent }) =>
      body.kind === "childEnded" &&
      sent.order < commit.order &&
      body["instance"] === instance &&
      body["status"] === "completed" &&
      (body["failures"] ?? 0) === 0 &&
      body["call"] === story.children.get(instance!)?.call,
  );
  return isOver && isFailure && news;
}

export const COMMANDS: readonly Invariant[] = [oneDecision, operations];
