import { entityKey } from "../entity.ts";
import type { BlobDraft, Context, Decision } from "../machine.ts";
import type { CacheAnswered, CacheLookup, CacheReturn, Message } from "../message.ts";
import { toValue } from "../value.ts";
import type { CacheAsk, CacheEvent } from "./events.ts";
import { askKey, CACHE_KIND, type CacheEntry, type CacheState, entryAt, nextInLine } from "./state.ts";

export type CacheDecision = Decision<CacheEvent>;

const NOTHING: CacheDecision = { events: [] };

/** What a message means for an entry of the cache. */
export function decide(state: CacheState, message: Message, context: Context): CacheDecision {
  const { body } = message;
  if (body.kind === "cacheLookup") return lookup(state, body, context);
  if (body.kind === "cacheReturn") return takeBack(state, body, context);
  return { ...NOTHING, reply: { refused: body.kind === "release" ? "NOT_QUARANTINED" : "NOT_FOUND" } };
}

/** What is there and small is answered at once, and nothing is written: a key that all ask for has a short journal. */
function lookup(state: CacheState, { execution, ask, node, anew }: CacheLookup, context: Context): CacheDecision {
  const key = askKey({ execution, ask });
  if (state.held.has(key) || state.line.some((each) => askKey(each) === key)) return NOTHING;
  const asked: CacheAsk = { execution, ask, node, ...(anew === true && { anew }) };
  const entry = anew === true ? null : entryAt(state, context.nowMs);
  if (entry !== null && "json" in entry.output) return { ...NOTHING, mail: [hit(state, asked, entry)] };
  return { events: [{ kind: "cacheAsked", atMs: context.nowMs, ...asked }] };
}

/** A result is welcome from whoever has it. Anything else that is not known was given back before. */
function takeBack(state: CacheState, body: CacheReturn, context: Context): CacheDecision {
  const { execution, ask, stored, failed } = body;
  const atMs = context.nowMs;
  const key = askKey({ execution, ask });
  const isKnown = state.held.has(key) || state.line.some((each) => askKey(each) === key);
  if (stored === undefined) {
    return isKnown ? { events: [{ kind: "cacheReturned", atMs, execution, ask, ...(failed && { failed }) }] } : NOTHING;
  }
  const { output, ttlMs } = stored;
  const kept = { output, expiresAtMs: atMs + ttlMs };
  return { events: [{ kind: "cacheReturned", atMs, execution, ask, stored: kept }] };
}

/** Forgets what is too old; then gives out what is kept, or lets the next in line do the work. */
export function answerLine(state: CacheState, context: Context): CacheDecision {
  const atMs = context.nowMs;
  if (state.entry !== null && entryAt(state, atMs) === null) return { events: [{ kind: "cacheExpired", atMs }] };
  const asked = nextInLine(state);
  if (asked === undefined) return NOTHING;
  const { execution, ask } = asked;
  const { entry } = state;
  if (entry === null || asked.anew === true) {
    return { events: [{ kind: "cacheGranted", atMs, execution, ask }], mail: [answer(state, asked)] };
  }
  const blobs: BlobDraft[] = [];
  if ("blob" in entry.output) {
    const json = context.fetched(entry.output.blob.hash);
    if (json === undefined) return { ...NOTHING, needs: [entry.output] };
    // Whoever gets it reads it as a value of its own, also when we have long forgotten it.
    const { blob } = toValue(json);
    if (blob !== undefined) blobs.push({ ...blob, scope: execution });
  }
  return { events: [{ kind: "cacheHit", atMs, execution, ask }], mail: [hit(state, asked, entry)], blobs };
}

function hit(state: CacheState, asked: CacheAsk, { output, execution }: CacheEntry): Message {
  return answer(state, asked, { output, from: execution });
}

function answer(state: CacheState, { execution, ask, node }: CacheAsk, found?: CacheAnswered["found"]): Message {
  const cache = entityKey(CACHE_KIND, state.id);
  return {
    id: `cacheAnswered:${cache}:${execution}:${ask}`,
    to: execution,
    by: cache,
    trace: "",
    tenant: state.tenant,
    body: { kind: "cacheAnswered", cache, ask, node, ...(found !== undefined && { found }) },
  };
}
