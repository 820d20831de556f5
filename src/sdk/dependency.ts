import type { DependencyOn } from "../definition/workflow.ts";
import type { Json } from "../json/json.ts";

export declare const VALUE: unique symbol;
export declare const RESULT: unique symbol;
export declare const CONDITIONAL: unique symbol;
export const DEPENDENCY: unique symbol = Symbol.for("millrace.dependency");

/**
 * Something that can come before a node. `V` is what that node's function is given; with undefined in it, it may be
 * missing. `R` is what the result of a run holds of it, which is JSON.
 */
export interface Handle<out V, out R = V> {
  readonly [VALUE]: V;
  readonly [RESULT]: R;
  /**
   * Whether it stands for one of several ways things can go. "optional": whatever way they go, what comes after runs, and
   * may have to do without the value.
   */
  readonly [CONDITIONAL]: boolean | "optional";
  /** For the builder only. */
  readonly [DEPENDENCY]: Dependency;
}

/** What a handle stands for in a definition. */
export interface Dependency {
  /** The builder it belongs to. */
  readonly owner: object;
  readonly id: string;
  readonly on: DependencyOn;
  /** A route of the router `id`. */
  readonly route?: string;
  /** Where the value stands: `nodes["load"].output`. */
  readonly place: string;
  /** What dependants are given: the value, or what came of the node. */
  readonly gives: "value" | "result" | "outcome" | "error" | "route";
  /** It may have no value when what comes after it runs. */
  readonly mayLack: boolean;
  /** A node that has to be over as well, before what comes after it runs. */
  readonly also?: string;
  /** Makes of the stored value what its type promises. */
  readonly decode?: Decode;
}

export type Decode = (json: Json) => unknown;

export function nodePlace(id: string): string {
  return `nodes[${JSON.stringify(id)}]`;
}

export function isHandle(value: unknown): value is Handle<unknown> {
  return typeof value === "object" && value !== null && DEPENDENCY in value;
}
