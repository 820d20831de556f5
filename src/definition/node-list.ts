import { isJsonObject, type Json, type JsonObject } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { NODE_FIELDS } from "./fields.ts";
import { type FieldReader, fieldReader, writtenName } from "./read-fields.ts";
import type { WorkflowNode } from "./workflow.ts";

export const NODE: FieldReader = fieldReader("A node", NODE_FIELDS);

/**
 * The nodes of one graph (the workflow's, or those inside a map) as they were written, and the way from each of them
 * back to the document. Pointers are made only for problems: a graph of 100,000 nodes has none of them in memory.
 */
export class NodeList {
  readonly raw: readonly Json[];
  /** The ids, if the nodes were written as an object. */
  readonly keys: readonly string[] | null;
  /** The canonical nodes, in the same order. */
  readonly nodes: WorkflowNode[] = [];
  /** Of the nodes inside a map: that map. */
  readonly parent: { readonly list: NodeList; readonly index: number } | undefined;
  readonly #base: string;
  /** Parts of configs that stand elsewhere in the canonical form. */
  readonly #moved = new Map<number, { readonly from: string; readonly to: string }>();

  constructor(
    container: JsonObject | readonly Json[],
    base: string,
    parent?: { readonly list: NodeList; readonly index: number },
  ) {
    const isList = Array.isArray(container);
    this.raw = isList ? (container as readonly Json[]) : Object.values(container);
    this.keys = isList ? null : Object.keys(container);
    this.parent = parent;
    this.#base = base;
  }

  pointer(index: number): string {
    return this.#base + pointerStep(this.keys === null ? index : this.keys[index]!);
  }

  /** The pointer to a field under the name it was written by. */
  field(index: number, proper: string): string {
    const raw = this.raw[index];
    const name = isJsonObject(raw) ? writtenName(NODE, raw, proper) : proper;
    return this.pointer(index) + pointerStep(name);
  }

  /** Where the nth dependency on a parent stands in the list as written. */
  dependency(index: number, id: string): string {
    const pointer = this.field(index, "dependencies");
    const raw = this.raw[index];
    const list = isJsonObject(raw) ? raw["dependencies"] : undefined;
    if (!Array.isArray(list)) return pointer;
    const at = (list as readonly Json[]).findIndex((each) => each === id || (isJsonObject(each) && each["id"] === id));
    return at === -1 ? pointer : pointer + pointerStep(at);
  }

  /** Turns a pointer below the canonical config into one below the config as written. */
  config(index: number, below: string): string {
    const moved = this.#moved.get(index);
    const written =
      moved !== undefined && (below === moved.from || below.startsWith(`${moved.from}/`))
        ? moved.to + below.slice(moved.from.length)
        : below;
    return this.field(index, "config") + written;
  }

  setMoved(index: number, moved: { readonly from: string; readonly to: string } | undefined): void {
    if (moved !== undefined) this.#moved.set(index, moved);
  }
}
