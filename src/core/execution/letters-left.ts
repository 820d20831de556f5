import type { DeadLetterDraft } from "../machine.ts";
import type { ExecutionEvent } from "./events.ts";
import { evolve } from "./evolve.ts";
import { deadLetterOf, replayed } from "./letters.ts";
import type { ExecutionState } from "./state.ts";

/** The dead letters of an execution as its journal leaves them, made from that alone. `state` is one that is new. */
export function lettersLeft(
  state: ExecutionState,
  events: readonly ExecutionEvent[],
): readonly (DeadLetterDraft & { readonly atMs: number })[] {
  const left = new Map<string, DeadLetterDraft & { readonly atMs: number }>();
  for (const event of events) {
    if (event.kind === "nodeFailed" || (event.kind === "taskFailed" && event.retryAtMs === null)) {
      const { node, error, atMs } = event;
      const letter = deadLetterOf(state, state.unitOf(node)!, error, { nowMs: atMs });
      if (letter !== undefined) left.set(letter.id, { ...letter, atMs });
    }
    evolve(state, event);
  }
  return [...left.values()].flatMap((letter) => {
    const status = state.letters.get(letter.id);
    if (status === undefined) return [];
    return [status === "open" ? letter : { ...letter, ...replayed(letter) }];
  });
}
