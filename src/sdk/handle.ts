import type { Json } from "../json/json.ts";
import { type CONDITIONAL, DEPENDENCY, type Dependency, type Handle, nodePlace, type VALUE } from "./dependency.ts";
import { type Ref, refTo } from "./expression.ts";

/** A handle that stands for one of several ways things can go: what comes after it runs only if they went that way. */
export interface ConditionalHandle<out V> extends Handle<V | undefined> {
  readonly [CONDITIONAL]: true;
}

/** A node of a workflow. `V` is what dependants are given of it, `R` what results hold, `T` its output as the engine sees it. */
export interface Node<out V, out R = V, out T = R> extends Handle<V, R> {
  readonly [CONDITIONAL]: false;
  readonly id: string;
  /** For expressions, which run in the engine: `load.output.pages`. */
  readonly output: Ref<T>;
  /** To come after it only if it has failed: `after: { error: charge.failed }`. */
  readonly failed: ConditionalHandle<NodeError>;
  /** To come after it however it ends: `after: { charge: charge.done }`. */
  readonly done: Handle<Outcome<Exclude<T, undefined>>> & { readonly [CONDITIONAL]: false };
  /** As `done`, and only its output: undefined if it has none, however that came about. */
  readonly optional: Handle<V | undefined, R | undefined> & { readonly [CONDITIONAL]: "optional" };
}

/** A node that chooses: `router.routes.name` is what a node comes after that is meant for that route. */
export interface Router<Routes extends string> extends Node<{ readonly chosen: readonly string[] }> {
  readonly routes: { readonly [Route in Routes]: ConditionalHandle<true> };
}

/** A node that ends the run well, with `T` as the result. To be named in `wf.output`. */
export interface End<out T> {
  readonly id: string;
  readonly [VALUE]: T;
}

/** Why a node failed, as data. */
export interface NodeError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly details?: Json;
}

/** What came of a node that says `onError: "continue"`. */
export type Result<T> =
  | { readonly status: "COMPLETED"; readonly output: T }
  | { readonly status: "FAILED"; readonly error: NodeError };

/** What came of a node, whatever it was. */
export type Outcome<T> = Result<T> | { readonly status: "SKIPPED" };

/** The handle of a node, with all that can be asked of it. */
export function nodeHandle(dependency: Dependency): Node<unknown> {
  const { id, owner, place } = dependency;
  const failed: Dependency = {
    owner,
    id,
    on: "failed",
    place: `${nodePlace(id)}.error`,
    gives: "error",
    mayLack: true,
  };
  const done: Dependency = { ...dependency, on: "done", gives: "outcome", mayLack: false };
  const optional: Dependency = { ...dependency, on: "done", mayLack: true };
  return {
    id,
    output: refTo(place, [dependency]),
    [DEPENDENCY]: dependency,
    failed: { [DEPENDENCY]: failed },
    done: { [DEPENDENCY]: done },
    optional: { [DEPENDENCY]: optional },
  } as unknown as Node<unknown>;
}

export function routeHandle({ owner, id, place }: Dependency, route: string): ConditionalHandle<true> {
  const dependency: Dependency = { owner, id, place, route, on: "completed", gives: "route", mayLack: true };
  return { [DEPENDENCY]: dependency } as unknown as ConditionalHandle<true>;
}
