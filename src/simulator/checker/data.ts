import type { NodeCompleted, NodeFailed, TaskDispatched } from "../../core/execution/events.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import { type Evidence, executionOf, tokenOf } from "./evidence.ts";
import { type Found, type Invariant, placeOf, type Step } from "./invariant.ts";
import { filled, givenTo, parentOutputs, secretsNamed } from "./reference-config.ts";
import { MISSING, type Reader, UNKNOWN, valueOf } from "./reference-path.ts";
import { sameJson, sameValue } from "./same-json.ts";

/** A handler gets what the definition, the input and the committed outputs make of its config. */
const inputsMatch: Invariant = {
  id: "I18",
  name: "inputs match",
  before(step, found) {
    const { event, node, story } = step;
    if (node === undefined || story.shape === null) return;
    if (event.kind === "taskDispatched") judgeDispatch(step, { ...step, node, seen: event.seen }, event, found);
    if (event.kind === "nodeFailed") judgeFailure(step, { ...step, node, seen: node.seen }, event, found);
  },
  world(evidence, _stories, found) {
    const { tokens, world } = evidence;
    for (const { given, starts } of tokens.values()) {
      if (given === null) continue;
      for (const { entry } of starts) {
        const expected = filled(given, world.secrets, (hash) => evidence.blob(hash));
        const [, execution = "", , node = ""] = entry.token.split(":");
        const place = { execution, node };
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
  const given = givenTo(reader);
  if (given === UNKNOWN) return;
  if (given === MISSING) return found("It was dispatched, and a template in its config has no value", placeOf(step));
  const token = tokenOf(event.nonce, step.story.id, event.node, event.attempt, event.delivery);
  const facts = step.evidence.tokens.get(token);
  if (facts !== undefined) facts.given = given;
  if (event.inputHash === given.inputHash) return;
  found(
    `Its input has the hash ${event.inputHash}, and that of ${shorten(given.config)} is ${given.inputHash}`,
    placeOf(step),
  );
}

/** A task made again is made from what the first one saw, and that one saw all that its join had waited for. */
function isRightlySeen(step: Step, { node, story }: Reader, event: TaskDispatched, found: Found): boolean {
  const { seen } = event;
  const isFirst = node.seen === null;
  if (isFirst ? seen <= story.version && seen >= node.joinedVersion : seen === node.seen) return true;
  const expected = isFirst ? `${node.joinedVersion} to ${story.version}` : `${node.seen}, as the first`;
  found(`Its input was made from version ${seen}, and must be from ${expected}`, placeOf(step));
  return false;
}

function judgeFailure(step: Step, reader: Reader, event: NodeFailed, found: Found): void {
  if (event.error.code !== "TEMPLATE_UNRESOLVED") return;
  const given = givenTo(reader);
  if (given === UNKNOWN || given === MISSING) return;
  found(`It failed because of a template, and its config resolves to ${shorten(given.config)}`, placeOf(step));
}

/** What the journal took as an output is what a handler of that very dispatch returned, or the engine's rule gives. */
const outputsMatch: Invariant = {
  id: "I19",
  name: "outputs match",
  before(step, found) {
    const { event, node, story, evidence, commit } = step;
    if (node === undefined) return;
    if (event.kind === "nodeCompleted") return judgeEngineNode(step, { ...step, node, seen: null }, event, found);
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
  if (reader.story.shape === null) return;
  const expected = engineOutput(reader);
  if (expected === UNKNOWN || sameValue(event.output, expected)) return;
  found(`The engine ran it and its output is not ${shorten(expected)}`, placeOf(step));
}

/** `input`: the execution's input over the config. `output`: the config, or without one what the parents gave. */
function engineOutput(reader: Reader): Json | typeof UNKNOWN {
  const { handler, config, inputs } = reader.node.shape.spec;
  if (handler === "output" && (inputs || Object.keys(config).length === 0)) return parentOutputs(reader);
  if (handler !== "input" && handler !== "output") return UNKNOWN;
  const given = givenTo(reader);
  if (given === UNKNOWN || given === MISSING) return UNKNOWN;
  const resolved = filled(given, {}, (hash) => reader.evidence.blob(hash));
  if (handler === "output" || resolved === UNKNOWN) return resolved;
  const input = valueOf(reader.story.accepted!.input, reader.evidence);
  if (input === UNKNOWN || input === null) return input === null ? resolved : UNKNOWN;
  return isJsonObject(input) && isJsonObject(resolved) ? { ...resolved, ...input } : input;
}

/** A secret gets only where a template of that node names it, whatever upstream texts look like. */
const secretsByPosition: Invariant = {
  id: "M18",
  name: "secrets by position",
  world(evidence, stories, found) {
    const secrets = Object.entries(evidence.world.secrets ?? {});
    if (secrets.length === 0) return;
    for (const [token, { starts, given }] of evidence.tokens) {
      const [, execution = "", , id = ""] = token.split(":");
      const story = stories.get(execution);
      // Its acceptance was lost with a store that went back: nobody knows its definition any more.
      if (story === undefined) continue;
      const node = story.node(id)?.shape;
      if (node === undefined) continue; // Of a journal that was lost.
      for (const { entry } of starts) {
        const text = JSON.stringify([entry.config, entry.inputs ?? null]);
        for (const [name, secret] of secrets) {
          const count = occurrences(text, secret);
          if (count === 0) continue;
          const named = secretsNamed(node, story.shape!).has(name);
          const expected =
            given === null ? UNKNOWN : filled(given, evidence.world.secrets, (hash) => evidence.blob(hash));
          const allowed = expected === UNKNOWN ? Infinity : occurrences(JSON.stringify(expected), secret);
          if (named && count <= allowed) continue;
          found(`The handler of the task ${token} got the secret ${name} where no template of its node names it`, {
            execution,
            node: id,
          });
        }
      }
    }
  },
};

function occurrences(text: string, part: string): number {
  return text.split(part).length - 1;
}

/** The key a handler gets is the same for every attempt and delivery of a node, and no other node's. */
const idempotencyKey: Invariant = {
  id: "M19",
  name: "one idempotency key per node and generation",
  world({ tokens }: Evidence, _stories, found) {
    const keys = new Map<string, string>();
    const owners = new Map<string, string>();
    for (const { delivered } of tokens.values()) {
      for (const { entry } of delivered) {
        const { idempotencyKey: key, node } = entry;
        const execution = executionOf(entry.execution);
        const owner = `${execution} ${node}`;
        const before = keys.get(owner) ?? key;
        if (before !== key) found(`A delivery has the key ${key}, an earlier one had ${before}`, { execution, node });
        const other = owners.get(key) ?? owner;
        if (other !== owner) found(`It has the key ${key}, which ${other} has too`, { execution, node });
        keys.set(owner, key);
        owners.set(key, owner);
      }
    }
  },
};

function shorten(json: Json): string {
  const text = JSON.stringify(json);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

export const DATA: readonly Invariant[] = [inputsMatch, outputsMatch, secretsByPosition, idempotencyKey];
