import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { Store } from "../../store/contract.ts";

const PLACE = { scope: "gateway/signing", hash: "key" };

/**
 * Texts that come back to us unchanged or not at all: cursors and task tokens. The key is a record of the store, so that
 * any process takes what another has given out; whoever comes first draws it.
 */
export class Signing {
  readonly #store: Store;
  #hmac: Promise<(text: string) => string> | undefined;

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
    this.#hmac ??= this.#load().then(hmacWith);
    try {
      const hmac = await this.#hmac;
      return hmac(`${purpose}\n${body}`).slice(0, 32);
    } catch (error) {
      this.#hmac = undefined;
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

const BLOCK_BYTES = 64;

/**
 * HMAC-SHA-256 with a key that fits a block, by its definition: `createHmac` takes seven times as long, and
 * every cursor and every token needs one.
 */
export function hmacWith(key: Uint8Array): (text: string) => string {
  const block = Buffer.alloc(BLOCK_BYTES);
  block.set(key);
  const [inner, outer] = [block.map((byte) => byte ^ 0x36), block.map((byte) => byte ^ 0x5c)];
  return (text) => {
    const digest = hash("sha256", Buffer.concat([inner, Buffer.from(text)]), "buffer");
    return hash("sha256", Buffer.concat([outer, digest]), "base64url");
  };
}
