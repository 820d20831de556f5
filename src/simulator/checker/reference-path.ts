import type { Value } from "../../core/value.ts";
import { isJsonObject, type Json } from "../../json/json.ts";
import type { Commit, Evidence } from "./evidence.ts";
import type { NodeStory } from "./node-story.ts";
import type { Shape } from "./shape.ts";
import type { Story } from "./story.ts";

/** The path leads nowhere: what a default stands in for. */
export const MISSING: unique symbol = Symbol("missing");
/** Outside of what this reference covers: cannot judge. */
export const UNKNOWN: unique symbol = Symbol("unknown");

export type Read = Json | typeof MISSING | typeof UNKNOWN;

/** A path as templates and conditions write it. */
export interface Path {
  readonly root:
    | { readonly kind: "node"; readonly index: number }
    | { readonly kind: "input" | "execution" | "item" | "index" }
    /** A node of the workflow around, seen from inside a map. */
    | { readonly kind: "around"; readonly id: string };
  readonly steps: readonly (string | number)[];
}

/** From where a path is read: a node that is about to run. */
export interface Reader {
  readonly story: Story;
  readonly node: NodeStory;
  /** The version it looks at, if that is on record; null = as of now. */
  readonly seen: number | null;
  readonly commit: Commit;
  readonly evidence: Evidence;
  /** It has just made a round, and looks at what that gave. */
  readonly afterwards?: boolean;
}

const PATH = /^([A-Za-z0-9_-]+)((?:\.[A-Za-z0-9_-]+|\[\d+\]|\["[^"\\]*"\]|\['[^'\\]*'\])*)$/;
const STEP = /\.([A-Za-z0-9_-]+)|\[(\d+)\]|\["([^"\\]*)"\]|\['([^'\\]*)'\]/g;

/** A path, the name of a secret, or UNKNOWN. */
export function parsePath(text: string, shape: Shape): Path | { readonly secret: string } | typeof UNKNOWN {
  const match = PATH.exec(text);
  if (match === null) return UNKNOWN;
  const steps = [...match[2]!.matchAll(STEP)].map(([, key, index, double, single]) =>
    index === undefined ? (key ?? double ?? single!) : Number(index),
  );
  return rooted(match[1]!, steps, shape);
}

function rooted(name: string, steps: (string | number)[], shape: Shape): ReturnType<typeof parsePath> {
  if (name === "secrets") return steps.length === 1 ? { secret: String(steps[0]) } : UNKNOWN;
  if (name === "execution") return steps.length === 1 && steps[0] === "id" ? { root: EXECUTION, steps: [] } : UNKNOWN;
  const byNodes = name === "nodes";
  const id = byNodes ? steps.shift() : name;
  const index = typeof id === "string" ? shape.indexOf.get(id) : undefined;
  if (index !== undefined) return { root: { kind: "node", index }, steps };
  if (typeof id === "string" && shape.around.has(id)) return { root: { kind: "around", id }, steps };
  if (byNodes) return UNKNOWN;
  return name === "input" || name === "item" || name === "index" ? { root: { kind: name }, steps } : UNKNOWN;
}

const EXECUTION = { kind: "execution" } as const;

export function readPath({ root, steps }: Path, reader: Reader): Read {
  switch (root.kind) {
    case "execution":
      return rootOf(reader.story);
    case "input":
      return walk(valueOf(reader.story.input, reader.evidence), steps);
    case "item":
      return walk(itemOf(reader), steps);
    case "index":
      return steps.length === 0 ? indexOf(reader) : UNKNOWN;
    case "around":
      return readAround(root.id, steps, reader);
    case "node":
      return readNode(reader.story.nodes[root.index]!, steps, reader);
  }
}

/** What runs in a part of a large map sees the execution whose map it is. */
export function rootOf({ accepted, id, shape }: Reader["story"]): string {
  return shape?.isPart === true ? (accepted?.around?.executionId ?? id) : id;
}

function readNode(node: NodeStory, steps: Path["steps"], reader: Reader): Read {
  const isOwn = reader.afterwards === true && node === reader.node;
  const sight = isOwn ? "clear" : sightOf(node, reader);
  if (sight !== "clear") return sight === "hidden" ? MISSING : UNKNOWN;
  const [first, ...rest] = steps;
  if (first === "error" && node.status === "failed") return walk(node.error as unknown as Json, rest);
  if ((!isOwn && node.status !== "completed") || node.output === null) return MISSING;
  return walk(valueOf(node.output, reader.evidence), first === "output" ? rest : steps);
}

/** What the item at hand is: that of the map it runs in, or of the map around the whole execution. */
export function itemOf({ node, story, evidence }: Reader): Json | typeof UNKNOWN {
  if (node.item === null) {
    const around = story.accepted?.around;
    return around === undefined ? UNKNOWN : valueOf(around.item, evidence);
  }
  const { map, index } = node.item;
  const items = map.opened === null ? UNKNOWN : valueOf(map.opened.items, evidence);
  const item = items === UNKNOWN ? UNKNOWN : (items as readonly Json[])[index];
  return item === undefined ? UNKNOWN : item;
}

/** How many items a part of a large map has. */
const PART_ITEMS = 1000;

/** In a part of a large map the count goes on from the parts before. */
export function indexOf({ node, story }: Reader): number | typeof UNKNOWN {
  const around = story.accepted?.around?.index;
  if (node.item === null) return around ?? UNKNOWN;
  const before = story.shape!.isPart ? around : 0;
  return before === undefined ? UNKNOWN : before * PART_ITEMS + node.item.index;
}

function readAround(id: string, steps: Path["steps"], { story, evidence }: Reader): Read {
  const around = story.accepted?.around;
  const nodes = around === undefined ? UNKNOWN : valueOf(around.nodes, evidence);
  if (nodes === UNKNOWN || !isJsonObject(nodes)) return UNKNOWN;
  const view = nodes[id];
  if (!isJsonObject(view)) return MISSING;
  const [first, ...rest] = steps;
  if ("error" in view) return first === "error" ? walk(view["error"], rest) : MISSING;
  if (!("output" in view)) return MISSING;
  return walk(view["output"], first === "output" ? rest : steps);
}

/** The blob that a path names as a whole, if it does: such a value is passed on by reference. */
export function wholeBlob(path: Path, reader: Reader): { readonly hash: string; readonly bytes: number } | undefined {
  if (path.root.kind !== "node" && path.root.kind !== "input") return undefined;
  const node = path.root.kind === "node" ? reader.story.nodes[path.root.index]! : undefined;
  const whole =
    path.steps.length === 0 || (node !== undefined && path.steps.length === 1 && path.steps[0] === "output");
  if (node !== undefined && (node.status !== "completed" || sightOf(node, reader) !== "clear")) return undefined;
  const value = node === undefined ? reader.story.input : node.output;
  return whole && value !== null && "blob" in value ? value.blob : undefined;
}

export function valueOf(value: Value, evidence: Evidence): Json | typeof UNKNOWN {
  if ("json" in value) return value.json;
  const json = evidence.blob(value.blob.hash);
  return json === undefined ? UNKNOWN : json;
}

/**
 * Whether a reader sees how a node ended. Without a version on record it may be blurred: several nodes may be run by one
 * decision, on the state before it, so one that does not wait for all its parents may have been run without what comes
 * just before it in the journal.
 */
export function sightOf(node: NodeStory, { node: reading, seen, commit }: Reader): "clear" | "hidden" | "blurred" {
  if (node.endedVersion === null) return "hidden";
  if (seen !== null) return node.endedVersion <= seen ? "clear" : "hidden";
  const byEngine = node.endedBy?.startsWith("node") === true || node.endedBy === "roundEnded";
  const isBlurred = !reading.shape.waitsForAll && node.endedIn === commit && byEngine;
  return isBlurred ? "blurred" : "clear";
}

function walk(start: Json | typeof UNKNOWN, steps: readonly (string | number)[]): Read {
  if (start === UNKNOWN) return UNKNOWN;
  let at: Json = start;
  for (const step of steps) {
    if (Array.isArray(at)) {
      const index = typeof step === "number" ? step : /^(0|[1-9]\d*)$/.test(step) ? Number(step) : -1;
      if (index < 0 || index >= at.length) return MISSING;
      at = (at as readonly Json[])[index]!;
    } else if (typeof at === "object" && at !== null && typeof step === "string" && Object.hasOwn(at, step)) {
      at = (at as { readonly [key: string]: Json })[step]!;
    } else {
      return MISSING;
    }
  }
  return at;
}
