import type { Json } from "../../json/json.ts";
import type { Store } from "../../store/contract.ts";
import { executionKey } from "./ids.ts";

/** No process has a colon in its name: a list of workers leaves these out. */
const NAME = "answer:";
/** Everybody who looks for processes reads past these, so they are small. */
const MAX_SMALL_CHARS = 2_000;
/** CONTRACT section 1: as long as keys are good for. */
const KEPT_MS = 86_400_000;

export interface KeptAnswer<Answer> {
  /** What was asked. */
  readonly body: string;
  readonly answer: Answer;
}

interface Told<Answer> extends KeptAnswer<Answer> {
  /** Where the rest is. It goes with this execution, if that is sooner. */
  readonly more?: string;
}

/** Answers to what no single owner decides, so that nobody remembers them but the store; for a day. */
export class KeptAnswers<Answer extends { readonly errors?: readonly { readonly execution_id?: Json }[] }> {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  async get(id: string): Promise<KeptAnswer<Answer> | undefined> {
    const all = await this.#store.records.registered();
    const found = all.find(({ process }) => process === NAME + id);
    if (found === undefined) return undefined;
    const { body, answer, more } = JSON.parse(found.text) as Told<Answer>;
    if (more === undefined) return { body, answer };
    const [errors] = await this.#store.records.get([{ scope: more, hash: id }]);
    return { body, answer: typeof errors === "string" ? { ...answer, errors: JSON.parse(errors) as Json } : answer };
  }

  async put(id: string, { body, answer }: KeptAnswer<Answer>): Promise<void> {
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
