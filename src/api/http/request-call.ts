import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Caller } from "../service/caller.ts";
import type { Service } from "../service/service.ts";
import type { Admission, Admitted, Knock } from "./admission.ts";
import type { Principal } from "./keys.ts";
import type { Permission } from "./permissions.ts";
import type { Call, Session } from "./route.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Who asks, once that is known. */
    admitted?: Admitted;
    /** Its route, and when that was found. */
    arrival?: { readonly url: string; readonly atMs: number };
  }
}

/** A request at the door. Nothing of it is looked up before somebody asks. */
export class RequestKnock implements Knock {
  readonly #request: FastifyRequest;

  constructor(request: FastifyRequest) {
    this.#request = request;
  }

  get method(): string {
    return this.#request.method;
  }

  get address(): string {
    return this.#request.ip;
  }

  header(name: string): string | undefined {
    return headerOf(this.#request, name);
  }
}

/** A request that was let in. What few routes need is made when they ask for it: most ask for none of it. */
export class RequestCall implements Call {
  readonly service: Service;
  readonly caller: Caller;
  readonly params: Readonly<Record<string, string>>;
  readonly query: unknown;
  readonly body: unknown;
  readonly source: Call["source"];
  readonly #admission: Admission;
  readonly #principal: Principal;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;

  constructor(
    parts: { readonly service: Service; readonly admission: Admission },
    request: FastifyRequest,
    reply: FastifyReply,
    given: Pick<Call, "query" | "body" | "source">,
  ) {
    const { caller, principal } = request.admitted!;
    this.service = parts.service;
    this.caller = caller;
    this.params = request.params as Record<string, string>;
    this.query = given.query;
    this.body = given.body;
    this.source = given.source;
    this.#admission = parts.admission;
    this.#principal = principal;
    this.#request = request;
    this.#reply = reply;
  }

  get gone(): AbortSignal {
    return goneSignal(this.#reply.raw);
  }

  get session(): Session {
    const knock = new RequestKnock(this.#request);
    return {
      begin: (key) => this.#admission.logIn(key, knock),
      end: () => this.#admission.logOut(knock),
      isOpen: async () => (await this.#admission.sessions.principal(knock.header("cookie"))) !== undefined,
    };
  }

  header(name: string): string | undefined {
    return name === "accept" && this.#request.method === "HEAD" ? undefined : headerOf(this.#request, name);
  }

  demand(permission: Permission): void {
    this.#admission.require(this.#principal, permission);
  }
}

export function headerOf(request: FastifyRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function goneSignal(raw: ServerResponse): AbortSignal {
  const gone = new AbortController();
  raw.once("close", () => {
    if (!raw.writableFinished) gone.abort("gone");
  });
  return gone.signal;
}
