import type { Done } from "./group-commit.ts";

/** What a thread does: there is one that writes and one that reads, so that neither waits for the other. */
export type Role = "writer" | "reader";

/** A method of the writer or the reader, or `open` and `close`, which are the thread's own. */
export interface Call {
  readonly id: number;
  readonly name: string;
  readonly values: readonly unknown[];
}

export type Answer = { readonly id: number } & Done;

export type FromThread = { readonly answers: readonly Answer[] } | { readonly isFull: boolean };
