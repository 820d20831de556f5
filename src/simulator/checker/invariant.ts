import type { ExecutionEvent } from "../../core/execution/events.ts";
import type { Violation } from "../history.ts";
import type { Commit, Evidence } from "./evidence.ts";
import type { NodeStory } from "./node-story.ts";
import type { Reader } from "./reference-path.ts";
import type { Story } from "./story.ts";

/** Where in a world something was found. */
export interface Place {
  readonly execution?: string;
  readonly node?: string;
  readonly commit?: Commit;
}

/** Says in a sentence what is wrong. */
export type Found = (sentence: string, place?: Place) => void;

/** One event of one execution, with the execution as it was before it. */
export interface Step {
  readonly story: Story;
  readonly event: ExecutionEvent;
  readonly commit: Commit;
  readonly evidence: Evidence;
  /** The node that the event names, if it names one that the definition has. */
  readonly node: NodeStory | undefined;
}

/**
 * One thing that must hold in every world. It looks at an execution before each of its events, after each commit that
 * touched it, and when its journal is at its end; or at the world as a whole. Journals are those that survived.
 */
export interface Invariant {
  readonly id: string;
  readonly name: string;
  before?(step: Step, found: Found): void;
  committed?(story: Story, commit: Commit, evidence: Evidence, found: Found): void;
  atEnd?(story: Story, evidence: Evidence, found: Found): void;
  world?(evidence: Evidence, stories: ReadonlyMap<string, Story>, found: Found): void;
}

/** A broken world breaks the same rule again and again; the first few tell the story. */
const MAX_PER_INVARIANT = 20;

export class Findings {
  readonly violations: Violation[] = [];
  private readonly counts = new Map<string, number>();

  /** The voice of one invariant. */
  of(invariant: string): Found {
    return (sentence, place = {}) => {
      const count = (this.counts.get(invariant) ?? 0) + 1;
      this.counts.set(invariant, count);
      if (count > MAX_PER_INVARIANT) return;
      const message = `${sentence}${where(place)}`;
      const { execution } = place;
      this.violations.push({ invariant, message, ...(execution !== undefined && { execution }) });
    };
  }
}

function where({ execution, node, commit }: Place): string {
  const parts: string[] = [];
  if (execution !== undefined) parts.push(`execution ${execution}`);
  if (node !== undefined) parts.push(`node ${node}`);
  if (commit !== undefined) {
    const { partition, seq } = commit.entry;
    parts.push(`commit ${partition}/${seq}, entry ${commit.order} of the history`);
  }
  return parts.length === 0 ? "" : ` [${parts.join(", ")}]`;
}

export function placeOf(step: Step): Place {
  const { story, commit, event } = step;
  return { execution: story.id, commit, ...("node" in event && { node: event.node }) };
}

/** A node of the step as it looks around: as of now, or as of what its first dispatch or its map has seen. */
export function readerOf({ story, commit, evidence }: Step, node: NodeStory): Reader {
  return { story, node, seen: node.seen ?? node.item?.map.opened?.seen ?? null, commit, evidence };
}
