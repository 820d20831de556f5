import type { Json } from "../json/json.ts";

/** One of several things that are wrong with a request. */
export interface ApiFault {
  readonly code: string;
  /** JSON pointer. */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
}

/** A server's no. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** Stays the same for the same reason: `INPUT_INVALID`, `ALREADY_TERMINAL`, … */
  readonly code: string;
  readonly status: number;
  readonly errors: readonly ApiFault[];
  /** How the execution stands that it is about. */
  readonly execution: Json | undefined;

  constructor(status: number, problem: ApiProblem) {
    const { code = `HTTP_${status}`, detail = `The server answered ${status}`, errors = [], execution } = problem;
    const lines = errors.map(({ path, message, hint }) => {
      const place = path === "" ? "" : `${path}: `;
      return `\n  ${place}${message}${hint === undefined ? "" : ` ${hint}`}`;
    });
    super(`${code}: ${detail}${lines.join("")}`);
    this.code = code;
    this.status = status;
    this.errors = errors;
    this.execution = execution;
  }
}

/** The part of `application/problem+json` that we read. */
export interface ApiProblem {
  readonly code?: string;
  readonly detail?: string;
  readonly errors?: readonly ApiFault[];
  readonly execution?: Json;
}

/** Nobody answers, or nobody who speaks our language. What was asked may still have been done: keys make it safe to ask again. */
export class ServerUnreachable extends Error {
  override readonly name = "ServerUnreachable";
  readonly url: string;

  constructor(url: string, cause: unknown) {
    super(`Cannot reach Millrace at ${url}: ${reasonOf(cause)}`, { cause });
    this.url = url;
  }
}

/** Whether a connection was there and nothing came over it any more. */
export function isSilence(error: unknown): boolean {
  const { code } = ((error as Error).cause ?? {}) as { readonly code?: string };
  return code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT";
}

function reasonOf(error: unknown): string {
  if (isSilence(error)) return "it does not answer";
  const { message, cause } = error as Error;
  const { code, message: reason } = (cause ?? {}) as { readonly code?: string; readonly message?: string };
  return code === "ECONNREFUSED" ? "nobody listens there. Start one with: millrace dev" : (reason ?? message);
}
