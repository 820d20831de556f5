import type { Dependency, Workflow, WorkflowNode } from "../../src/definition/workflow.ts";

/** A canonical node with every default written out. */
export function node(
  id: string,
  dependencies: readonly Dependency[] = [],
  more: Partial<WorkflowNode> = {},
): WorkflowNode {
  const handler = more.handler ?? "step";
  return {
    id,
    handler,
    config: {},
    dependencies,
    timeout_seconds: 30,
    queue_timeout_seconds: 86_400,
    retry: { max_attempts: 3, base_delay_seconds: 1, max_delay_seconds: 60, exponential_base: 2, jitter: 0.1 },
    condition_on_error: "fail",
    join: "none_failed",
    on_error: "fail_fast",
    inputs: false,
    queue: handler,
    priority: 0,
    dlq: "all",
    ...more,
  };
}

export function workflow(nodes: readonly WorkflowNode[], more: Partial<Workflow> = {}): Workflow {
  return {
    name: "test",
    on_error: "fail_fast",
    timeout_seconds: 604_800,
    max_parallel_nodes: null,
    dlq: "all",
    priority: 0,
    nodes,
    ...more,
  };
}

export function diamond(): Workflow {
  return workflow([
    node("a"),
    node("b", ["a"], { config: { from: "{{ a.value }}" } }),
    node("c", ["a"], { config: { from: "{{ a.value }}" } }),
    node("d", ["b", "c"], { config: { left: "{{ b.value }}", right: "{{ c.value }}" } }),
  ]);
}
