import type { Service } from "../../api/service/service.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import { transitionOf } from "../../process/transitions.ts";
import { localSource } from "../local-source.ts";
import type { ShownExplanation } from "../shapes.ts";
import { followQueued, waitingInVain } from "../waiting-in-vain.ts";

const PAGE = 500;

/** The nodes at which all items of a batch that run wait in vain; none as soon as one is found that may go on. */
export async function itemsInVain(
  service: Service,
  id: string,
  bringsNobody: (handler: string) => boolean,
): Promise<readonly ShownExplanation[]> {
  const inVain: ShownExplanation[] = [];
  let cursor: string | undefined;
  do {
    const page = JSON.parse(await service.batches.items(id, "RUNNING", { limit: PAGE, cursor })) as {
      readonly items: readonly { readonly execution_id: string | null }[];
      readonly next_cursor: string | null;
    };
    for (const { execution_id: execution } of page.items) {
      const nodes = execution === null ? undefined : await nodesInVain(service, execution, bringsNobody);
      if (nodes === undefined) return [];
      inVain.push(...nodes);
    }
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return inVain;
}

/** undefined if it may go on; so may one that its batch has sent for and that is not there yet. */
async function nodesInVain(
  service: Service,
  execution: string,
  bringsNobody: (handler: string) => boolean,
): Promise<readonly ShownExplanation[] | undefined> {
  try {
    const queued = await queuedOf(service, execution);
    return await waitingInVain(localSource(service), execution, bringsNobody, queued);
  } catch (error) {
    if (error instanceof MillraceError && error.code === "NOT_FOUND") return undefined;
    throw error;
  }
}

/** What of an execution is queued now, by its history; nothing while something of it runs. */
async function queuedOf({ histories }: Service, execution: string): Promise<ReadonlySet<string>> {
  const queuedAfter = followQueued();
  let queued: ReadonlySet<string> = new Set();
  let after: number | null = 0;
  while (after !== null) {
    const { items, next_cursor: next } = await histories.list(execution, after, PAGE);
    for (const event of items) {
      const transition = transitionOf(event);
      if (transition?.node !== undefined) queued = queuedAfter(transition);
    }
    after = next === null ? null : Number(next);
  }
  return queued;
}
