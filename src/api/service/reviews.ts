import { type ListedReview, parseReviewId, REVIEWS } from "../../core/execution/review-listing.ts";
import type { DecideReview } from "../../core/message.ts";
import type { Json } from "../../json/json.ts";
import type { Listed, Store } from "../../store/contract.ts";
import type { Caller } from "./caller.ts";
import type { Decisions } from "./decisions.ts";
import type { ExecutionReader } from "./execution-reader.ts";
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
  readonly opened_at: string | null;
  readonly due_at: string | null;
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

  list(page: PageRequest): Promise<PageOf<ShownReview>> {
    const read = (query: { limit: number; cursor?: string }) =>
      this.#store.queries.listing({ list: REVIEWS, ...query });
    return this.#paging.page("reviews", page, read, showReview);
  }

  async get(id: string): Promise<ShownReview> {
    const { execution, generation, instance, workflow } = await this.#place(id);
    const listed = await this.#store.queries.listed(REVIEWS, id);
    if (listed !== null) return showReview(listed);
    // What was asked and answered stands in the history of the execution.
    const closed = { title: null, form: null, assignees: [], opened_at: null, due_at: null };
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

  /** Where a review belongs. There is none for a node that is not there, or not yet in that generation. */
  async #place(id: string): Promise<Place> {
    const review = id.length <= 512 ? parseReviewId(id) : undefined;
    if (review === undefined) throw notFound("review", id);
    return this.#reader.read(review.execution, ({ state }) => {
      const unit = state.unitOf(review.instance);
      const isReview = unit !== undefined && state.planOf(unit).spec.handler === "review";
      if (!isReview || review.generation > state.generation) throw notFound("review", id);
      return { ...review, workflow: state.plan.workflow.name };
    });
  }
}

type Place = NonNullable<ReturnType<typeof parseReviewId>> & { readonly workflow: string };

function showReview({ id, text }: Listed): ShownReview {
  const { execution, generation, node, workflow, title, form, assignees, openedAtMs, dueAtMs } = JSON.parse(
    text,
  ) as ListedReview;
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
    opened_at: new Date(openedAtMs).toISOString(),
    due_at: new Date(dueAtMs).toISOString(),
  };
}
