import type { ExecutionEvent, GateReturned } from "../../core/execution/events.ts";
import type { GateEvent } from "../../core/gate/events.ts";
import type { GateRule, RateRule } from "../../core/gate/rule.ts";
import type { Json } from "../../json/json.ts";
import type { LimitSpec, Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { NemesisEntry } from "../history.ts";
import { type Commit, dispatchOf, type Evidence, executionOf, isExecution, placeOfToken } from "./evidence.ts";
import { type Found, type Invariant, placeOf } from "./invariant.ts";

/** One gate, as its journal tells of it. */
interface GateStory {
  readonly entity: string;
  rule: GateRule | null;
  readonly costs: Map<string, number>;
  readonly waiting: Set<string>;
  readonly held: Set<string>;
  /** Until when nothing may go through. */
  closedUntilMs: number;
  /** What was granted, under the rule of the time. */
  readonly grants: { readonly atMs: number; readonly cost: number; readonly rule: GateRule; readonly commit: Commit }[];
}

/** Who has a task out that had to pass a gate for its whole time, by gate. */
type Out = Map<string, Set<string>>;

/** What may be missing only because numbers are rounded. */
const ROUNDING = 1e-3;

const rateKept: Invariant = {
  id: "I38",
  name: "rate",
  world(evidence, _stories, found) {
    for (const { grants, entity } of gateStories(evidence, found).values()) {
      for (let last = 0; last < grants.length; last++) judgeRate(entity, grants, last, found);
    }
  },
};

/** In every time that ends with this grant no more has gone through than the rate gives, and the burst. */
function judgeRate(entity: string, grants: GateStory["grants"], last: number, found: Found): void {
  const { rule, atMs, commit } = grants[last]!;
  if (rule.kind !== "rate") return;
  let sum = 0;
  for (let first = last; first >= 0; first--) {
    const before = grants[first]!;
    if (JSON.stringify(before.rule) !== JSON.stringify(rule)) return;
    sum += before.cost;
    const allowed = (rule.perSecond * (atMs - before.atMs)) / 1000 + rule.burst;
    if (sum <= allowed + ROUNDING) continue;
    return found(`${entity} let ${sum} through in ${atMs - before.atMs} ms, and ${allowed} may go`, { commit });
  }
}

/** A rate is on calls: however long a task was on its way, or in a queue, no more begin than the rate gives, and the burst. */
const callsKept: Invariant = {
  id: "I38e",
  name: "rate of calls",
  world(evidence, _stories, found) {
    // A store that went back has forgotten who was let through. And if its clock is set, or an engine sleeps and its clock
    // stands still, more time goes by afterwards than there is.
    if (evidence.rollbacks.length > 0) return;
    const { history } = evidence.world;
    const set = history.find((entry) => entry.log === "nemesis" && entry.at > 0 && isOfClocks(entry));
    for (const [gate, all] of callsAt(evidence)) {
      const calls = all.filter(({ at }) => at < (set?.at ?? Infinity)).sort((one, other) => one.at - other.at);
      const gained = timeGained(evidence, gate);
      for (let last = 0; last < calls.length; last++) judgeCalls(gate, calls, last, gained, found);
    }
  },
};

function isOfClocks(entry: NemesisEntry): boolean {
  return entry.kind === "clock" || (entry.kind === "fault" && entry.fault === "sleep engine");
}

interface Call {
  readonly at: number;
  readonly cost: number;
  readonly rule: RateRule;
  readonly token: string;
}

/** As much as comes in this time may be on its way, at least: it takes that long to hear that somebody has begun. */
const HEARING_MS = 100;

/** By how much more time may have gone by at a gate than there was, from one moment to another. */
type TimeGained = (from: number, to: number) => number;

/**
 * An owner goes by the clock of the store, and is behind it by as long as the answer took that made it the owner. Whoever
 * comes after it may be less behind, and has that time too. Each commit shows how far its owner was behind at most.
 */
function timeGained({ commits, tenures, world }: Evidence, gate: string): TimeGained {
  const own = commits.find(({ entry }) => entry.records.some(({ entity }) => entity === gate))!;
  const { partition } = own.entry;
  const offsetMs = clockOffsetMs(world);
  const behind = new Map<string, number>();
  for (const { entry } of commits) {
    if (entry.partition !== partition) continue;
    const ms = Math.max(0, entry.at + offsetMs - entry.timeMs);
    behind.set(entry.nonce, Math.min(ms, behind.get(entry.nonce) ?? Infinity));
  }
  const owners = tenures.filter(({ entry }) => entry.partition === partition && behind.has(entry.nonce));
  return (from, to) => {
    const first = owners.findLast(({ entry }) => entry.at <= from);
    const last = owners.findLast(({ entry }) => entry.at <= to);
    return first === undefined || first === last ? 0 : behind.get(first.entry.nonce)!;
  };
}

/** By how much the store's clock is ahead of the history's, before anybody sets it. */
function clockOffsetMs({ history }: Evidence["world"]): number {
  const clock = history.find((entry) => entry.log === "nemesis" && entry.kind === "clock");
  return clock?.log === "nemesis" && clock.kind === "clock" ? clock.offsetMs : 0;
}

function judgeCalls(gate: string, calls: readonly Call[], last: number, gained: TimeGained, found: Found): void {
  const { rule, at, token } = calls[last]!;
  const most = Math.max(rule.burst, 1 + (rule.perSecond * HEARING_MS) / 1000);
  let sum = 0;
  for (let first = last; first >= 0; first--) {
    const before = calls[first]!;
    if (JSON.stringify(before.rule) !== JSON.stringify(rule)) return;
    sum += before.cost;
    const allowed = (rule.perSecond * (at - before.at + gained(before.at, at))) / 1000 + most;
    if (sum <= allowed + ROUNDING) continue;
    return found(`${sum} calls behind ${gate} began in ${at - before.at} ms, and ${allowed} may`, placeOfToken(token));
  }
}

type Passed = Map<string, { readonly gate: string; readonly ask: number }[]>;

function leaveGates(passed: Passed, execution: string, returns: readonly GateReturned[]): void {
  const isReturned = (one: { readonly gate: string; readonly ask: number }): boolean =>
    returns.some(({ gate, ask }) => gate === one.gate && ask === one.ask);
  for (const [task, own] of passed) {
    if (!task.startsWith(`${execution} `)) continue;
    const left = own.filter((one) => !isReturned(one));
    if (left.length < own.length) passed.set(task, left);
  }
}

/** When each call began that had passed a rate, by gate. */
function callsAt(evidence: Evidence): ReadonlyMap<string, Call[]> {
  const calls = new Map<string, Call[]>();
  const rules = new Map<string, GateRule>();
  const costs = new Map<string, number>();
  const lapsed = new Map<string, number>();
  const begun: { readonly gate: string; readonly name: string; readonly call: Call }[] = [];
  const passed: Passed = new Map();
  const offsetMs = clockOffsetMs(evidence.world);
  for (const { entry } of evidence.surviving) {
    for (const { entity, events } of entry.records) {
      for (const event of events as readonly (ExecutionEvent | GateEvent)[]) {
        if (event.kind === "gateRuled") rules.set(entity, event.rule);
        if (event.kind === "asksLapsed") {
          // From when it was decided: what begins before that is stored begins after nobody waits for it any more.
          const at = Math.min(entry.at, event.atMs - offsetMs);
          for (const { execution, ask } of event.asks) lapsed.set(`${entity} ${execution} ${ask}`, at);
        }
        if (event.kind === "asksQueued")
          for (const { ask, cost = 1 } of event.asks) costs.set(`${entity} ${event.execution} ${ask}`, cost);
        if (event.kind === "gateGranted") {
          const task = `${entity} ${event.node}`;
          passed.set(task, [...(passed.get(task) ?? []), event]);
        }
        // Let through, and not wanted any more.
        if (event.kind === "gatesReturned") leaveGates(passed, entity, event.returns);
      }
    }
    for (const { token } of entry.tasks) {
      const { execution, instance } = dispatchOf(token);
      const entity = `execution/${execution}`;
      const task = `${entity} ${instance.split("@")[0]!}`;
      for (const { gate, ask } of passed.get(task) ?? []) {
        const rule = rules.get(gate);
        if (rule?.kind !== "rate") continue;
        const name = `${gate} ${entity} ${ask}`;
        const cost = Math.min(costs.get(name) ?? 1, rule.burst);
        // Queues that live in a process come back with it, and what was begun is begun again: that is the same call.
        const start = evidence.tokens.get(token)?.starts[0];
        if (start !== undefined && !isCalledOff(evidence, token, start.order))
          begun.push({ gate, name, call: { at: start.entry.at, cost, rule, token } });
      }
      passed.delete(task);
    }
  }
  // Others were not to wait for what nobody began: whenever it begins at last, it is beside the rate.
  for (const { gate, name, call } of begun) {
    if ((lapsed.get(name) ?? Infinity) <= call.at) continue;
    const own = calls.get(gate);
    if (own === undefined) calls.set(gate, [call]);
    else own.push(call);
  }
  return calls;
}

/**
 * Nobody wanted it any more when it began: it was with its worker, which had not heard of that, and its gates have let others
 * through in its stead. One that was lost is not excused: it has a successor, and must not begin beside it.
 */
function isCalledOff({ commits, tokens }: Evidence, token: string, startedAt: number): boolean {
  const { execution, instance } = dispatchOf(token);
  const [node] = instance.split("@");
  const revoked = new Set(tokens.get(token)?.revoked.filter((order) => order < startedAt));
  if (revoked.size === 0) return false;
  return commits.some(({ order, entry }) => {
    if (!revoked.has(order)) return false;
    const own = entry.records.filter(({ entity }) => executionOf(entity) === execution).flatMap(({ events }) => events);
    return !own.some((event) => event.kind === "deliveryLost" && event.node === node);
  });
}

/** At no time are more tasks out than have room, whoever dies; and nobody goes through a gate unasked. */
const placesKept: Invariant = {
  id: "I39",
  name: "places",
  world(evidence, _stories, found) {
    const rules = new Map<string, GateRule>();
    const out: Out = new Map();
    const passed = new Map<string, { readonly gate: string; readonly until: "start" | "end" }[]>();
    for (const commit of evidence.surviving) {
      for (const { entity, events } of commit.entry.records) {
        if (entity.startsWith("gate/")) {
          for (const event of events as unknown as readonly GateEvent[]) {
            if (event.kind === "gateRuled") rules.set(entity, event.rule);
          }
        }
        if (!isExecution(entity)) continue;
        for (const event of events) follow(entity, event, passed, out);
      }
      for (const [gate, tasks] of out) {
        const rule = rules.get(gate);
        if (rule?.kind !== "concurrency" || tasks.size <= rule.limit) continue;
        found(`${tasks.size} tasks are out at ${gate}, and ${rule.limit} may be: ${[...tasks].join(", ")}`, { commit });
      }
    }
  },
};

function follow(
  execution: string,
  event: ExecutionEvent,
  passed: Map<string, { readonly gate: string; readonly until: "start" | "end" }[]>,
  out: Out,
): void {
  const leave = (isMeant: (task: string) => boolean): void => {
    for (const tasks of out.values()) for (const task of tasks) if (isMeant(task)) tasks.delete(task);
    for (const task of passed.keys()) if (isMeant(task)) passed.delete(task);
  };
  if (event.kind === "executionEnded") return leave((one) => one.startsWith(`${execution} `));
  if (!("node" in event)) return;
  const task = `${execution} ${event.node}`;
  if (event.kind === "gateAsked") passed.set(task, [...(passed.get(task) ?? []), event]);
  if (event.kind === "taskDispatched") {
    for (const { gate, until } of passed.get(task) ?? []) {
      if (until !== "end") continue;
      const tasks = out.get(gate);
      if (tasks === undefined) out.set(gate, new Set([task]));
      else tasks.add(task);
    }
  }
  if (LEAVING.has(event.kind)) leave((one) => one === task || one.startsWith(`${task}[`));
}

/** After these a task is not out any more and has left its gates, and so have the items of a map. */
export const LEAVING: ReadonlySet<ExecutionEvent["kind"]> = new Set([
  "taskCompleted",
  "taskFailed",
  "deliveryLost",
  "nodeFailed",
  "nodeSkipped",
  "nodeCompleted",
  "repaired",
]);

/** No more executions of a workflow are under way than may be, and nothing of one goes out before it has its place. */
const crowdsKept: Invariant = {
  id: "I48",
  name: "executions of a workflow",
  before(step, found) {
    const { story, event } = step;
    if (event.kind !== "taskDispatched" || !story.needsEntry || story.entry === "granted") return;
    found("It runs, and has no place among those of its workflow", placeOf(step));
  },
  world(evidence, _stories, found) {
    const rules = new Map<string, GateRule>();
    const inside = new Map<string, Set<string>>();
    const gateOf = new Map<string, string>();
    for (const commit of evidence.surviving) {
      for (const { entity, events } of commit.entry.records) {
        for (const event of events as readonly (ExecutionEvent | GateEvent)[]) {
          if (event.kind === "gateRuled") rules.set(entity, event.rule);
          if (event.kind === "entryGranted") {
            gateOf.set(entity, event.gate);
            inside.set(event.gate, (inside.get(event.gate) ?? new Set()).add(entity));
          }
          if (event.kind === "executionEnded") inside.get(gateOf.get(entity) ?? "")?.delete(entity);
        }
      }
      for (const [gate, executions] of inside) {
        const rule = rules.get(gate);
        if (rule?.kind !== "concurrency" || executions.size <= rule.limit) continue;
        found(`${executions.size} executions are under way at ${gate}, and ${rule.limit} may be`, { commit });
      }
    }
  },
};

/** Whoever waits at a gate has told it so, in the same commit. */
const asksAreSent: Invariant = {
  id: "I39c",
  name: "asks are sent",
  before(step, found) {
    const { story, event, commit } = step;
    if (event.kind !== "gateAsked") return;
    const isSent = commit.entry.mail.some(({ to, from, body }) => {
      const { kind, ask, asks } = body as {
        readonly kind?: Json;
        readonly ask?: number;
        readonly asks?: readonly { readonly ask: number }[];
      };
      if (to !== event.gate || from !== story.entity) return false;
      if (event.wait === "cache") return kind === "cacheLookup" && ask === event.ask;
      return kind === "gateAcquire" && asks!.some((each) => each.ask === event.ask);
    });
    if (!isSent) found(`It waits at ${event.gate}, which was not asked`, placeOf(step));
  },
};

/** A task that goes out has been let through by every gate that its definition names, for this dispatch. */
const nobodySlipsBy: Invariant = {
  id: "I39a",
  name: "no task passes a gate unasked",
  before(step, found) {
    const { story, event, node } = step;
    if (event.kind !== "taskDispatched" || node === undefined) return;
    const workflow = step.evidence.world.definitions[story.accepted?.definition ?? ""];
    const expected = workflow === undefined ? 0 : gatesOf(node.spec, workflow);
    const granted = grantsOf(step.evidence).get(`${story.entity} ${story.version + 1}`) ?? 0;
    if (granted !== expected) found(`It went out after ${granted} of ${expected} gates`, placeOf(step));
  },
};

function gatesOf({ limit, concurrency, budget }: WorkflowNode, workflow: Workflow): number {
  const wanted = typeof limit === "string" ? { name: limit } : limit;
  const spec: LimitSpec | undefined = wanted?.name === undefined ? wanted : workflow.limits?.[wanted.name];
  const { breaker, concurrency: places, rate, tokens_per_minute: tokens } = spec ?? {};
  return [budget, workflow.budget, concurrency, breaker, places, rate, tokens].filter((each) => each !== undefined)
    .length;
}

const COUNTED = new WeakMap<Evidence, ReadonlyMap<string, number>>();

/** By execution and version of each dispatch: how many gates had said yes to it, in their own journals and in its own. */
function grantsOf(evidence: Evidence): ReadonlyMap<string, number> {
  let counted = COUNTED.get(evidence);
  if (counted === undefined) COUNTED.set(evidence, (counted = countGrants(evidence)));
  return counted;
}

const LEAVING_GATES: ReadonlySet<string> = new Set([
  "repaired",
  "nodeSkipped",
  "nodeFailed",
  "nodeCompleted",
  "taskCompleted",
  "taskFailed",
]);

function countGrants(evidence: Evidence): ReadonlyMap<string, number> {
  const counted = new Map<string, number>();
  const granted = new Set<string>();
  const heard = new Map<string, number>();
  for (const { entry } of evidence.surviving) {
    for (const { entity, events } of entry.records) {
      for (const event of events as unknown as readonly GateEvent[]) {
        if (event.kind !== "asksGranted") continue;
        for (const { execution, ask } of event.grants) granted.add(`${entity} ${execution} ${ask}`);
      }
    }
    for (const { entity, events, version } of entry.records) {
      if (!isExecution(entity)) continue;
      for (const [i, event] of events.entries()) {
        const task = "node" in event ? `${entity} ${event.node}` : "";
        if (event.kind === "gateGranted" && granted.has(`${event.gate} ${entity} ${event.ask}`)) {
          heard.set(task, (heard.get(task) ?? 0) + 1);
        }
        if (event.kind === "taskDispatched") {
          counted.set(`${entity} ${version + i}`, heard.get(task) ?? 0);
          heard.delete(task);
        }
        // Whoever leaves a gate without going out asks anew; as does who waited to be delivered again when the result of
        // the delivery before came after all.
        if (LEAVING_GATES.has(event.kind)) heard.delete(task);
        if (event.kind === "paused" || event.kind === "executionEnded") {
          for (const one of heard.keys()) if (one.startsWith(`${entity} `)) heard.delete(one);
        }
      }
    }
  }
  return counted;
}

/** Everything that was granted is given back: in a world at peace all gates are empty. */
const nothingLeaks: Invariant = {
  id: "I39b",
  name: "gates are empty in the end",
  world(evidence, _stories, found) {
    const { world, poisoned } = evidence;
    if (!world.liveness) return;
    for (const { entity, held, waiting } of gateStories(evidence, () => {}).values()) {
      for (const [what, asks] of [
        ["is held", held],
        ["waits", waiting],
      ] as const) {
        const left = [...asks].filter((ask) => !poisoned.has(executionOf(ask.split(" ")[0]!)));
        if (left.length > 0) found(`At ${entity} this still ${what}: ${left.join(", ")}`);
      }
    }
  },
};

function gateStories(evidence: Evidence, found: Found): ReadonlyMap<string, GateStory> {
  const gates = new Map<string, GateStory>();
  for (const commit of evidence.surviving) {
    for (const { entity, events } of commit.entry.records) {
      if (!entity.startsWith("gate/")) continue;
      let gate = gates.get(entity);
      if (gate === undefined) {
        gate = {
          entity,
          rule: null,
          costs: new Map(),
          waiting: new Set(),
          held: new Set(),
          closedUntilMs: 0,
          grants: [],
        };
        gates.set(entity, gate);
      }
      for (const event of events as unknown as readonly GateEvent[]) foldGate(gate, event, commit, found);
    }
  }
  return gates;
}

function foldGate(gate: GateStory, event: GateEvent, commit: Commit, found: Found): void {
  if (event.kind === "asksSuperseded") {
    for (const { execution, ask } of event.asks) gate.waiting.delete(`${execution} ${ask}`);
  }
  if (event.kind === "gateRuled") gate.rule = event.rule;
  if (event.kind === "asksQueued") {
    for (const { ask, cost = 1 } of event.asks) {
      gate.waiting.add(`${event.execution} ${ask}`);
      gate.costs.set(`${event.execution} ${ask}`, cost);
    }
  }
  if (event.kind === "asksRefused") {
    for (const ask of event.asks) gate.waiting.delete(`${event.execution} ${ask}`);
  }
  if (event.kind === "asksReturned") {
    for (const ask of event.asks) {
      gate.held.delete(`${event.execution} ${ask}`);
      gate.waiting.delete(`${event.execution} ${ask}`);
    }
  }
  if (event.kind === "gateClosed" || event.kind === "breakerOpened") {
    gate.closedUntilMs = Math.max(gate.closedUntilMs, event.untilMs);
  }
  if (event.kind !== "asksGranted") return;
  if (event.atMs < gate.closedUntilMs) {
    found(`${gate.entity} let somebody through at ${event.atMs}, and was closed until ${gate.closedUntilMs}`, {
      commit,
    });
  }
  for (const { execution, ask } of event.grants) {
    const name = `${execution} ${ask}`;
    const { rule } = gate;
    if (!gate.waiting.delete(name)) found(`${gate.entity} let ${name} through, which did not wait`, { commit });
    gate.held.add(name);
    const most = rule?.kind === "rate" ? rule.burst : 1;
    if (rule === null) continue;
    gate.grants.push({ atMs: event.atMs, cost: Math.min(gate.costs.get(name) ?? 1, most), rule, commit });
  }
}

export const GATES: readonly Invariant[] = [
  rateKept,
  callsKept,
  placesKept,
  crowdsKept,
  asksAreSent,
  nobodySlipsBy,
  nothingLeaks,
];
