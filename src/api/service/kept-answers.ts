import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import type { Json } from "../../json/json.ts";
import type { Store } from "../../store/contract.ts";
import { executionKey } from "./ids.ts";

/** No process has a colon in its name: a list of workers leaves these out. */
const NAME = "answer:";
/** Everybody who looks for processes reads past these, so they are small. */
const MAX_SMALL_CHARS = 2_000;
/** As long as an Idempotency-Key is good for. */
const KEPT_MS = 86_400_000;
/** A claim that is not renewed is over: whoever had it is gone. */
const CLAIM_MS = 10_000;
/** Two that claim at once write over each other: the one that is read after this time has it. */
const SETTLE_MS = 100;
/** How often somebody looks who waits for what another does. */
const LOOK_MS = 250;

export interface KeptAnswer<Answer> {
  /** What was asked. */
  readonly body: string;
  readonly answer: Answer;
}

/** Somebody does it now. */
interface Claim {
  readonly body: string;
  readonly by: string;
}

type Told<Answer> =
  | Claim
  | (KeptAnswer<Answer> & {
      /** Where the rest is. It goes with this execution, if that is sooner. */
      readonly more?: string;
    });

/**
 * Answers to what no single owner decides, so that nobody remembers them but the store; for a day. A store that is slower
 * than claims allow for may let two do it: what they do is decided by owners, who know the key too.
 */
export class KeptAnswers<Answer extends { readonly errors?: readonly { readonly execution_id?: Json }[] }> {
  readonly #store: Store;
  readonly #host: Host;

  constructor(store: Store, host: Host) {
    this.#store = store;
    this.#host = host;
  }

  /** What `work` answers, done once: whoever asks the same under this id, meanwhile or later, waits for it and gets it too. */
  async once(id: string, body: string, work: () => Promise<Answer>): Promise<Answer> {
    const claim: Claim = { body, by: this.#host.id() };
    for (;;) {
      const told = await this.#told(id);
      if (told !== undefined && told.body !== body) throw new MillraceError("IDEMPOTENCY_KEY_REUSED", {});
      if (told === undefined) {
        await this.#claim(id, claim, CLAIM_MS);
        await this.#host.sleep(SETTLE_MS);
      } else if ("answer" in told) return told.answer;
      else if (told.by === claim.by) return this.#do(id, claim, work);
      else await this.#host.sleep(LOOK_MS);
    }
  }

  async #do(id: string, claim: Claim, work: () => Promise<Answer>): Promise<Answer> {
    const over = new AbortController();
    const renewed = this.#renew(id, claim, over.signal);
    try {
      const answer = await work();
      over.abort();
      await renewed;
      await this.#put(id, { body: claim.body, answer });
      return answer;
    } catch (error) {
      over.abort();
      await renewed;
      // Nobody has to wait for it any longer. If that cannot be said, it lapses.
      await this.#claim(id, claim, 1).catch(() => undefined);
      throw error;
    }
  }

  /** Ends with the signal, after the last word that it has sent. */
  async #renew(id: string, claim: Claim, over: AbortSignal): Promise<void> {
    for (;;) {
      await this.#host.sleep(CLAIM_MS / 4, over);
      if (over.aborted) return;
      await this.#claim(id, claim, CLAIM_MS).catch(() => undefined);
    }
  }

  #claim(id: string, claim: Claim, ttlMs: number): Promise<void> {
    return this.#store.records.register({ process: NAME + id, role: "worker", text: JSON.stringify(claim) }, ttlMs);
  }

  async #told(id: string): Promise<KeptAnswer<Answer> | Claim | undefined> {
    const all = await this.#store.records.registered();
    const found = all.find(({ process }) => process === NAME + id);
    if (found === undefined) return undefined;
    const told = JSON.parse(found.text) as Told<Answer>;
    if ("by" in told) return told;
    const { body, answer, more } = told;
    if (more === undefined) return { body, answer };
    const [errors] = await this.#store.records.get([{ scope: more, hash: id }]);
    return { body, answer: typeof errors === "string" ? { ...answer, errors: JSON.parse(errors) as Json } : answer };
  }

  async #put(id: string, { body, answer }: KeptAnswer<Answer>): Promise<void> {
    const whole = JSON.stringify({ body, answer });
    const { errors, ...rest } = answer;
    const first = errors?.[0]?.execution_id;
    const isLarge = whole.length > MAX_SMALL_CHARS && typeof first === "string";
    const more = isLarge ? executionKey(first) : undefined;
    if (more !== undefined) await this.#store.records.put([{ scope: more, hash: id, text: JSON.stringify(errors) }]);
    const text = more === undefined ? whole : JSON.stringify({ body, answer: rest, more });
    await this.#store.records.register({ process: NAME + id, role: "worker", text }, KEPT_MS);
  }
}
