import type { Violation, World } from "../history.ts";
import { ACCEPTANCE } from "./acceptance.ts";
import { ATTEMPTS } from "./attempts.ts";
import { CHILDREN } from "./children.ts";
import { CLOSINGS } from "./closings.ts";
import { COMMANDS } from "./commands.ts";
import { CONTROL } from "./control.ts";
import { COUNTERS } from "./counters.ts";
import { DATA } from "./data.ts";
import { DEAD_LETTERS } from "./dead-letters.ts";
import { DELIVERY } from "./delivery.ts";
import { type Commit, type Evidence, executionOf, gather, isExecution } from "./evidence.ts";
import { FOLDS } from "./folds.ts";
import { CACHES } from "./caches.ts";
import { BUDGETS } from "./budgets.ts";
import { FALLBACKS } from "./fallbacks.ts";
import { GATES } from "./gates.ts";
import { GENERATIONS } from "./generations.ts";
import { GRAPH_ORDER } from "./graph-order.ts";
import { Findings, type Found, type Invariant, type Step } from "./invariant.ts";
import { MAPS } from "./maps.ts";
import { OWNERSHIP } from "./ownership.ts";
import { READS } from "./reads.ts";
import { RENEWALS } from "./renewals.ts";
import { Story } from "./story.ts";
import { TERMINATION } from "./termination.ts";
import { TIMERS } from "./timers.ts";
import { WAITS } from "./waits.ts";

const ALL: readonly Invariant[] = [
  ...OWNERSHIP,
  ...ACCEPTANCE,
  ...GRAPH_ORDER,
  ...ATTEMPTS,
  ...DATA,
  ...TERMINATION,
  ...TIMERS,
  ...DELIVERY,
  ...DEAD_LETTERS,
  ...COUNTERS,
  ...READS,
  ...FOLDS,
  ...COMMANDS,
  ...GENERATIONS,
  ...CONTROL,
  ...MAPS,
  ...WAITS,
  ...CHILDREN,
  ...GATES,
  ...CACHES,
  ...BUDGETS,
  ...CLOSINGS,
  ...FALLBACKS,
  ...RENEWALS,
];

/** What is checked, in the order of the reliability page. */
export const INVARIANTS: readonly { readonly id: string; readonly name: string }[] = ALL.map(({ id, name }) => ({
  id,
  name,
})).toSorted((one, other) => one.id.localeCompare(other.id, "en", { numeric: true }));

/**
 * Holds a recorded world against everything that must hold in it. Knows nothing of the engine: it reads what the store
 * and the witnesses wrote down, folds each journal by rules of its own, and compares.
 */
export function check(world: World): readonly Violation[] {
  const evidence = gather(world);
  const findings = new Findings();
  const voices = ALL.map((invariant) => [invariant, findings.of(invariant.id)] as const);
  const stories = walk(evidence, voices);
  for (const [invariant, found] of voices) {
    if (invariant.atEnd !== undefined) for (const story of stories.values()) invariant.atEnd(story, evidence, found);
  }
  for (const [invariant, found] of voices) invariant.world?.(evidence, stories, found);
  return findings.violations;
}

type Voices = readonly (readonly [Invariant, Found])[];

/** Folds the surviving journals, commit by commit, and lets every invariant look on. */
function walk(evidence: Evidence, voices: Voices): ReadonlyMap<string, Story> {
  const stories = new Map<string, Story>();
  const watching = voices.filter(([invariant]) => invariant.before !== undefined);
  const weighing = voices.filter(([invariant]) => invariant.committed !== undefined);
  const storyOf = (entity: string): Story => {
    const id = executionOf(entity);
    let story = stories.get(id);
    if (story === undefined) stories.set(id, (story = new Story(entity)));
    return story;
  };
  for (const commit of evidence.surviving) {
    const touched = new Set<Story>();
    for (const { entity, events } of commit.entry.records) {
      if (!isExecution(entity)) continue;
      const story = storyOf(entity);
      touched.add(story);
      for (const event of events) {
        const step = stepOf(story, event, commit, evidence);
        for (const [invariant, found] of watching) invariant.before!(step, found);
        story.fold(event, commit, evidence.world);
      }
    }
    for (const { entity, atMs } of commit.entry.wakes) {
      if (!isExecution(entity)) continue;
      const story = storyOf(entity);
      story.wakeAtMs = atMs;
      touched.add(story);
    }
    for (const story of touched) {
      for (const [invariant, found] of weighing) invariant.committed!(story, commit, evidence, found);
    }
  }
  return stories;
}

function stepOf(story: Story, event: Step["event"], commit: Commit, evidence: Evidence): Step {
  return { story, event, commit, evidence, node: "node" in event ? story.node(event.node) : undefined };
}
