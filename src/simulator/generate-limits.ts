import type { LimitSpec, Workflow, WorkflowNode } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";
import { Random } from "./random.ts";

/** Part of the worlds have limits; the others are what they were before there were any. */
const LIMITED_WORLDS = 0.4;

/** In part of them workflows have a limit of executions. */
const CROWDED_WORLDS = 0.25;

/** The limits of one world, and who is under them. They have a randomness of their own. */
export class WorldLimits {
  private readonly random: Random;
  private readonly crowds: Random;
  private readonly isCrowded: boolean;
  private readonly limits: Readonly<Record<string, LimitSpec>> | null;

  constructor(seed: number) {
    this.crowds = new Random(seed ^ 0x3c6ef372);
    this.isCrowded = this.crowds.chance(CROWDED_WORLDS);
    this.random = new Random(seed ^ 0x6a09e667);
    const { random } = this;
    this.limits = random.chance(LIMITED_WORLDS)
      ? {
          thin: { rate: random.pick([0.5, 2, 10]), per: "second", burst: random.integer(1, 3) },
          few: { concurrency: random.integer(1, 3) },
          shy: {
            concurrency: 3,
            breaker: {
              failure_rate: random.pick([0.2, 0.5]),
              window: 6,
              min_calls: 2,
              open_seconds: random.pick([1, 8]),
            },
          },
          both: { rate: random.pick([60, 300]), per: "minute", burst: random.integer(1, 5), concurrency: 2 },
        }
      : null;
  }

  put(workflow: Workflow): Workflow {
    return this.crowded(this.withLimits(workflow));
  }

  /** How many of its executions run at a time; those whose numbers are the same share their places. */
  private crowded(workflow: Workflow): Workflow {
    const { crowds } = this;
    if (!this.isCrowded || !crowds.chance(0.5)) return workflow;
    const concurrency = {
      limit: crowds.integer(1, 2),
      ...(crowds.chance(0.3) && { key: "{{ input.n | default(0) }}" }),
      on_conflict: crowds.weighted([
        [6, "queue" as const],
        [2, "cancel_old" as const],
        [1, "reject" as const],
      ]),
    };
    return { ...workflow, concurrency };
  }

  private withLimits(workflow: Workflow): Workflow {
    const { limits } = this;
    if (limits === null) return workflow;
    return { ...workflow, limits, nodes: workflow.nodes.map((node) => this.limited(node)) };
  }

  private limited(node: WorkflowNode): WorkflowNode {
    const { handler, config } = node;
    const inner = handler === "map" ? config["nodes"] : undefined;
    if (Array.isArray(inner)) {
      const nodes = (inner as unknown as readonly WorkflowNode[]).map((each) => this.limited(each));
      return { ...node, config: { ...config, nodes: nodes as unknown as Json } };
    }
    const { random } = this;
    const isTask = handler === "step" || (handler === "map" && config["handler"] === "step");
    if (!isTask || !random.chance(0.5)) return node;
    const limit = random.weighted<WorkflowNode["limit"]>([
      [3, "thin"],
      [3, "few"],
      [2, "both"],
      [3, "shy"],
      [1, { name: "thin", cost: random.integer(1, 4) }],
      [1, { cost: 1, rate: 30, per: "minute", burst: 1 }],
      [2, undefined],
    ]);
    const concurrency = {
      limit: random.integer(1, 2),
      ...(random.chance(0.4) && { key: "{{ input.n | default(0) }}" }),
      on_conflict: random.chance(0.1) ? ("reject" as const) : ("queue" as const),
    };
    return {
      ...node,
      ...(limit !== undefined && { limit }),
      ...((limit === undefined || random.chance(0.2)) && { concurrency }),
    };
  }
}
