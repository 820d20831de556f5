import type { Graph } from "../../definition/graph.ts";
import type { Json } from "../../json/json.ts";
import { entityId } from "../../core/entity.ts";
import type { Published, Store } from "../../store/contract.ts";
import type { Definition } from "./definitions.ts";
import { type ExecutionReader, standing } from "./execution-reader.ts";
import { ordinal, type PageOf, type PageRequest, type Paging } from "./paging.ts";
import { notFound, Refusal } from "./refusal.ts";
import { isName, type Submissions } from "./submissions.ts";

export interface NamedVersion {
  readonly name: string;
  readonly version: number;
  readonly workflow_definition_id: string;
}

export interface ShownWorkflow extends NamedVersion {
  readonly definition: Json;
  /** Nodes without dependencies. */
  readonly entry_points: readonly string[];
  /** Nodes that nobody depends on. */
  readonly terminal_points: readonly string[];
  /** Which nodes can run at the same time: each level depends only on those before it. */
  readonly levels: readonly (readonly string[])[];
}

/** The definitions that are stored under a name. */
export class Workflows {
  readonly #store: Store;
  readonly #submissions: Submissions;
  readonly #reader: ExecutionReader;
  readonly #paging: Paging;

  constructor(store: Store, submissions: Submissions, reader: ExecutionReader, paging: Paging) {
    this.#store = store;
    this.#submissions = submissions;
    this.#reader = reader;
    this.#paging = paging;
  }

  list(page: PageRequest): Promise<PageOf<NamedVersion>> {
    const read = (query: { limit: number; cursor?: string }) => this.#store.queries.workflows(query);
    // Other things are counted by name, too, under names that no workflow can have.
    return this.#paging.page("workflows", page, read, ({ name, version, hash }) =>
      isName(name) ? { name, version, workflow_definition_id: hash } : undefined,
    );
  }

  async get(name: string, version?: string): Promise<ShownWorkflow> {
    const definition = await this.#submissions.named(name, version);
    return {
      ...named(definition),
      definition: definition.workflow as unknown as Json,
      ...shapeOf(definition.plan.graph),
    };
  }

  /** Newest first. */
  async versions(name: string, page: PageRequest): Promise<PageOf<NamedVersion>> {
    const items = (await this.#versions(name)).map(({ version, hash }) => ({
      name,
      version,
      workflow_definition_id: hash,
    }));
    const placeOf = ({ version }: NamedVersion): string => ordinal(Number.MAX_SAFE_INTEGER - version);
    return this.#paging.slice(`versions ${name}`, page, items, placeOf);
  }

  async #versions(name: string): Promise<readonly Published[]> {
    const found = isName(name) ? await this.#store.records.versions(name) : [];
    if (found.length === 0) throw notFound("workflow", name);
    return found;
  }

  /** The name is free again. Executions that are over keep their definition; while any is open, the name stays. */
  async remove(name: string): Promise<void> {
    await this.#versions(name);
    const { items } = await this.#store.queries.headers({ workflow: name, class: "open", limit: 1 });
    const open = items[0];
    if (open !== undefined) {
      const id = entityId(open.entity);
      const execution = await this.#reader.read(id, ({ state }) => standing(state));
      throw new Refusal("EXECUTION_OPEN", { id }, { execution });
    }
    await this.#store.records.unpublish(name);
  }
}

function named({ name, version, hash }: Definition): NamedVersion {
  return { name, version: version!, workflow_definition_id: hash };
}

function shapeOf(graph: Graph): Pick<ShownWorkflow, "entry_points" | "terminal_points" | "levels"> {
  const { nodeCount, ids, parentStart, childStart, childEdge, edgeChild } = graph;
  const open = new Int32Array(nodeCount);
  let level: number[] = [];
  for (let node = 0; node < nodeCount; node++) {
    open[node] = parentStart[node + 1]! - parentStart[node]!;
    if (open[node] === 0) level.push(node);
  }
  const entry_points = level.map((node) => ids[node]!);
  const terminal_points = ids.filter((_, node) => childStart[node] === childStart[node + 1]);
  const levels: string[][] = [];
  while (level.length > 0) {
    levels.push(level.map((node) => ids[node]!));
    const next: number[] = [];
    for (const node of level) {
      for (let k = childStart[node]!; k < childStart[node + 1]!; k++) {
        const child = edgeChild[childEdge[k]!]!;
        open[child]!--;
        if (open[child] === 0) next.push(child);
      }
    }
    level = next.sort((a, b) => a - b);
  }
  return { entry_points, terminal_points, levels };
}
