import type { Join, OnError } from "../definition/workflow.ts";
import type { CONDITIONAL, Handle, RESULT, VALUE } from "./dependency.ts";
import type { Expr } from "./expression.ts";
import type { Node, Result } from "./handle.ts";
import type { TaskContext } from "./task-context.ts";

/** What a node comes after, by the names under which its function is given the values. */
export interface After {
  readonly [name: string]: Handle<unknown>;
}

/** A node that comes after nothing. */
export type Nothing = { readonly [Name in never]: never };

/** These names are taken: what every function is given besides the values of what came before. */
export interface Always<I> {
  readonly input: I;
  readonly ctx: TaskContext;
}

/** A dependency that is one of several ways is asked for together with the others, unless the author says otherwise. */
export type JoinOf<D extends After, J> = J extends Join
  ? J
  : true extends D[keyof D][typeof CONDITIONAL]
    ? "all_success"
    : "none_failed";

/** What a function is given. */
export type Given<I, D extends After, J> = Values<D, JoinOf<D, J>> & Always<I>;

/** A join that waits for all gives all; one that does not wait, or takes what failed, may lack any. */
type Values<D extends After, J> = J extends "none_failed"
  ? { readonly [Name in keyof D]: D[Name][typeof VALUE] }
  : J extends "all_success"
    ? { readonly [Name in keyof D]: Required<D[Name]> }
    : { readonly [Name in keyof D]: D[Name][typeof VALUE] | undefined };

/** What is there if all went well; what is optional may be missing even then. */
type Required<H extends Handle<unknown>> = H[typeof CONDITIONAL] extends "optional"
  ? H[typeof VALUE]
  : Exclude<H[typeof VALUE], undefined>;

/**
 * The node that comes of a function or of a built-in. `V` is its output as functions are given it, `R` as it is stored,
 * `W` the type of its condition if it has one.
 */
export type NodeOf<V, D extends After, J, W, E, R = V> = E extends "continue"
  ? Node<Result<V> | Lack<D, J, W>, Result<R> | Lack<D, J, W>, R | undefined>
  : Node<V | Lack<D, J, W>, R | Lack<D, J, W>>;

/** `undefined` if the node may be skipped: it has a condition, or everything it comes after may be missing. */
type Lack<D extends After, J, W> = [W] extends [never]
  ? Skips<D, JoinOf<D, J>> extends true
    ? undefined
    : never
  : undefined;

/** Most nodes come after something that is surely there: that is asked first, because it costs TypeScript the least. */
type Skips<D extends After, J> = [keyof D] extends [never]
  ? false
  : J extends "all_done"
    ? false
    : J extends "none_failed" | "one_success"
      ? [Extract<D[keyof D], SureHandle>] extends [never]
        ? [Sure<D>] extends [never]
          ? true
          : false
        : false
      : [D[keyof D]] extends [SureHandle]
        ? false
        : [keyof D] extends [Sure<D>]
          ? false
          : true;

type SureHandle = Handle<object | string | number | boolean | null>;

/** The names of what keeps no node from running. A value of any type is taken to be there. */
type Sure<D extends After> = {
  [Name in keyof D]: D[Name][typeof CONDITIONAL] extends "optional"
    ? Name
    : unknown extends D[Name][typeof VALUE]
      ? Name
      : undefined extends D[Name][typeof VALUE]
        ? never
        : Name;
}[keyof D];

/** What is stored of what a function returns: JSON has no undefined. */
export type Stored<R> = R extends undefined | void ? null : R;

/** The result of a run: what is missing is null. */
export type ResultOf<D extends After> = { readonly [Name in keyof D]: OrNull<D[Name][typeof RESULT]> };

type OrNull<R> = unknown extends R ? R : undefined extends R ? Exclude<R, undefined> | null : R;

/** A function for a worker, or an expression for the engine. */
export type Asked<I, D extends After, J, T> = Expr<T> | ((given: Given<I, D, J>) => T | Promise<T>);

/** Data whose parts may be expressions. */
export type Embedded<T> = T | Expr<T> | (T extends object ? { readonly [Key in keyof T]: Embedded<T[Key]> } : never);

export type { Join, OnError };
