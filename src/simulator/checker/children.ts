import type {
  ChildCall,
  ChildrenCancelled,
  GenerationOpened,
  NodeCompleted,
  NodeFailed,
  NodeWaiting,
} from "../../core/execution/events.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Workflow } from "../../definition/workflow.ts";
import { type Commit, type Evidence, executionOf, isExecution, type Mail } from "./evidence.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import type { NodeStory } from "./node-story.ts";
import { fieldOf, mockOf, outputOf } from "./reference-nodes.ts";
import { indexOf, itemOf, MISSING, type Reader, readPath, rootOf, UNKNOWN, valueOf } from "./reference-path.ts";
import { sameJson, sameValue } from "./same-json.ts";
import { GRAPH } from "./shape.ts";
import type { Ending, Story } from "./story.ts";

/**
 * A child is called by mail of the commit that begins to wait for it; its end is told by the commit that ends it, once
 * for each call, and reaches its parent once; whoever wants nothing of it any more calls it off.
 */
const children: Invariant = {
  id: "I45",
  name: "children",
  before(step, found) {
    const { event, node } = step;
    if (event.kind === "childrenCancelled") return judgeCancels(step, event, found);
    if (event.kind === "generationOpened") return judgeReopening(step, event, found);
    if (event.kind === "executionEnded" || event.kind === "parentAnswered") return learnOutput(step);
    if (node === undefined || node.end !== null || !isChildNode(node)) return;
    if (event.kind === "nodeWaiting") return judgeCall(step, event, node, found);
    if (event.kind === "nodeCompleted" || event.kind === "nodeFailed") judgeAnswer(step, event, node, found);
  },
  world(evidence, stories, found) {
    const told = toldBy(evidence);
    const counted = countedBy(evidence, stories, found);
    for (const story of stories.values()) {
      judgeTold(story, told.get(story.entity) ?? [], evidence, found);
      told.delete(story.entity);
      judgeHeard(story, evidence, counted, found);
      judgeOrphans(story, stories, evidence, found);
      judgeCancelled(story, evidence, found);
    }
    for (const [child, [mail]] of told)
      found(`${mail!.to} was told of the end of ${child}, which has no journal`, { commit: mail!.commit });
  },
};

/** It runs as an execution of its own. */
function isChildNode({ spec, item }: NodeStory): boolean {
  return spec.handler === "workflow" || spec.handler === GRAPH || item?.map.opened?.chunked === true;
}

// ── the call ────────────────────────────────────────────────────────────────────────────────────────────────────────

function judgeCall(step: Step, event: NodeWaiting, node: NodeStory, found: Found): void {
  const { story, commit, evidence } = step;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  if (event.wait.for !== "child") return say(`It waits for a ${event.wait.for}, and is to call a child`);
  const { child } = event.wait;
  const entity = `execution/${child.execution}`;
  const mail = (evidence.mail.get(entity) ?? []).find(
    ({ commit: sent, body }) => sent === commit && body.kind === "start" && callOf(body) === child.call,
  );
  if (mail === undefined) return say(`It waits for ${entity}, and no start went out with that`);
  const { body } = mail;
  const parent = body["parent"];
  const depth = (story.accepted?.parent?.depth ?? 0) + 1;
  const isWithin = story.entry !== null || story.accepted?.parent?.within === true;
  const within = isWithin ? { within: true } : {};
  const expected = { entity: story.entity, instance: node.instance, call: child.call, depth, ...within };
  const { allowance = null, account = null, ...said } = isJsonObject(parent) ? parent : {};
  // A part of a map spends what the execution has that the map is in; a workflow that is called has budgets of its own.
  const own = story.accepted?.parent?.account ?? story.id;
  if (account !== null && (account !== own || !isItem(node.instance)))
    say(`Its child is to spend for ${JSON.stringify(account)}`);
  if (!sameJson(said, expected)) say(`The start of its child says ${JSON.stringify(parent)}`);
  judgeAllowance(step, child, allowance, say);
  if (body["definition"] !== child.definition) say("The start of its child names another definition than the wait");
  const known = story.children.get(node.instance);
  const isSame = known?.execution === child.execution;
  if (isSame && child.call !== known.call + 1) say(`Call ${child.call} of its child follows on call ${known.call}`);
  if (!isSame && child.call !== 1) say(`A new child was called with number ${child.call}`);
  if (known !== undefined && !node.isRenewed) isRightChild(mail, known.execution, isSame, evidence, say);
  judgeDefinition(step, child.definition, node, say);
  judgeInput(body, readerOf(step, node), say);
}

function isItem(instance: string): boolean {
  return instance.endsWith("]");
}

/** Below the one that nobody called there are never more open than it may have: each gives away what it was given. */
function judgeAllowance(step: Step, child: ChildCall, allowance: Json, say: (sentence: string) => void): void {
  const { holds = 0 } = child;
  if (holds < 1 || allowance !== holds - 1)
    say(`Its child may have ${JSON.stringify(allowance)} below it, of ${holds}`);
  // One that is called again keeps what it was given, whoever else was called meanwhile.
  if (child.call > 1) return;
  const own = step.story.accepted?.parent === undefined ? 10_000 : (step.story.accepted.parent.allowance ?? 10_000);
  let given = holds;
  for (const { wait, end } of step.story.nodes.flatMap((node) => [node, ...node.items])) {
    if (end === null && wait?.for === "child" && wait.child.call === 1) given += wait.child.holds ?? 0;
  }
  if (given > own) say(`${given} executions may be open below it, and ${own} are allowed`);
}

/** What failed is tried again in the same child if that is given the same; with another input it is another child. */
function isRightChild(
  { from, body }: Mail,
  known: string,
  isSame: boolean,
  { mail }: Evidence,
  say: (sentence: string) => void,
): void {
  const instanceOf = (start: Mail["body"]): Json | undefined =>
    isJsonObject(start["parent"]) ? start["parent"]["instance"] : undefined;
  const before = (mail.get(`execution/${known}`) ?? []).findLast(
    (other) => other.body.kind === "start" && other.body !== body && instanceOf(other.body) === instanceOf(body),
  );
  if (before === undefined || before.from !== from) return;
  const isGivenSame = ["input", "around"].every((name) => sameJson(before.body[name] ?? null, body[name] ?? null));
  if (isGivenSame && !isSame) say("Another child was called to go on with what failed");
  if (!isGivenSame && isSame) say("The same child was called again, with another input");
}

function callOf(body: Mail["body"]): number {
  const parent = body["parent"];
  const call = isJsonObject(parent) ? parent["call"] : undefined;
  return typeof call === "number" ? call : 1;
}

function judgeDefinition(step: Step, hash: string, node: NodeStory, say: (sentence: string) => void): void {
  const { world } = step.evidence;
  const workflow = world.definitions[hash];
  if (workflow === undefined) return say(`Its child has the definition ${hash}, which nobody knows`);
  if (node.spec.handler === "workflow" && node.item?.map.opened?.chunked !== true) {
    const name = fieldOf("name", readerOf(step, node));
    if (typeof name !== "string") return;
    if (!(world.published[name] ?? []).includes(hash)) say(`Its child has a definition that is not one of ${name}`);
    return;
  }
  const inner = node.item!.map.spec.config["nodes"];
  const isRight = workflow["x-millrace-part"] === true ? isPartOf(workflow, node) : sameNodes(workflow, inner);
  if (!isRight) say("Its child has another definition than the map has inside");
}

function sameNodes({ nodes }: Workflow, inner: Json | undefined): boolean {
  return inner !== undefined && sameJson(nodes as unknown as Json, inner);
}

/** A part is the map itself, over the items it is given. */
function isPartOf({ nodes }: Workflow, { item }: NodeStory): boolean {
  const [only] = nodes;
  // How many may fail is judged of the whole.
  const { items: _, tolerated_failures: _tolerated, ...rest } = item!.map.spec.config;
  const { items: _own, tolerated_failures: _ownTolerated, ...config } = only?.config ?? {};
  return nodes.length === 1 && only!.handler === "map" && sameJson(config, rest);
}

/** A workflow gets the input it is called with; what is inside a map sees the item and what is around. */
function judgeInput(body: Mail["body"], reader: Reader, say: (sentence: string) => void): void {
  const { node, story, evidence } = reader;
  const isWorkflow = node.spec.handler === "workflow" && node.item?.map.opened?.chunked !== true;
  const input = isWorkflow ? (fieldOf("input", reader) ?? null) : valueOf(story.input, evidence);
  if (input !== UNKNOWN && input !== MISSING) {
    evidence.learn(input);
    if (!sameValue(body["input"] as never, input)) say("Its child was called with another input");
  }
  if (isWorkflow) return;
  const around = body["around"];
  if (!isJsonObject(around)) return say("Its child was called without what is around it");
  const item = itemOf(reader);
  if (item !== UNKNOWN) {
    evidence.learn(item);
    if (!sameValue(around["item"] as never, item)) say("Its child was called with another item");
  }
  const index = indexOf(reader);
  if (index !== UNKNOWN && around["index"] !== index)
    say(`Its child was called as item ${JSON.stringify(around["index"])}`);
  if (around["executionId"] !== rootOf(story)) say("Its child was told of another execution");
  judgeAround(around["nodes"] as never, reader, body["definition"] as string, say);
}

function judgeAround(
  nodes: Parameters<typeof sameValue>[0],
  reader: Reader,
  definition: string,
  say: (sentence: string) => void,
): void {
  const { evidence, story } = reader;
  const names = (evidence.world.definitions[definition]?.["x-millrace-around"] ?? []) as readonly string[];
  const expected: Record<string, Json> = {};
  for (const id of names) {
    const index = story.shape!.indexOf.get(id);
    const root = index === undefined ? { kind: "around" as const, id } : { kind: "node" as const, index };
    const output = readPath({ root, steps: ["output"] }, reader);
    const error = readPath({ root, steps: ["error"] }, reader);
    if (output === UNKNOWN || error === UNKNOWN) return;
    if (output !== MISSING) expected[id] = { output };
    else if (error !== MISSING) expected[id] = { error };
  }
  evidence.learn(expected);
  if (!sameValue(nodes, expected)) say("Its child sees the nodes around otherwise than they ended");
}

// ── the answer ──────────────────────────────────────────────────────────────────────────────────────────────────────

function judgeAnswer(step: Step, event: NodeCompleted | NodeFailed, node: NodeStory, found: Found): void {
  const { story, commit, evidence } = step;
  const say = (sentence: string): void => found(sentence, placeOf(step));
  const child = node.wait?.for === "child" ? node.wait.child : undefined;
  if (child === undefined) {
    const isMocked = node.spec.handler === "workflow" && mockOf(readerOf(step, node)) !== undefined;
    if (event.kind === "nodeCompleted" && !isMocked) say("It is done, and has called no child");
    return;
  }
  const answers = (evidence.mail.get(story.entity) ?? []).filter(
    ({ body, commit: sent }) =>
      body.kind === "childEnded" &&
      body["child"] === `execution/${child.execution}` &&
      body["instance"] === node.instance &&
      sent.order < commit.order &&
      (sent.voidedAt === null || sent.voidedAt > commit.order),
  );
  const current = answers.filter(({ body }) => (body["call"] ?? 1) === child.call);
  if (event.kind === "nodeFailed") {
    const isOver = node.dueAtMs !== null && event.atMs >= node.dueAtMs;
    if (isOver || event.error.code !== "CHILD_FAILED") return;
    if (!current.some(({ body }) => body["status"] !== "completed")) say("Its child failed, and has not said so");
    return;
  }
  const isRight = current.some(
    ({ body }) => body["status"] === "completed" && sameJson(body["output"] ?? { json: null }, event.output as Json),
  );
  if (!isRight) say(`It is done, and its child ${child.execution} has not answered call ${child.call} like that`);
}

/** Large outputs are known by their hash: whoever computes the same knows them. */
function learnOutput({ story, event, evidence }: Step): void {
  if (event.kind === "executionEnded" && event.output !== undefined) return;
  const output = story.accepted?.parent === undefined ? UNKNOWN : outputOf(story, evidence);
  if (output !== UNKNOWN) evidence.learn(output);
}

// ── the end ─────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Told {
  readonly to: string;
  readonly body: Mail["body"];
  readonly commit: Commit;
}

/** Mail about ends, by child. */
function toldBy(evidence: Evidence): Map<string, Told[]> {
  const mails = new Map<string, Told[]>();
  for (const commit of evidence.surviving) {
    for (const { to, id, body } of commit.entry.mail) {
      if (!isJsonObject(body) || body["kind"] !== "childEnded" || typeof body["child"] !== "string") continue;
      if (evidence.isSentAgain(commit, to, id)) continue;
      const mail = { to, body: body as Mail["body"], commit };
      const list = mails.get(body["child"]);
      if (list === undefined) mails.set(body["child"], [mail]);
      else list.push(mail);
    }
  }
  return mails;
}

/** Every end is told by its own commit; a call for what is there already is answered by a commit that says so. */
function judgeTold(story: Story, told: readonly Told[], evidence: Evidence, found: Found): void {
  const parent = story.accepted?.parent;
  const execution = story.id;
  const left = new Set(told);
  for (const ending of parent === undefined ? [] : story.endings) {
    const mails = told.filter(
      ({ commit, body }) => commit === ending.commit && body["generation"] === ending.generation,
    );
    const [mail] = mails;
    // One whose cancel was faster than its start: whoever sent that wants to hear nothing.
    if (mail === undefined && ending.commit === story.acceptedIn && ending.event.reason === "cancel") continue;
    if (mail === undefined) {
      found(`It ended, and did not tell its parent ${parent!.entity}`, { execution, commit: ending.commit });
      continue;
    }
    left.delete(mail);
    wasToldRight(story, ending, mail, evidence, found);
  }
  for (const { call, commit, generation } of story.answered) {
    const mail = [...left].find(({ commit: sent, body }) => sent === commit && body["call"] === call);
    if (mail === undefined) found(`It answered call ${call}, and no mail went out with that`, { execution, commit });
    else left.delete(mail);
    if (mail !== undefined && mail.body["generation"] !== generation) {
      found(`It answered call ${call} for generation ${JSON.stringify(mail.body["generation"])}`, {
        execution,
        commit,
      });
    }
  }
  isAnswered(story, told, evidence, found);
  for (const { to, commit } of left) found(`It told ${to} of an end that there was not`, { execution, commit });
  const calls = told.map(({ body }) => `${JSON.stringify(body["generation"])} ${JSON.stringify(body["call"])}`);
  if (new Set(calls).size < calls.length) found("It told its parent of the same end twice for one call", { execution });
}

/** In a world at peace whoever called last has heard of the end, however long that had been there. */
function isAnswered(story: Story, told: readonly Told[], { world }: Evidence, found: Found): void {
  const isEarly = story.endings.length === 1 && story.endedIn === story.acceptedIn;
  if (!world.liveness || world.lossy || story.accepted?.parent === undefined || story.ended === null) return;
  if (story.isQuarantined || isEarly || told.some(({ body }) => (body["call"] ?? 1) === story.call)) return;
  found(`Its parent called it for the ${story.call}th time, and never got an answer`, { execution: story.id });
}

function wasToldRight(
  story: Story,
  ending: Ending,
  { to, body, commit }: Told,
  evidence: Evidence,
  found: Found,
): void {
  const parent = story.accepted!.parent!;
  const { instance, status, call = 1 } = body;
  const isRight = to === parent.entity && instance === parent.instance && status === ending.event.status;
  if (!isRight || call !== ending.call) {
    const said = JSON.stringify({ instance, status, call });
    found(`It ended ${ending.event.status}, and ${to} was told ${said}`, { execution: story.id, commit });
  }
  const isNewest = ending === story.endings.at(-1) && story.ended !== null;
  if (!isNewest || status !== "completed" || !isExecution(to)) return;
  const output = outputOf(story, evidence);
  if (output === UNKNOWN || sameValue((body["output"] ?? { json: null }) as never, output)) return;
  found(`Its parent was given another output than ${JSON.stringify(output).slice(0, 120)}`, {
    execution: story.id,
    commit,
  });
}

/** In a world at peace whoever waits for a child has heard of its end, and tallies have counted it. */
function judgeHeard(story: Story, { world }: Evidence, counted: ReadonlySet<string>, found: Found): void {
  const parent = story.accepted?.parent;
  if (!world.liveness || parent === undefined || story.ended === null || isExecution(parent.entity)) return;
  for (const { generation, commit } of story.endings) {
    if (counted.has(`${parent.entity} ${story.entity} ${generation}`)) continue;
    found(`It ended, and its parent ${parent.entity} never heard of it`, { execution: story.id, commit });
  }
}

// ── called off ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** What is called off was waited for, and each gets its cancel by that very commit. */
function judgeCancels({ story, commit, evidence, ...rest }: Step, event: ChildrenCancelled, found: Found): void {
  for (const instance of event.instances) {
    const child = story.children.get(instance);
    const entity = `execution/${child?.execution}`;
    const isSent = (evidence.mail.get(entity) ?? []).some(
      ({ commit: sent, body }) => sent === commit && body.kind === "cancel",
    );
    const place = { ...placeOf({ story, commit, evidence, ...rest }), node: instance };
    if (child === undefined) found("Its child was called off, and it has none", place);
    else if (!isSent) found(`Its child ${entity} was called off, and no cancel went out with that`, place);
  }
}

/** The requests by which a parent has called a child off, with the calls they are about. */
function cancelsOf(
  { entity }: Story,
  { mail }: Evidence,
): { readonly request: Json; readonly call: number; readonly commit: Commit }[] {
  return (mail.get(entity) ?? []).flatMap(({ body, commit }) => {
    const start = body["start"];
    if (body.kind !== "cancel" || !isJsonObject(start)) return [];
    return [{ request: body["request"]!, call: callOf(start as Mail["body"]), commit }];
  });
}

/** A call that was called off before it came is not taken up any more. */
function judgeReopening(step: Step, { call }: GenerationOpened, found: Found): void {
  const { story, evidence } = step;
  if (call === undefined) return;
  for (const { request, call: off } of cancelsOf(story, evidence)) {
    const isHeard = story.requests.has(request as string) && off >= call;
    if (isHeard) found(`It was opened again for call ${call}, which had been called off`, placeOf(step));
  }
}

/** In a world at peace every cancel of a parent was heard: decided, or known to be of an earlier call. */
function judgeCancelled(story: Story, evidence: Evidence, found: Found): void {
  const { world } = evidence;
  if (!world.liveness || world.lossy || story.isQuarantined) return;
  for (const { request, call, commit } of cancelsOf(story, evidence)) {
    const isOver = story.endings.some(({ commit: at, event }) => at === story.acceptedIn && event.reason === "cancel");
    if (story.requests.has(request as string) || story.call > call || isOver) continue;
    found(`Its parent called it off, and it never heard of that`, { execution: story.id, commit });
  }
}

/** A child that nobody waits for any more is told so, or called again; in a world at peace it is over. */
function judgeOrphans(
  story: Story,
  stories: ReadonlyMap<string, Story>,
  { mail, world }: Evidence,
  found: Found,
): void {
  if (!world.liveness || world.lossy || story.isQuarantined) return;
  for (const { instance, child, commit } of story.orphans) {
    const place = { execution: story.id, node: instance, commit };
    const mails = (mail.get(`execution/${child.execution}`) ?? []).filter(({ commit: sent }) => sent.voidedAt === null);
    const isCancelled = mails.some(
      ({ body }) =>
        body.kind === "cancel" && isJsonObject(body["start"]) && callOf(body["start"] as never) >= child.call,
    );
    const isCalledAgain = mails.some(({ body }) => body.kind === "start" && callOf(body) > child.call);
    if (!isCancelled && !isCalledAgain) {
      found(`Its child ${child.execution} was left behind, and nobody called it off`, place);
      continue;
    }
    const orphan = stories.get(child.execution);
    if (isCalledAgain || orphan?.isQuarantined) continue;
    if (orphan === undefined || orphan.accepted === null)
      found(`Its child ${child.execution} never got its cancel`, place);
    else if (orphan.ended === null) found(`Its child ${child.execution} was called off, and goes on`, place);
  }
}

/** What the simulator's own parents, the tallies, wrote down: `childCounted` with `child` as `entity:generation`. */
function countedBy({ surviving }: Evidence, stories: ReadonlyMap<string, Story>, found: Found): ReadonlySet<string> {
  const counted = new Set<string>();
  for (const commit of surviving) {
    for (const { entity, events } of commit.entry.records) {
      if (isExecution(entity)) continue;
      for (const event of events as readonly {
        readonly kind: string;
        readonly child?: unknown;
        readonly status?: unknown;
      }[]) {
        if (event.kind !== "childCounted" || typeof event.child !== "string") continue;
        const at = event.child.lastIndexOf(":");
        const child = event.child.slice(0, at);
        const generation = Number(event.child.slice(at + 1));
        const execution = executionOf(child);
        const name = `${entity} ${child} ${generation}`;
        const place = { execution, commit };
        if (counted.has(name)) found(`${entity} counted it twice`, place);
        counted.add(name);
        const story = stories.get(execution);
        const ending = story?.endings.find((other) => other.generation === generation);
        const isTold = ending !== undefined && ending.commit.order < commit.order;
        if (!isTold || story?.accepted?.parent?.entity !== entity)
          found(`${entity} counted it, and was never told of its end`, place);
        else if (ending.event.status !== event.status) found(`${entity} counted it as ${String(event.status)}`, place);
      }
    }
  }
  return counted;
}

export const CHILDREN: readonly Invariant[] = [children];
