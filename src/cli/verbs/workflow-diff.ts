import type { Workflow, WorkflowNode } from "../../definition/workflow.ts";
import type { Json } from "../../json/json.ts";
import { type Call, type Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { oneLine, printJson } from "../print.ts";
import { connect, workflowPath } from "../server.ts";

/** One thing that is other than it was: `null` where there was or is nothing. */
export interface Change {
  /** A JSON pointer into the workflow, with nodes by id. */
  readonly path: string;
  readonly before: Json;
  readonly after: Json;
}

export const verb: Verb = async (call) => {
  const server = await connect(call);
  const [name, first, second] = call.args as [string, string, string?];
  const [before, after] = await Promise.all(
    [first, second].map((version) => server.get<{ readonly definition: Workflow }>(workflowPath(name, version))),
  );
  const changes = workflowChanges(before!.definition, after!.definition);
  if (call.json) printJson(call, { items: changes, next_cursor: null });
  else if (changes.length === 0) call.terminal.out("they are the same\n");
  else for (const change of changes) printChange(call, change);
  return EXIT.done;
};

function printChange(call: Call, { path, before, after }: Change): void {
  const shown = (value: Json): string => oneLine(JSON.stringify(value));
  const { terminal } = call;
  if (before === null) terminal.out(terminal.style("green", `+ ${path}  ${shown(after)}`) + "\n");
  else if (after === null) terminal.out(terminal.style("red", `- ${path}  ${shown(before)}`) + "\n");
  else terminal.out(`${terminal.style("yellow", `~ ${path}`)}  ${shown(before)} → ${shown(after)}\n`);
}

/** What is other, node by node and field by field: two versions are canonical, so that every field means something. */
export function workflowChanges(before: Workflow, after: Workflow): readonly Change[] {
  const { nodes: oldNodes, ...oldRest } = before;
  const { nodes: newNodes, ...newRest } = after;
  const byId = (nodes: readonly WorkflowNode[]): Record<string, Json> =>
    Object.fromEntries(nodes.map(({ id, ...rest }) => [id, rest as unknown as Json]));
  const changes: Change[] = [];
  compare("", oldRest as unknown as Json, newRest as unknown as Json, changes);
  const [old, now] = [byId(oldNodes), byId(newNodes)];
  for (const id of new Set([...Object.keys(old), ...Object.keys(now)])) {
    compare(`/nodes/${id}`, old[id] ?? null, now[id] ?? null, changes);
  }
  return changes;
}

function compare(path: string, before: Json, after: Json, changes: Change[]): void {
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  const isObject = (value: Json): value is { readonly [key: string]: Json } =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(before) || !isObject(after)) return void changes.push({ path, before, after });
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    compare(`${path}/${key}`, before[key] ?? null, after[key] ?? null, changes);
  }
}
