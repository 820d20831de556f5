import type { Transition } from "../process/transitions.ts";
import type { ShownExplanation } from "./shapes.ts";

/** More handlers than this in a sentence help nobody. */
const MAX_NAMES = 5;

/** Reasons that end when another node does, which is explained itself. */
const AFTER_OTHERS = new Set(["parents", "parallel", "window", "items"]);

/** The nodes whose tasks are queued, after each change; none while another is at work: asking why is not cheap. */
export function followQueued(): (change: Transition) => ReadonlySet<string> {
  const queued = new Set<string>();
  const running = new Set<string>();
  return ({ node, status, items }) => {
    if (node === undefined) return new Set();
    queued.delete(node);
    running.delete(node);
    if (status === "QUEUED") queued.add(node);
    // A map does nothing itself: its items do.
    if (status === "RUNNING" && items === undefined) running.add(node);
    return running.size === 0 ? queued : new Set();
  };
}

/**
 * The nodes that wait for handlers which nobody can bring, of an execution in which nothing else goes on; undefined if
 * something does.
 */
export async function waitingInVain(
  source: { explain(id: string, node?: string): Promise<readonly ShownExplanation[]> },
  id: string,
  bringsNobody: (handler: string) => boolean,
  queued: ReadonlySet<string>,
): Promise<readonly ShownExplanation[] | undefined> {
  const isInVain = ({ reason, details }: ShownExplanation): boolean => {
    const handler = details?.["handler"];
    return reason === "queued" && typeof handler === "string" && bringsNobody(handler);
  };
  const open = await source.explain(id);
  if (open.length === 0 || !open.every((each) => isInVain(each) || AFTER_OTHERS.has(each.reason))) return undefined;
  const inVain = open.filter(isInVain);
  // Items are told of only if they are asked for. Unless all that are under way are queued, one of them may go on.
  const nodes = new Set(open.map(({ node_id: node }) => node));
  const items = [...queued].filter((name) => !nodes.has(name));
  const underWay = open.reduce(
    (sum, { reason, details }) => sum + (reason === "items" ? Number(details?.["open"]) : 0),
    0,
  );
  if (items.length !== underWay) return undefined;
  for (const name of items) {
    const [item] = await source.explain(id, name);
    if (item === undefined || !isInVain(item)) return undefined;
    inVain.push(item);
  }
  return inVain;
}

/** What these nodes wait for, in words. */
export function handlersOf(nodes: readonly ShownExplanation[]): string {
  const handlers = new Set(nodes.map(({ details }) => JSON.stringify(details?.["handler"])));
  const names = [...handlers].slice(0, MAX_NAMES).join(", ");
  return handlers.size > MAX_NAMES ? `${names}, … ${handlers.size - MAX_NAMES} more` : names;
}
