import type { Json, JsonObject } from "../json/json.ts";

/** What the API answers, as far as commands show it. */
export interface ShownExecution {
  readonly execution_id: string;
  readonly workflow: string;
  readonly version: number | null;
  readonly workflow_definition_id: string;
  readonly status: string;
  readonly batch_status?: string;
  readonly generation: number;
  readonly seq: number;
  readonly input: Json;
  readonly output: Json;
  readonly error: ShownError | null;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly parent?: { readonly execution_id: string; readonly node_id: string };
  readonly retryable_from?: readonly string[];
  readonly nodes?: Readonly<Record<string, ShownNode>>;
  readonly nodes_omitted?: number;
}

export interface ShownNode {
  readonly status: string;
  readonly attempt: number;
  readonly output: Json;
  readonly error: ShownError | null;
  readonly reason: string | null;
  readonly until: string | null;
  readonly queued_at: string | null;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly child_execution_id: string | null;
  readonly cached_from?: string;
  readonly items?: { readonly total: number; readonly completed: number; readonly failed: number };
}

export interface ShownError {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly node_id?: string;
}

export interface ShownEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly node_id?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

export interface ShownExplanation {
  readonly node_id: string;
  readonly reason: string;
  readonly sentence: string;
  readonly until?: string;
  readonly details?: JsonObject;
}

export interface Listed<Item> extends Gap {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

/** What an answer says that could not look everywhere. */
export interface Gap {
  readonly incomplete?: "archive_unavailable";
}
