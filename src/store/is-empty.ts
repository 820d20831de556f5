import type { Store } from "./contract.ts";

/** Whether nobody has put an execution or a workflow into it. */
export async function isEmpty({ queries }: Pick<Store, "queries">): Promise<boolean> {
  const [headers, workflows] = await Promise.all([queries.headers({ limit: 1 }), queries.workflows({ limit: 1 })]);
  return headers.items.length === 0 && workflows.items.length === 0;
}
