import type { PlanNode } from "../../core/execution/plan-node.ts";
import {
  EXAMPLES,
  type ListedExample,
  type ListedReview,
  parseReviewId,
  REVIEWS,
} from "../../core/execution/review-listing.ts";
import type { AssignReview, DecideReview } from "../../core/message.ts";
import type { Json } from "../../json/json.ts";
import type { Listed, Store } from "../../store/contract.ts";
import type { Caller } from "./caller.ts";
import type { Decisions } from "./decisions.ts";
import type { ExecutionReader } from "./execution-reader.ts";
import { iso } from "./execution-view.ts";
import type { PageOf, PageRequest, Paging } from "./paging.ts";
import { notFound } from "./refusal.ts";

export interface ShownReview {
  readonly id: string;
  readonly status: "open" | "closed";
  readonly execution_id: string;
  readonly generation: number;
  readonly node_id: string;
  readonly workflow: string;
  readonly title: string | null;
  readonly form: Json;
  readonly assignees: readonly string[];
  /** By field: what was proposed, how sure somebody was of it, and where it was found. */
  readonly values: Json;
  readonly confidence: Json;
  readonly source: Json;
  readonly four_eyes: boolean;
  /** What the first of two people has decided. */
  readonly first: Json;
  readonly opened_at: string | null;
  /** When others are asked too, if nobody has decided by then. */
  readonly escalates_at: string | null;
  readonly due_at: string | null;
}

/** What was proposed, and what a person made of it. */
export interface ShownExample {
  readonly id: string;
  readonly execution_id: string;
  readonly generation: number;
  readonly node_id: string;
  readonly workflow: string;
  readonly title: string | null;
  readonly values: Json;
  readonly confidence: Json;
  readonly source: Json;
  readonly decision: Json;
  readonly data: Json;
  readonly locks: Json;
  readonly by: Json;
  readonly at: Json;
  readonly comment: Json;
  readonly first?: Json;
  /** It was too large to be kept here, and is the output of the node. */
  readonly data_omitted?: true;
}

export interface Decision {
  readonly decision: "approve" | "reject";
  readonly data: Json;
  readonly comment?: string | undefined;
}

/** What waits for people. */
export class Reviews {
  readonly #store: Store;
  readonly #decisions: Decisions;
  readonly #reader: ExecutionReader;
  readonly #paging: Paging;

  constructor(store: Store, decisions: Decisions, reader: ExecutionReader, paging: Paging) {
    this.#store = store;
    this.#decisions = decisions;
    this.#reader = reader;
    this.#paging = paging;
  }

  /** Those that are open; of one person, those that he is to decide. */
  list(page: PageRequest, assignee?: string): Promise<PageOf<ShownReview>> {
    const read = (query: { limit: number; cursor?: string }) =>
      this.#store.queries.listing({ list: REVIEWS, ...query });
    return this.#paging.page(`reviews ${JSON.stringify(assignee ?? null)}`, page, read, (listed) => {
      const review = showReview(listed);
      return assignee === undefined || review.assignees.includes(assignee) ? review : undefined;
    });
  }

  /** What people have decided of what was proposed to them, newest first. It goes with its execution, or stays with it in the archive. */
  examples(page: PageRequest, workflow?: string): Promise<PageOf<ShownExample>> {
    const read = (query: { limit: number; cursor?: string }) =>
      this.#store.queries.listing({ list: EXAMPLES, ...query });
    return this.#paging.page(`examples ${JSON.stringify(workflow ?? null)}`, page, read, (listed) => {
      const example = showExample(listed);
      return workflow === undefined || example.workflow === workflow ? example : undefined;
    });
  }

  async get(id: string): Promise<ShownReview> {
    const { execution, generation, instance, workflow } = await this.#place(id);
    const listed = await this.#store.queries.listed(REVIEWS, id);
    if (listed !== null) return showReview(listed);
    // What was asked and answered stands in the history of the execution.
    const closed = {
      title: null,
      form: null,
      assignees: [],
      opened_at: null,
      escalates_at: null,
      due_at: null,
      ...NOTHING_PROPOSED,
    };
    return { id, status: "closed", execution_id: execution, generation, node_id: instance, workflow, ...closed };
  }

  /** The first decision counts. Data that does not fit the form decides nothing. */
  async decide(caller: Caller, id: string, { decision, data, comment }: Decision): Promise<Json> {
    const { execution, generation, instance } = await this.#place(id);
    return this.#decisions.command(
      caller,
      execution,
      `reviews/${id}`,
      { decision, data, ...(comment !== undefined && { comment }) },
      (command): DecideReview => ({
        kind: "decideReview",
        ...command,
        instance,
        generation,
        decision,
        data,
        ...(comment !== undefined && { comment }),
      }),
    );
  }

  /** Others are to decide it. */
  async assign(caller: Caller, id: string, assignees: readonly string[]): Promise<Json> {
    const { execution, generation, instance } = await this.#place(id);
    return this.#decisions.command(
      caller,
      execution,
      `reviews/${id}/assign`,
      { assignees },
      (command): AssignReview => ({
        kind: "assignReview",
        ...command,
        instance,
        generation,
        assignees,
      }),
    );
  }

  /** Where a review belongs. There is none for a node that is not there, or not yet in that generation. */
  async #place(id: string): Promise<Place> {
    const review = id.length <= 512 ? parseReviewId(id) : undefined;
    if (review === undefined) throw notFound("review", id);
    return this.#reader.read(review.execution, ({ state }) => {
      const unit = state.unitOf(review.instance);
      const isReview = unit !== undefined && mayBeReviewed(state.planOf(unit));
      if (!isReview || review.generation > state.generation) throw notFound("review", id);
      // Nobody has been asked yet: that is not the same as nobody being asked any more. A node whose budget is to be
      // raised has not begun either, and does ask.
      const isOfNow = review.generation === state.generation && !state.isEnded;
      const isToCome = state.planOf(unit).spec.handler === "review" && state.statusOf(unit) === "pending";
      if (isOfNow && isToCome) throw notFound("review", id);
      return { ...review, workflow: state.plan.workflow.name };
    });
  }
}

/** A review, or something whose budget may have to be raised. */
function mayBeReviewed({ spec, gates }: PlanNode): boolean {
  return spec.handler === "review" || gates.some(({ rule }) => rule.kind === "budget" && rule.onLimit === "pause");
}

type Place = NonNullable<ReturnType<typeof parseReviewId>> & { readonly workflow: string };

const NOTHING_PROPOSED = { values: null, confidence: null, source: null, four_eyes: false, first: null };

function showReview({ id, text }: Listed): ShownReview {
  const review = JSON.parse(text) as ListedReview;
  const { execution, generation, node, workflow, title, form, assignees, openedAtMs, escalatesAtMs, dueAtMs } = review;
  return {
    id,
    status: "open",
    execution_id: execution,
    generation,
    node_id: node,
    workflow,
    title: title ?? null,
    form: (form ?? null) as Json,
    assignees: assignees ?? [],
    values: review.values ?? null,
    confidence: review.confidence ?? null,
    source: review.source ?? null,
    four_eyes: review.fourEyes ?? false,
    first: (review.first ?? null) as Json,
    opened_at: new Date(openedAtMs).toISOString(),
    escalates_at: iso(escalatesAtMs ?? null),
    due_at: iso(dueAtMs),
  };
}

function showExample({ id, text }: Listed): ShownExample {
  const { execution, generation, node, workflow, title, ...rest } = JSON.parse(text) as ListedExample;
  const { values, confidence = null, source = null, decision, data, locks, by, at, comment, first, isCut } = rest;
  return {
    id,
    execution_id: execution,
    generation,
    node_id: node,
    workflow,
    title: title ?? null,
    values,
    confidence,
    source,
    decision: decision ?? null,
    data: data ?? null,
    locks: locks ?? [],
    by: by ?? null,
    at: at ?? null,
    comment: comment ?? null,
    ...(first !== undefined && { first }),
    ...(isCut === true && { data_omitted: true }),
  };
}
