import { hash } from "node:crypto";
import { MillraceError } from "../../errors/millrace-error.ts";
import { MAX_USED_KEYS } from "../limits.ts";
import { Lru } from "../service/lru.ts";

/**
 * What Idempotency-Keys were used for, on routes where no owner remembers them: to do there the same again changes nothing,
 * so a key only has to keep another body out. By this process, for as long as there is room: nothing depends on it but
 * that somebody who uses a key twice is told.
 */
export class UsedKeys {
  readonly #bodies = new Lru<string>(MAX_USED_KEYS);

  /** Throws if the key was used there with another body. What is refused for something else uses no key. */
  use(place: string, key: string, body: Uint8Array): { readonly remember: () => void } {
    const name = hash("sha256", JSON.stringify([place, key]));
    const digest = hash("sha256", body);
    const before = this.#bodies.get(name);
    if (before !== undefined && before !== digest) throw new MillraceError("IDEMPOTENCY_KEY_REUSED", {});
    return { remember: () => this.#bodies.set(name, digest, 1) };
  }
}
