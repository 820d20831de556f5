import { hash, randomBytes } from "node:crypto";
import type { Store } from "../../store/contract.ts";
import type { Soon } from "../service/soon.ts";
import { isRole, type Role } from "./permissions.ts";

/** Who presented a key. */
export interface Principal {
  /** Names the key without giving it away. */
  readonly id: string;
  readonly roles: readonly Role[];
}

const SCOPE = "key/api";
const ANY = "any";
/** The name under which keys are counted; no workflow can be called so. */
const LIST = "keys/api";
const FRESH_MS = 5_000;

/** The keys that are accepted: those of the settings, and those that were added to the store. Only hashes are kept. */
export class Keys {
  readonly #configured: ReadonlyMap<string, Principal>;
  readonly #store: Store | undefined;
  readonly #nowMs: () => number;
  readonly #found = new Map<string, { readonly principal: Principal | undefined; readonly atMs: number }>();
  #asking: Promise<void> | undefined;
  #any: { readonly isSet: boolean; readonly atMs: number } = { isSet: false, atMs: -Infinity };

  /** @param configured as in `MILLRACE_API_KEYS`: `role:key,role+role:key` */
  constructor(configured: string, store?: Store, nowMs: () => number = () => performance.now()) {
    this.#configured = parseKeys(configured);
    this.#store = store;
    this.#nowMs = nowMs;
  }

  /** Whether there is any key at all: without one, only this machine may come in. */
  isSet(): Soon<boolean> {
    if (this.#configured.size > 0 || this.#any.isSet) return true;
    if (this.#store === undefined || this.#nowMs() - this.#any.atMs <= FRESH_MS) return false;
    this.#asking ??= this.#ask(this.#store).finally(() => (this.#asking = undefined));
    return this.#asking.then(() => this.#any.isSet);
  }

  /** The same as far as it is known now: the store is asked, and nobody waits for its answer. */
  isKnownSet(): boolean {
    if (this.#configured.size > 0) return true;
    const asked = this.isSet();
    if (asked instanceof Promise) void asked.catch(() => undefined);
    return this.#any.isSet;
  }

  /** What names a key without being one. */
  digest(key: string): string {
    return hash("sha256", key, "hex");
  }

  principal(key: string): Soon<Principal | undefined> {
    return this.principalOf(this.digest(key));
  }

  principalOf(digest: string): Soon<Principal | undefined> {
    const configured = this.#configured.get(digest);
    if (configured !== undefined || this.#store === undefined) return configured;
    const known = this.#found.get(digest);
    if (known !== undefined && this.#nowMs() - known.atMs < FRESH_MS) return known.principal;
    return this.#find(this.#store, digest);
  }

  async #find(store: Store, digest: string): Promise<Principal | undefined> {
    const [text, revoked] = await store.records.get([
      { scope: SCOPE, hash: digest },
      { scope: SCOPE, hash: revokedName(digest) },
    ]);
    const isGood = typeof text === "string" && typeof revoked !== "string";
    const principal = isGood ? (JSON.parse(text) as Principal) : undefined;
    if (this.#found.size >= 1_000) this.#found.clear();
    this.#found.set(digest, { principal, atMs: this.#nowMs() });
    return principal;
  }

  async #ask(store: Store): Promise<void> {
    const [found] = await store.records.get([{ scope: SCOPE, hash: ANY }]);
    this.#any = { isSet: typeof found === "string", atMs: this.#nowMs() };
  }
}

/** The key that stands in a header `Authorization`, if one does. */
export function bearerKey(header: string | undefined): string | undefined {
  return /^Bearer +(\S{1,1024})$/i.exec(header ?? "")?.[1];
}

/** Makes a key and keeps its hash in the store. The key itself is shown this once. */
export async function addKey(store: Store, role: Role): Promise<{ readonly id: string; readonly key: string }> {
  const key = `mr_${role}_${randomBytes(32).toString("base64url")}`;
  const digest = hash("sha256", key, "hex");
  const principal: Principal = { id: idOf(digest), roles: [role] };
  await store.records.put([
    { scope: SCOPE, hash: digest, text: JSON.stringify(principal) },
    { scope: SCOPE, hash: ANY, text: "{}" },
  ]);
  await store.records.publish(LIST, digest);
  return { id: principal.id, key };
}

/** A key of the store, by its name. */
export interface StoredKey {
  readonly id: string;
  readonly roles: readonly Role[];
  readonly revoked: boolean;
}

/** The keys that were added to the store, newest first; at most 1,000. */
export async function storedKeys(store: Store): Promise<readonly StoredKey[]> {
  const digests = (await store.records.versions(LIST)).map(({ hash: digest }) => digest);
  const wanted = digests.flatMap((digest) => [digest, revokedName(digest)]);
  const texts = await store.records.get(wanted.map((name) => ({ scope: SCOPE, hash: name })));
  return digests.flatMap((_, i) => {
    const [text, revoked] = [texts[2 * i], texts[2 * i + 1]];
    if (typeof text !== "string") return [];
    return [{ ...(JSON.parse(text) as Principal), revoked: typeof revoked === "string" }];
  });
}

/** From a few seconds later on nobody takes it any more. False if there is no such key. */
export async function revokeKey(store: Store, id: string): Promise<boolean> {
  const found = (await store.records.versions(LIST)).filter(({ hash: digest }) => idOf(digest) === id);
  await store.records.put(found.map(({ hash: digest }) => ({ scope: SCOPE, hash: revokedName(digest), text: "{}" })));
  return found.length > 0;
}

/** Records do not change, so what is revoked is said beside it. */
function revokedName(digest: string): string {
  return `revoked ${digest}`;
}

export function parseKeys(configured: string): ReadonlyMap<string, Principal> {
  const keys = new Map<string, Principal>();
  for (const entry of configured.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const colon = entry.indexOf(":");
    const roles = entry.slice(0, Math.max(0, colon)).split("+");
    const key = entry.slice(colon + 1);
    if (colon <= 0 || key === "" || !roles.every(isRole)) {
      throw new Error(
        `MILLRACE_API_KEYS must be "role:key,…"; an entry that begins with "${entry.slice(0, 4)}" is not`,
      );
    }
    const digest = hash("sha256", key, "hex");
    keys.set(digest, { id: idOf(digest), roles });
  }
  return keys;
}

function idOf(digest: string): string {
  return `key-${digest.slice(0, 8)}`;
}
