import type { Json } from "../json/json.ts";
import type { Ref } from "./expression.ts";
import type { After, Always, Given, Join, NodeOf, Nothing, OnError, ResultOf, Stored } from "./given.ts";
import type { End, Node, Router } from "./handle.ts";
import type { VALUE } from "./dependency.ts";
import type {
  EndOptions,
  FailOptions,
  MapOptions,
  NodeOptions,
  RepeatOptions,
  ReviewOptions,
  RouterOptions,
  SignalOptions,
  SleepOptions,
  SubOptions,
  TaskOptions,
} from "./options.ts";
import type { InputOf, OutputOf, StandardSchema } from "./standard-schema.ts";
import type { Workflow } from "./workflow.ts";

/** What a person decided. */
export type Decision<T> =
  | (DecidedBy & { readonly decision: "approve"; readonly data: T })
  | (DecidedBy & { readonly decision: "reject"; readonly data: T | null });

interface DecidedBy {
  readonly by: string;
  readonly at: string;
  readonly comment: string | null;
  /** If something was proposed: the fields whose values are the person's. */
  readonly locks?: readonly string[];
  /** With four eyes: what the first of two people said. */
  readonly first?: {
    readonly decision: "approve" | "reject";
    readonly by: string;
    readonly at: string;
    readonly comment: string | null;
    /** What they filled in; left out if it is large. */
    readonly data?: Json;
  };
}

/** A schema for what brings no data. */
export type NoData = StandardSchema<null>;

type MaybeJoin = Join | undefined;
type MaybeOnError = OnError | undefined;

/**
 * Writes down a workflow. Nodes come after handles, not names: a dependency that does not exist, or a circle, cannot be
 * written. `I` is the input as functions are given it, `In` as it has to be sent.
 *
 * In the signatures `D` is what a node comes after, `J` its join, `W` the type of its condition (never: it has none), `E`
 * what it does on an error.
 */
export interface Builder<I, In = I> {
  readonly name: string;
  /** The input as the engine sees it, for expressions: `wf.input.path`. */
  readonly input: Ref<In>;

  /** A function that runs in a worker. */
  node<R>(id: string, run: (given: Always<I>) => R | Promise<R>): Node<Stored<R>>;
  node<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    R = never,
  >(
    id: string,
    options: NodeOptions<I, D, J, W, E>,
    run: (given: Given<I, D, J>) => R | Promise<R>,
  ): NodeOf<Stored<R>, D, J, W, E>;

  /** A function that runs again and again until `until` says that it is enough; the last result is the node's. */
  repeat<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    R = never,
  >(
    id: string,
    options: RepeatOptions<I, D, J, W, E>,
    run: (given: Given<I, D, J>) => R | Promise<R>,
    until: (output: NoInfer<R>, given: Given<I, D, J>) => boolean | Promise<boolean>,
  ): NodeOf<Stored<R>, D, J, W, E>;

  /** A function, or a workflow, for each item of a list. The result is a list in the order of the items. */
  map<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    Item = never,
    R = never,
    F extends number | `${number}%` = never,
  >(
    id: string,
    options: MapOptions<I, D, J, W, E, Item, F>,
    run: (item: Item, given: Given<I, D, J> & { readonly index: number }) => R | Promise<R>,
  ): NodeOf<readonly (Stored<R> | Tolerated<F>)[], D, J, W, E>;
  map<
    In,
    R,
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    F extends number | `${number}%` = never,
  >(
    id: string,
    options: MapOptions<I, D, J, W, E, NoInfer<In>, F>,
    run: Workflow<In, R>,
  ): NodeOf<readonly (R | Tolerated<F>)[], D, J, W, E>;

  /** Another workflow, as a run of its own whose result is the node's. */
  sub<
    In,
    R,
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
  >(
    id: string,
    workflow: Workflow<In, R>,
    options: SubOptions<I, D, J, W, E, NoInfer<In>>,
  ): NodeOf<R, D, J, W, E>;

  /** A handler by name: a built-in such as `http`, or one that a worker registered. */
  task<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    S extends StandardSchema = StandardSchema,
  >(
    id: string,
    options: TaskOptions<I, D, J, W, E, S>,
  ): NodeOf<OutputOf<S>, D, J, W, E, InputOf<S>>;

  /** Waits until a person approves; what they filled in is its value. A rejection ends the run: FAILED. */
  approval<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    S extends StandardSchema = NoData,
  >(
    id: string,
    options: ReviewOptions<I, D, J, W, E, S>,
  ): NodeOf<OutputOf<S>, D, J, W, E, InputOf<S>>;

  /** Waits until a person decides, and goes on either way. */
  review<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    S extends StandardSchema = NoData,
  >(
    id: string,
    options: ReviewOptions<I, D, J, W, E, S>,
  ): NodeOf<Decision<OutputOf<S>>, D, J, W, E, Decision<InputOf<S>>>;

  /** Waits for a time. No worker is kept. */
  sleep<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
  >(
    id: string,
    options: SleepOptions<I, D, J, W, E>,
  ): NodeOf<null, D, J, W, E>;

  /** Waits for a signal from outside, and gives what it brings. */
  signal<
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
    S extends StandardSchema = StandardSchema,
  >(
    id: string,
    options?: SignalOptions<I, D, J, W, E, S>,
  ): NodeOf<OutputOf<S>, D, J, W, E, InputOf<S>>;

  /** Chooses which of the nodes that come after its routes run. */
  router<
    const Routes extends string,
    const Else extends string = never,
    const D extends After = Nothing,
    const J extends MaybeJoin = undefined,
    W extends boolean = never,
    const E extends MaybeOnError = undefined,
  >(
    id: string,
    options: RouterOptions<I, D, J, W, E, Routes, Else>,
  ): Router<Routes | Else>;

  /** Ends the run now, well. Name it in `output`, so that the type of the result knows of it. */
  end<const D extends After = Nothing, const J extends MaybeJoin = undefined, W extends boolean = never, T = null>(
    id: string,
    options: EndOptions<I, D, J, W, T>,
  ): End<T>;

  /** Ends the run now, badly. */
  fail<const D extends After = Nothing, const J extends MaybeJoin = undefined, W extends boolean = never>(
    id: string,
    options: FailOptions<I, D, J, W>,
  ): void;

  /** The last word: what a run gives. Everything is checked here, and every problem told at once. */
  output<const D extends After, const Ends extends readonly End<unknown>[]>(
    of: D,
    ...ends: Ends
  ): Workflow<In, ResultOf<D> | Ends[number][typeof VALUE]>;
}

type Tolerated<F> = [F] extends [never] ? never : null;
