import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Store } from "../../store/contract.ts";

const PLACE = { scope: "gateway/signing", hash: "key" };

/**
 * Texts that come back to us unchanged or not at all: cursors and task tokens. The key is a record of the store, so that
 * any process takes what another has given out; whoever comes first draws it.
 */
export class Signing {
  readonly #store: Store;
  #key: Promise<Buffer> | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** `purpose` keeps a text that was signed for one thing from being used for another. */
  async seal(purpose: string, text: string): Promise<string> {
    const body = Buffer.from(text).toString("base64url");
    return `${body}.${await this.#mac(purpose, body)}`;
  }

  async open(purpose: string, sealed: string): Promise<string | undefined> {
    const dot = sealed.lastIndexOf(".");
    const body = sealed.slice(0, Math.max(0, dot));
    const given = Buffer.from(sealed.slice(dot + 1));
    const own = Buffer.from(await this.#mac(purpose, body));
    if (given.length !== own.length || !timingSafeEqual(given, own)) return undefined;
    return Buffer.from(body, "base64url").toString("utf8");
  }

  async #mac(purpose: string, body: string): Promise<string> {
    this.#key ??= this.#load();
    try {
      const key = await this.#key;
      return createHmac("sha256", key).update(`${purpose}\n${body}`).digest("base64url").slice(0, 32);
    } catch (error) {
      this.#key = undefined;
      throw error;
    }
  }

  async #load(): Promise<Buffer> {
    const { records } = this.#store;
    const [found] = await records.get([PLACE]);
    if (typeof found === "string") return Buffer.from(found, "hex");
    await records.put([{ ...PLACE, text: randomBytes(32).toString("hex") }]);
    // Two may have come first at once; one of them was first.
    const [kept] = await records.get([PLACE]);
    return Buffer.from(kept!, "hex");
  }
}
