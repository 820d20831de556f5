import { NearestName } from "../errors/nearest-name.ts";
import { quote } from "../errors/registry.ts";
import { isJsonObject, type Json } from "../json/json.ts";
import { pointerStep } from "../json/pointer.ts";
import { typeName, withArticle } from "../json/type-name.ts";
import { DEPENDENCY_FIELDS } from "./fields.ts";
import { EDGE_ON } from "./graph.ts";
import type { NodeList } from "./node-list.ts";
import type { ProblemList } from "./problems.ts";
import { fieldReader, readFields, wrongType } from "./read-fields.ts";
import type { Dependency, DependencyOn } from "./workflow.ts";

const DEPENDENCY = fieldReader("A dependency", DEPENDENCY_FIELDS);
const NONE: readonly Dependency[] = [];

/**
 * The dependencies of every node, without repetitions. Repetitions are found by a stamp for each possible parent and
 * `on`, so a node with a million dependencies costs no more than a million nodes with one.
 */
export function loadDependencies(
  list: NodeList,
  ids: readonly string[],
  indexOf: ReadonlyMap<string, number>,
  problems: ProblemList,
): readonly (readonly Dependency[])[] {
  const loader = new DependencyLoader(list, ids, indexOf, problems);
  return list.raw.map((_, index) => loader.load(index));
}

class DependencyLoader {
  readonly #list: NodeList;
  readonly #ids: readonly string[];
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #problems: ProblemList;
  readonly #nearest: NearestName;
  /** Per `on` and parent: the last child that listed it, counted from 1. */
  readonly #stamps: Int32Array;

  constructor(list: NodeList, ids: readonly string[], indexOf: ReadonlyMap<string, number>, problems: ProblemList) {
    this.#list = list;
    this.#ids = ids;
    this.#indexOf = indexOf;
    this.#problems = problems;
    this.#nearest = new NearestName(indexOf.keys());
    this.#stamps = new Int32Array(EDGE_ON.length * ids.length);
  }

  load(index: number): readonly Dependency[] {
    const raw = this.#list.raw[index];
    const written = isJsonObject(raw) ? raw["dependencies"] : undefined;
    if (written === undefined || written === null) return NONE;
    if (!Array.isArray(written)) {
      const hint = typeof written === "string" ? `Write it as a list: [${quote(written)}].` : undefined;
      this.#problems.add(
        "INVALID_TYPE",
        this.#list.field(index, "dependencies"),
        {
          field: "dependencies",
          expected: "a list of ids",
          got: withArticle(typeName(written)),
        },
        { hint },
      );
      return NONE;
    }
    let kept: Dependency[] | undefined;
    const all = written as readonly Json[];
    for (let at = 0; at < all.length; at++) {
      const dependency = this.#loadOne(index, at, all[at]!);
      // The list as written is canonical up to here, and is not copied as long as it stays so.
      if (dependency === all[at] && kept === undefined) continue;
      kept ??= all.slice(0, at) as Dependency[];
      if (dependency !== undefined) kept.push(dependency);
    }
    return kept ?? (all as readonly Dependency[]);
  }

  #loadOne(index: number, at: number, raw: Json): Dependency | undefined {
    let id: Json | undefined = raw;
    let on: DependencyOn = "completed";
    if (isJsonObject(raw)) {
      const given = readFields(DEPENDENCY, raw, () => this.#pointer(index, at), this.#problems);
      id = given["id"];
      on = (given["on"] as DependencyOn | undefined) ?? on;
      if (id === undefined && raw["id"] !== undefined) return undefined;
    }
    if (typeof id !== "string") {
      const expected = 'the id of a node, or {"id", "on"}';
      wrongType("dependencies", expected, raw, this.#pointer(index, at), this.#problems);
      return undefined;
    }
    const parent = this.#indexOf.get(id);
    if (parent === undefined) {
      this.#reportUnknown(index, at, id);
      return undefined;
    }
    if (parent === index) {
      const hint = 'Remove it. To run a node again use "retry" or "repeat".';
      this.#problems.add("SELF_DEPENDENCY", this.#pointer(index, at), { id }, { hint });
      return undefined;
    }
    const stamp = EDGE_ON.indexOf(on) * this.#ids.length + parent;
    if (this.#stamps[stamp] === index + 1) {
      const details = { id: this.#ids[index]!, dependency: id };
      this.#problems.add("DUPLICATE_DEPENDENCY", this.#pointer(index, at), details, { hint: "Remove one of the two." });
      return undefined;
    }
    this.#stamps[stamp] = index + 1;
    if (on === "completed") return id;
    return typeof raw === "object" && raw !== null && Object.keys(raw).length === 2 && "on" in raw
      ? (raw as Dependency)
      : { id, on };
  }

  #reportUnknown(index: number, at: number, dependency: string): void {
    const nearest = this.#problems.wantsErrors ? this.#nearest.find(dependency) : undefined;
    const hint = nearest === undefined ? undefined : `Did you mean ${quote(nearest)}?`;
    const details = { id: this.#ids[index]!, dependency };
    this.#problems.add("UNKNOWN_DEPENDENCY", this.#pointer(index, at), details, { hint });
  }

  #pointer(index: number, at: number): string {
    return this.#list.field(index, "dependencies") + pointerStep(at);
  }
}
