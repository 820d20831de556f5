import { gatesOf } from "./gates.ts";
import type { NodeStory } from "./node-story.ts";
import type { Story } from "./story.ts";

/** How many tasks of an execution may be out is counted with those who have asked to go, for whoever has yet to ask. */
export function hasParallelRoom(story: Story, node: NodeStory): boolean {
  const { workflow } = story.shape!;
  const limit = workflow.max_parallel_nodes;
  if (limit === null) return true;
  const asksFirst = gatesOf(node.spec, workflow) > 0 || node.spec.cache !== undefined;
  if (!asksFirst || node.asking) return story.outCount < limit;
  let asking = 0;
  for (const other of story.units()) if (other.asking && !other.out && other.end === null) asking++;
  return story.outCount + asking < limit;
}
