import type { Signing } from "../service/signing.ts";
import type { Keys, Principal } from "./keys.ts";

const COOKIE = "millrace_session";
const PURPOSE = "session";
const HOURS = 12;

/**
 * What a browser shows instead of a key. It is signed, names the key by its hash, and ends by itself; whoever revokes the
 * key ends it too. A browser sends it along whatever page has made it ask, so it is good for reading and nothing else.
 */
export class Sessions {
  readonly #signing: Signing;
  readonly #keys: Keys;
  readonly #wallMs: () => number;

  constructor(signing: Signing, keys: Keys, wallMs: () => number) {
    this.#signing = signing;
    this.#keys = keys;
    this.#wallMs = wallMs;
  }

  /** The cookie for somebody who has shown this key. */
  async begin(key: string, isSecure: boolean): Promise<string> {
    const untilMs = this.#wallMs() + HOURS * 3_600_000;
    const sealed = await this.#signing.seal(PURPOSE, JSON.stringify({ digest: this.#keys.digest(key), untilMs }));
    return cookie(sealed, HOURS * 3_600, isSecure);
  }

  end(isSecure: boolean): string {
    return cookie("", 0, isSecure);
  }

  async principal(header: string | undefined): Promise<Principal | undefined> {
    const sealed = valueOf(header);
    if (sealed === undefined) return undefined;
    const text = await this.#signing.open(PURPOSE, sealed);
    if (text === undefined) return undefined;
    const { digest, untilMs } = JSON.parse(text) as { readonly digest: string; readonly untilMs: number };
    return untilMs > this.#wallMs() ? this.#keys.principalOf(digest) : undefined;
  }
}

function cookie(value: string, seconds: number, isSecure: boolean): string {
  const parts = [`${COOKIE}=${value}`, "HttpOnly", "SameSite=Strict", "Path=/", `Max-Age=${seconds}`];
  return [...parts, ...(isSecure ? ["Secure"] : [])].join("; ");
}

function valueOf(header: string | undefined): string | undefined {
  for (const part of (header ?? "").split(";")) {
    const [name, value] = part.trim().split("=", 2);
    if (name === COOKIE && value !== undefined && /^[\w.-]{1,512}$/.test(value)) return value;
  }
  return undefined;
}
