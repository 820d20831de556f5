import type { NodeCompleted, NodeFailed, TaskDispatched } from "../../core/execution/events.ts";
import type { Json } from "../../json/json.ts";
import { dispatchOf, type Evidence, placeOfToken, tokenOf } from "./evidence.ts";
import { fallbackAt } from "./fallbacks.ts";
import { type Found, type Invariant, placeOf, readerOf, type Step } from "./invariant.ts";
import { type Filled, filled, givenTo, resolved, secretsNamed } from "./reference-config.ts";
import { mockOf, passedOn } from "./reference-nodes.ts";
import { MISSING, type Reader, UNKNOWN } from "./reference-path.ts";
import { sameJson, sameValue } from "./same-json.ts";
import { instanceOf } from "./story.ts";

/** A handler gets what the definition, the input and the committed outputs make of its config. */
const inputsMatch: Invariant = {
  id: "I18",
  name: "inputs match",
  before(step, found) {
    const { event, node, story } = step;
    if (node === undefined || story.shape === null || node.generation !== story.generation) return;
    if (event.kind === "taskDispatched") judgeDispatch(step, { ...step, node, seen: event.seen }, event, found);
    if (event.kind === "nodeFailed") judgeFailure(step, readerOf(step, node), event, found);
  },
  world(evidence, _stories, found) {
    const { tokens, world } = evidence;
    for (const { given, starts } of tokens.values()) {
      if (given === null) continue;
      for (const { entry } of starts) {
        const expected = filled(given, world.secrets, (hash) => evidence.blob(hash));
        const place = placeOfToken(entry.token);
        if (expected !== UNKNOWN && !sameJson(entry.config, expected)) {
          const got = `${shorten(entry.config)} instead of ${shorten(expected)}`;
          found(`The handler of the task ${entry.token} got the config ${got}`, place);
        }
        if (!sameJson(entry.inputs ?? null, given.inputs ?? null)) {
          found(`The handler of the task ${entry.token} got other inputs than its parents gave`, place);
        }
      }
    }
  },
};

function judgeDispatch(step: Step, reader: Reader, event: TaskDispatched, found: Found): void {
  if (!isRightlySeen(step, reader, event, found)) return;
  const given = givenTo(reader, fallbackAt(step));
  if (given === UNKNOWN) return;
  if (given === MISSING) return found("It was dispatched, and a template in its config has no value", placeOf(step));
  const facts = step.evidence.tokens.get(tokenOf(event, step.story.id, step.story.generation));
  if (facts !== undefined) facts.given = given;
  if (event.inputHash === given.inputHash) return;
  found(
    `Its input has the hash ${event.inputHash}, and that of ${shorten(given.config)} is ${given.inputHash}`,
    placeOf(step),
  );
}

/**
 * A task made again is made from what the first one saw, and that one saw all that its join had waited for; the items of
 * a map see what their map saw. Every round looks anew.
 */
function isRightlySeen(step: Step, { node, story }: Reader, event: TaskDispatched, found: Found): boolean {
  const { seen } = event;
  const fixed = node.item?.map.opened?.seen ?? ((event.round ?? 0) === node.round ? node.seen : null);
  const isFirst = fixed === null;
  if (isFirst ? seen <= story.version && seen >= node.joinedVersion : seen === fixed) return true;
  const expected = isFirst ? `${node.joinedVersion} to ${story.version}` : `${fixed}, as the first`;
  found(`Its input was made from version ${seen}, and must be from ${expected}`, placeOf(step));
  return false;
}

function judgeFailure(step: Step, reader: Reader, event: NodeFailed, found: Found): void {
  if (event.error.code !== "TEMPLATE_UNRESOLVED") return;
  const { spec } = reader.node;
  const { config: _, nodes: _nodes, ...ownOfMap } = spec.config;
  const given = resolved(spec.handler === "map" ? ownOfMap : spec.config, reader);
  if (given === UNKNOWN || given === MISSING) return;
  found(`It failed because of a template, and its config resolves to ${shorten(given)}`, placeOf(step));
}

/** What the journal took as an output is what a handler of that very dispatch returned, or the engine's rule gives. */
const outputsMatch: Invariant = {
  id: "I19",
  name: "outputs match",
  before(step, found) {
    const { event, node, story, evidence, commit } = step;
    if (node === undefined) return;
    if (event.kind === "nodeCompleted") return judgeEngineNode(step, readerOf(step, node), event, found);
    if (event.kind !== "taskCompleted" && event.kind !== "lateResult") return;
    const token = event.attempt === node.attempt ? node.tokens[event.delivery - 1] : undefined;
    if (token === undefined) return; // I14 and I33 say so.
    const ends = evidence.tokens.get(token)?.ends ?? [];
    const known = ends.filter(({ entry, order }) => !entry.failed && order < commit.order);
    if (known.some(({ entry }) => sameValue(event.output, entry.output))) return;
    const what =
      known.length === 0 ? "no handler had returned anything for it" : "its handler had returned something else";
    found(`The output of the task ${token} was taken, and ${what} (${story.id})`, placeOf(step));
  },
};

function judgeEngineNode(step: Step, reader: Reader, event: NodeCompleted, found: Found): void {
  if (reader.story.shape === null || event.reason !== undefined || event.signal !== undefined) return;
  const expected = engineOutput(reader);
  if (expected === UNKNOWN || expected === MISSING || sameValue(event.output, expected)) return;
  found(`The engine ran it and its output is not ${shorten(expected)}`, placeOf(step));
}

/** Of routers, maps, reviews, children and ends others know more. */
function engineOutput(reader: Reader): Filled {
  const { spec, item } = reader.node;
  const { handler } = spec;
  if (item?.map.opened?.chunked === true) return UNKNOWN;
  if (handler === "input" || handler === "output") return passedOn(reader);
  if (handler === "wait" || handler === "delay") return null;
  const mock = mockOf(reader);
  return mock === undefined || mock === true ? UNKNOWN : mock;
}

/** A secret gets only where a template of that node names it, whatever upstream texts look like. */
const secretsByPosition: Invariant = {
  id: "M18",
  name: "secrets by position",
  world(evidence, stories, found) {
    const secrets = Object.entries(evidence.world.secrets ?? {});
    if (secrets.length === 0) return;
    for (const [token, { starts, given }] of evidence.tokens) {
      const { execution, instance } = dispatchOf(token);
      const story = stories.get(execution);
      // Its acceptance was lost with a store that went back: nobody knows its definition any more.
      if (story === undefined) continue;
      const spec = story.node(instance)?.spec;
      if (spec === undefined) continue; // Of a journal that was lost.
      for (const { entry } of starts) {
        const text = JSON.stringify([entry.config, entry.inputs ?? null]);
        for (const [name, secret] of secrets) {
          const count = occurrences(text, secret);
          if (count === 0) continue;
          const named = secretsNamed(spec, story.shape!).has(name);
          const expected =
            given === null ? UNKNOWN : filled(given, evidence.world.secrets, (hash) => evidence.blob(hash));
          const allowed = expected === UNKNOWN ? Infinity : occurrences(JSON.stringify(expected), secret);
          if (named && count <= allowed) continue;
          found(`The handler of the task ${token} got the secret ${name} where no template of its node names it`, {
            execution,
            node: instance,
          });
        }
      }
    }
  },
};

function occurrences(text: string, part: string): number {
  return text.split(part).length - 1;
}

/**
 * The key a handler gets is the same for every attempt and delivery, and in a later generation too as long as nobody
 * knows whether the work was done; no other node has it.
 */
const idempotencyKey: Invariant = {
  id: "M19",
  name: "idempotency key",
  before({ event, node, story, evidence }) {
    if (event.kind !== "taskDispatched" || node === undefined) return;
    const facts = evidence.tokens.get(tokenOf(event, story.id, story.generation));
    if (facts === undefined) return;
    const stem = `${story.id}/${instanceOf(event.node, event.round)}/`;
    const [first] = facts.delivered;
    const number = Number(first?.entry.idempotencyKey.slice(stem.length));
    if (node.isKeyFree && number > node.rerun) node.rerun = number;
    if (first !== undefined) node.isKeyFree = false;
    facts.key = `${stem}${node.cutRounds.get(event.round ?? 0) ?? node.rerun}`;
  },
  world({ tokens }: Evidence, _stories, found) {
    for (const [token, { delivered, key }] of tokens) {
      if (key === null) continue; // Of a journal that was lost.
      for (const { entry } of delivered) {
        if (entry.idempotencyKey === key) continue;
        found(`A delivery of ${token} has the key ${entry.idempotencyKey}; it must be ${key}`, placeOfToken(token));
      }
    }
  },
};

export function shorten(json: Json): string {
  const text = JSON.stringify(json);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

export const DATA: readonly Invariant[] = [inputsMatch, outputsMatch, secretsByPosition, idempotencyKey];
