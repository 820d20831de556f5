import type { Json } from "../json/json.ts";
import type { Workflow } from "./workflow.ts";

/** Parts of this many different texts are shared at most: where nothing is equal, it is not looked for without end. */
const MAX_PARTS = 4_096;

/**
 * Makes equal parts of a definition that was just read one part: of 100,000 nodes nearly all have the same policy for retries, the
 * same words and often the same config, and a reader of JSON makes each of them anew. Nobody may have seen the value yet, and nobody may change it
 * afterwards.
 */
export function shareEqualParts(workflow: Workflow): void {
  const words = new Map<string, string>();
  const parts = new Map<string, Json>();
  const shared = (value: Json | undefined): Json | undefined => {
    if (typeof value === "string") return known(words, value, value);
    if (typeof value !== "object" || value === null) return value;
    return known(parts, JSON.stringify(value), value);
  };
  for (const node of workflow.nodes as unknown as readonly { [field: string]: Json | undefined }[]) {
    for (const field in node) if (field !== "id") node[field] = shared(node[field]);
  }
}

function known<Value>(of: Map<string, Value>, key: string, value: Value): Value {
  const first = of.get(key);
  if (first !== undefined) return first;
  if (of.size < MAX_PARTS) of.set(key, value);
  return value;
}
