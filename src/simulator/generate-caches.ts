import type { Workflow, WorkflowNode } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";
import { Random } from "./random.ts";

/** Part of the worlds have caches; the others are what they were before there were any. */
const CACHING_WORLDS = 0.3;

/** Whose results are kept in one world. It has a randomness of its own. */
export class WorldCaches {
  private readonly random: Random;
  private readonly isCaching: boolean;

  constructor(seed: number) {
    this.random = new Random(seed ^ 0xbb67ae85);
    this.isCaching = this.random.chance(CACHING_WORLDS);
  }

  put(workflow: Workflow): Workflow {
    return this.isCaching ? { ...workflow, nodes: workflow.nodes.map((node) => this.kept(node)) } : workflow;
  }

  private kept(node: WorkflowNode): WorkflowNode {
    const { handler, config } = node;
    const inner = handler === "map" ? config["nodes"] : undefined;
    if (Array.isArray(inner)) {
      const nodes = (inner as unknown as readonly WorkflowNode[]).map((each) => this.kept(each));
      return { ...node, config: { ...config, nodes: nodes as unknown as Json } };
    }
    const { random } = this;
    const isTask = handler === "step" || (handler === "map" && config["handler"] === "step");
    if (!isTask || node.repeat !== undefined || !random.chance(0.6)) return node;
    const key = random.weighted([
      [4, undefined],
      [3, "{{ input.n | default(0) }}"],
      [1, "always"],
    ]);
    // The longest is longer than any trouble lasts, and not by much: a world waits until all of it is forgotten.
    return { ...node, cache: { ...(key !== undefined && { key }), ttl_seconds: random.pick([2, 60, 90]) } };
  }
}
