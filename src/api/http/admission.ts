import { MAX_DEFINITION_BYTES } from "../../definition/fields.ts";
import { MillraceError } from "../../errors/millrace-error.ts";
import type { Host } from "../../host/host.ts";
import { MAX_BULK_BYTES, MAX_KEY_CHARS } from "../limits.ts";
import type { Caller } from "../service/caller.ts";
import type { Ingress } from "../service/ingress.ts";
import type { Pressure } from "../service/pressure.ts";
import { Refusal } from "../service/refusal.ts";
import { type Soon, soon } from "../service/soon.ts";
import { bearerKey, type Keys, type Principal } from "./keys.ts";
import { checkLocal, checkOrigin } from "./loopback.ts";
import { type Permission, permits, requirePermission } from "./permissions.ts";
import type { Route } from "./route.ts";
import type { Sessions } from "./sessions.ts";
import { WrongKeys } from "./wrong-keys.ts";

/** What of a request decides whether it is let in. */
export interface Knock {
  readonly method: string;
  readonly address: string;
  header(name: string): string | undefined;
}

/** Whoever was let in. */
export interface Admitted {
  readonly caller: Caller;
  readonly principal: Principal;
}

/** Bodies that are being read at a time: more would fill the memory before a single one is understood. */
const MAX_READING_BYTES: number = 4 * MAX_DEFINITION_BYTES;

const LOCAL: Principal = { id: "local", roles: ["admin"] };

/** Who may come in, and how much at a time. */
export class Admission {
  readonly keys: Keys;
  readonly sessions: Sessions;
  readonly #limiter: Ingress | undefined;
  readonly #isLocal: boolean;
  readonly #pressure: Pressure;
  readonly #wrongKeys: WrongKeys;
  #readingBytes = 0;

  constructor(parts: {
    keys: Keys;
    sessions: Sessions;
    limiter: Ingress | undefined;
    isLocal: boolean;
    host: Host;
    pressure: Pressure;
  }) {
    this.keys = parts.keys;
    this.sessions = parts.sessions;
    this.#limiter = parts.limiter;
    this.#isLocal = parts.isLocal;
    this.#pressure = parts.pressure;
    this.#wrongKeys = new WrongKeys(parts.host);
  }

  /** The caller of a request, if it may do what it asks for. */
  admit(route: Route, knock: Knock): Soon<Admitted> {
    const principal = this.#principal(route, knock);
    return principal instanceof Promise
      ? principal.then((known) => this.#letIn(route, knock, known))
      : this.#letIn(route, knock, principal);
  }

  #letIn(route: Route, knock: Knock, principal: Principal): Soon<Admitted> {
    this.require(principal, this.#isLocal && route.path === "/metrics" ? "open" : route.permission);
    if (route.isIngress !== true) return this.#admitted(principal, knock);
    const checked = this.#pressure.check();
    // Nearly always there is nothing to wait for: no function is made for what comes after it.
    if (checked === undefined && this.#limiter === undefined) return this.#admitted(principal, knock);
    return soon(checked, () => soon(this.#takeTurn(principal, knock), () => this.#admitted(principal, knock)));
  }

  #takeTurn(principal: Principal, knock: Knock): Soon<void> {
    return this.#limiter === undefined ? undefined : this.#limited(this.#limiter, principal, knock);
  }

  async #limited(limiter: Ingress, principal: Principal, knock: Knock): Promise<void> {
    const waitSeconds = await limiter.take(principal === LOCAL ? knock.address : principal.id);
    if (waitSeconds === undefined) return;
    const reason = "Too many requests that start work; the Retry-After header says when to go on";
    throw new Refusal("RATE_LIMITED", { reason }, { retryAfterSeconds: waitSeconds });
  }

  #admitted(principal: Principal, knock: Knock): Admitted {
    const caller: Caller = {
      by: principal.id,
      tenant: "default",
      trace: traceOf(knock.header("traceparent")),
      key: keyOf(knock.header("idempotency-key")),
      secrets: permits(principal.roles, "work"),
    };
    return { caller, principal };
  }

  require(principal: Principal, permission: Permission): void {
    requirePermission(principal.roles, permission);
  }

  /** Takes room for a body; what comes back gives it free. */
  reserve(contentLength: string | undefined, isChunked: boolean, limitBytes: number): () => void {
    const said = Number(contentLength ?? 0);
    const bytes = isChunked
      ? Math.min(limitBytes, MAX_BULK_BYTES)
      : Math.min(Number.isFinite(said) ? said : 0, limitBytes);
    if (bytes > 0 && this.#readingBytes + bytes > MAX_READING_BYTES) {
      throw new Refusal("OVERLOADED", {}, { retryAfterSeconds: 1 });
    }
    this.#readingBytes += bytes;
    let isFree = false;
    return () => {
      if (!isFree) this.#readingBytes -= bytes;
      isFree = true;
    };
  }

  #principal(route: Route, knock: Knock): Soon<Principal> {
    const given = knock.header("authorization");
    const isOpen = route.permission === "open" || (this.#isLocal && route.path === "/metrics");
    // A probe is answered whether or not the store is: it must not wait until that has told of keys.
    const isProbe = isOpen && given === undefined;
    const isSet = isProbe ? this.keys.isKnownSet() : this.keys.isSet();
    if (isSet === false) return this.#unlocked(isProbe, knock);
    return soon(isSet, (known) => {
      if (!known) return this.#unlocked(isProbe, knock);
      const key = bearerKey(given);
      return soon(this.#shown(key, given, knock), (principal) => {
        if (principal !== undefined) return principal;
        if (isProbe) return NOBODY;
        if (key !== undefined) this.#wrongKeys.count(knock.address);
        throw new MillraceError("UNAUTHENTICATED", {});
      });
    });
  }

  /** Whoever comes where there are no keys. */
  #unlocked(isProbe: boolean, knock: Knock): Principal {
    checkLocal(knock.header("host"), knock.header("origin"));
    return isProbe ? NOBODY : LOCAL;
  }

  #shown(key: string | undefined, given: string | undefined, knock: Knock): Soon<Principal | undefined> {
    if (key !== undefined) return this.keys.principal(key);
    const isReading = given === undefined && (knock.method === "GET" || knock.method === "HEAD");
    return isReading ? this.sessions.principal(knock.header("cookie")) : undefined;
  }

  /** The cookie for a key that somebody has typed in; undefined if it is none. */
  async logIn(key: string, knock: Knock): Promise<string | undefined> {
    checkOrigin(knock.header("host"), knock.header("origin"));
    if ((await this.keys.principal(key)) !== undefined) return this.sessions.begin(key, isSecure(knock));
    this.#wrongKeys.count(knock.address);
    return undefined;
  }

  logOut(knock: Knock): string {
    checkOrigin(knock.header("host"), knock.header("origin"));
    return this.sessions.end(isSecure(knock));
  }
}

/** Whoever speaks TLS with the browser says so. */
function isSecure(knock: Knock): boolean {
  return knock.header("x-forwarded-proto") === "https";
}

const NOBODY: Principal = { id: "nobody", roles: [] };

function traceOf(traceparent: string | undefined): string {
  if (traceparent === undefined) return "";
  return /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(traceparent) ? traceparent : "";
}

function keyOf(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (key === "" || key.length > MAX_KEY_CHARS) {
    throw new MillraceError("BAD_REQUEST", { reason: `Idempotency-Key must have 1 to ${MAX_KEY_CHARS} characters` });
  }
  return key;
}
