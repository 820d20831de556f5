import { parseToken, type Token } from "../../token.ts";
import type { NodeRun, ExecutionState } from "../state.ts";

/** What a token says about the dispatch it names, measured against the state. */
export type Claim =
  /** The attempt that is being made now. `newest` if its last delivery is meant. */
  | {
      readonly kind: "current";
      readonly node: number;
      readonly run: NodeRun;
      readonly token: Token;
      readonly newest: boolean;
    }
  /** The attempt that won: its result has been taken already. */
  | { readonly kind: "taken"; readonly node: number }
  /** The execution is over, and this attempt was open when it ended. */
  | { readonly kind: "late"; readonly node: number; readonly token: Token }
  /** An attempt or delivery that counts no more. */
  | { readonly kind: "stale" }
  /** Never dispatched here: forged, of another store's past, or for a node that does not exist. */
  | { readonly kind: "unknown" };

/** Judges a token. Only what was dispatched by a commit that is in the journal can be current. */
export function claim(state: ExecutionState, text: string): Claim {
  const token = parseToken(text);
  if (token === undefined || token.execution !== state.id) return { kind: "unknown" };
  const node = state.plan.graph.indexOf.get(token.instance);
  const run = node === undefined ? undefined : state.runs[node];
  if (node === undefined || run === undefined || token.generation > state.generation) return { kind: "unknown" };
  if (token.generation < state.generation || token.attempt < run.attempt) return { kind: "stale" };
  // The nonce was drawn by the owner that dispatched it: the same numbers from a lost history do not match.
  if (token.attempt > run.attempt || run.nonces[token.delivery - 1] !== token.nonce) return { kind: "unknown" };

  const status = state.statusOf(node);
  const open = status === "queued" || status === "running";
  if (!open) return status === "completed" ? { kind: "taken", node } : { kind: "stale" };
  if (state.isEnded) return { kind: "late", node, token };
  return { kind: "current", node, run, token, newest: token.delivery === run.delivery && state.live.has(node) };
}
