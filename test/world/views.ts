import type { Json, JsonObject } from "../../src/json/json.ts";
import type { People } from "./people.ts";

/** An execution as clients see it; of its fields, those that are looked at one by one. */
export type Shown = JsonObject & {
  readonly execution_id: string;
  readonly workflow: string;
  readonly status: string;
  readonly generation: number;
  readonly seq: number;
  readonly input: JsonObject;
  readonly nodes: Readonly<Record<string, JsonObject>>;
};

/** What clients see of all there is. */
export interface Views {
  /** By id. */
  readonly executions: ReadonlyMap<string, Shown>;
  readonly outputs: ReadonlyMap<string, Json>;
  readonly events: ReadonlyMap<string, readonly Json[]>;
  readonly lists: Readonly<
    Record<"executions" | "reviews" | "letters" | "workflows" | "queues", readonly JsonObject[]>
  >;
}

/** Of a world in which nobody is answered any more. */
export const NO_VIEWS: Views = {
  executions: new Map(),
  outputs: new Map(),
  events: new Map(),
  lists: { executions: [], reviews: [], letters: [], workflows: [], queues: [] },
};

const READERS = 4;

export async function viewAll(people: People): Promise<Views> {
  const { client } = people;
  const executions = new Map<string, Shown>();
  const outputs = new Map<string, Json>();
  const events = new Map<string, readonly Json[]>();
  const listed = await people.list<JsonObject & { readonly execution_id: string }>("/v1/executions");
  // Some at a time, from one list.
  const rest = listed.values();
  const viewSome = async (): Promise<void> => {
    for (const { execution_id: id } of rest) {
      executions.set(id, (await client.read(id)).body as Shown);
      outputs.set(id, (await client.get(`/v1/executions/${id}/output`)).body as Json);
      events.set(id, await people.list<Json>(`/v1/executions/${id}/events`));
    }
  };
  await Promise.all(Array.from({ length: READERS }, viewSome));
  const lists = {
    executions: listed,
    reviews: await people.list<JsonObject>("/v1/reviews"),
    letters: await people.list<JsonObject>("/v1/dlq"),
    workflows: await people.list<JsonObject>("/v1/workflows"),
    queues: (await client.get("/v1/queues")).body.items as readonly JsonObject[],
  };
  return { executions, outputs, events, lists };
}
