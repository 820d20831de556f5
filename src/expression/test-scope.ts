import type { CompileOptions } from "./binding.ts";
import type { NodeView, Scope } from "./scope.ts";
import type { Json } from "../json/json.ts";

/** For tests: nodes by id. A plain JSON value is the node's output; views are made by the functions below. */
export interface World {
  readonly nodes?: Readonly<Record<string, NodeView>>;
  readonly input?: NodeView;
  readonly item?: Json;
  readonly index?: number;
}

export const none: NodeView = { kind: "none" };

export function output(value: Json): NodeView {
  return { kind: "output", value };
}

export function failed(error: Json): NodeView {
  return { kind: "error", error };
}

export function blob(hash: string, value?: Json): NodeView {
  const ref = { hash, bytes: 70_000 };
  return value === undefined ? { kind: "blob", ref } : { kind: "blob", ref, value };
}

export function scopeOf(world: World): Scope {
  return {
    node: (id) => (world.nodes !== undefined && Object.hasOwn(world.nodes, id) ? world.nodes[id] : undefined),
    input: world.input ?? none,
    executionId: "exec-1",
    ...(world.item === undefined ? {} : { item: world.item }),
    ...(world.index === undefined ? {} : { index: world.index }),
  };
}

export function optionsOf(world: World): CompileOptions {
  return { nodeIds: new Set(Object.keys(world.nodes ?? {})) };
}
