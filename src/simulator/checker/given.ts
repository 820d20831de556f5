import type { Json } from "../../json/json.ts";

/** What a handler is to get: the config with nulls where holes are, the holes, and what the parents gave. */
export interface Given {
  readonly config: Json;
  readonly holes: readonly Hole[];
  readonly inputs: Json | undefined;
  readonly inputHash: string;
}

export type Hole =
  | { readonly pointer: string; readonly kind: "secret"; readonly parts: readonly Part[] }
  | {
      readonly pointer: string;
      readonly kind: "blob";
      readonly ref: { readonly hash: string; readonly bytes: number };
    };

export type Part = { readonly text: string } | { readonly secret: string };
