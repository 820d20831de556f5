import { parseToken, type Token } from "../../token.ts";
import { parseInstance } from "../instance.ts";
import type { NodeRun } from "../node-run.ts";
import type { ExecutionState } from "../state.ts";

/** What a token says about the dispatch it names, measured against the state. */
export type Claim =
  /** The attempt that is being made now. `newest` if its last delivery is meant. */
  | {
      readonly kind: "current";
      readonly unit: number;
      readonly run: NodeRun;
      readonly token: Token;
      readonly newest: boolean;
    }
  /** The attempt that won: its result has been taken already. */
  | { readonly kind: "taken"; readonly unit: number }
  /** The execution is over, and this attempt was open when it ended. */
  | { readonly kind: "late"; readonly unit: number; readonly token: Token }
  /** An attempt or delivery that counts no more. */
  | { readonly kind: "stale" }
  /** Never dispatched here: forged, of another store's past, or for a node that does not exist. */
  | { readonly kind: "unknown" };

/** Judges a token. Only what was dispatched by a commit that is in the journal can be current. */
export function claim(state: ExecutionState, text: string): Claim {
  return firstTryOut(state, text) ?? claimRead(state, text);
}

/** With more than so many out, looking through them costs more than taking the token apart. */
const FEW_OUT = 8;

/** A first try that is out and has this very token: nearly all results are for such, and the token need not be taken apart. */
function firstTryOut(state: ExecutionState, text: string): Claim | undefined {
  const { live, id, runs } = state;
  if (state.isEnded || live.size > FEW_OUT) return undefined;
  for (let place = 0, unit = live.at(0); unit !== undefined; unit = live.at(++place)) {
    const run = runs[unit]!;
    const { generation, attempt, delivery, round } = run;
    if (generation !== 1 || attempt !== 1 || delivery !== 1 || round !== 0 || state.isItem(unit)) continue;
    const { id: instance, firstTry } = state.planOf(unit);
    if (!text.endsWith(firstTry)) continue;
    const nonce = run.nonces[0]!;
    const isNamed = text.length === nonce.length + 1 + id.length + firstTry.length && text[nonce.length] === ":";
    if (!isNamed || !text.startsWith(nonce) || !text.startsWith(id, nonce.length + 1)) continue;
    const token: Token = { nonce, execution: id, generation, instance, attempt, delivery };
    return { kind: "current", unit, run, token, newest: true };
  }
  return undefined;
}

function claimRead(state: ExecutionState, text: string): Claim {
  const token = parseToken(text);
  if (token === undefined || token.execution !== state.id) return { kind: "unknown" };
  const instance = parseInstance(state, token.instance);
  const run = instance === undefined ? undefined : state.runs[instance.unit];
  if (instance === undefined || run === undefined || token.generation > run.generation) return { kind: "unknown" };
  const { unit, round } = instance;
  if (token.generation < run.generation || round < run.round) return { kind: "stale" };
  if (round > run.round) return { kind: "unknown" };
  if (token.attempt < run.attempt) return { kind: "stale" };
  // The nonce was drawn by the owner that dispatched it: the same numbers from a lost history do not match.
  if (token.attempt > run.attempt || run.nonces[token.delivery - 1] !== token.nonce) return { kind: "unknown" };

  const status = state.statusOf(unit);
  const open = status === "queued" || status === "running";
  if (!open && isTaken(state, unit)) return { kind: "taken", unit };
  if (state.isEnded && (open || wasCutOff(state, unit))) return { kind: "late", unit, token };
  if (!open) return { kind: "stale" };
  return { kind: "current", unit, run, token, newest: token.delivery === run.delivery && state.live.has(unit) };
}

/** Its result is the one that counts; of a round also while that is judged, or the next is waited for. */
function isTaken(state: ExecutionState, unit: number): boolean {
  const status = state.statusOf(unit);
  if (status === "completed") return true;
  return status === "waiting" && state.planOf(unit).until !== null && state.runs[unit]!.error === null;
}

/** An item that was out when other items had failed its map. */
function wasCutOff(state: ExecutionState, unit: number): boolean {
  const run = state.runs[unit]!;
  const isOut = state.isItem(unit) && state.statusOf(unit) === "cancelled" && run.error === null;
  return isOut && run.generation === state.generation;
}
