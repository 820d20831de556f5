import type { Json } from "../../src/json/json.ts";
import type { People } from "./people.ts";

/** What clients see of some executions, by id: all that can be asked of each. */
export type Glances = ReadonlyMap<string, readonly Json[]>;

export async function glanceAt({ client }: People, ids: readonly string[]): Promise<Glances> {
  const glances = new Map<string, readonly Json[]>();
  for (const id of ids) {
    const seen: Json[] = [];
    for (const part of ["", "/output", "/nodes?limit=500", "/events?limit=500"]) {
      const { status, body } = await client.get(`/v1/executions/${id}${part}`);
      seen.push([status, body as Json]);
    }
    glances.set(id, seen);
  }
  return glances;
}
