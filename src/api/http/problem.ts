import { MillraceError } from "../../errors/millrace-error.ts";
import { type ErrorCode, type ErrorKind, errorKind, errorMessage, type ErrorDetails } from "../../errors/registry.ts";
import type { Json } from "../../json/json.ts";
import { type Fault, Refusal, type RefusalMore } from "../service/refusal.ts";

export const PROBLEM_TYPE = "application/problem+json";

/** RFC 9457, with a code that stays the same. */
export interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly errors?: readonly Fault[];
  readonly omitted?: number;
  readonly execution?: Json;
}

export interface ProblemAnswer {
  readonly problem: Problem;
  readonly headers: Readonly<Record<string, string>>;
}

const STATUS: Readonly<Record<ErrorKind, number>> = {
  malformed: 400,
  unauthenticated: 401,
  forbidden: 403,
  notFound: 404,
  notAllowed: 405,
  conflict: 409,
  tooLarge: 413,
  unsupported: 415,
  invalid: 422,
  rateLimited: 429,
  internal: 500,
  unavailable: 503,
  // Neither is ever an answer of its own.
  warning: 500,
  failed: 500,
};

/** Codes whose kind is that of a definition's problem, but which are said of a whole request here. */
const STATUS_OF_CODE: Partial<Record<ErrorCode, number>> = {
  INVALID_TYPE: 400,
  REQUEST_TIMEOUT: 408,
  HEADERS_TOO_LARGE: 431,
};

/** An error as the answer to a request. Whatever is not made for users becomes an incident that the log tells about. */
export function problemOf(error: unknown, incident: () => string): ProblemAnswer {
  if (error instanceof MillraceError) {
    const more: RefusalMore = error instanceof Refusal ? error.more : {};
    return answer(error.code, more.detail ?? error.message, more);
  }
  return answer("INTERNAL", errorMessage("INTERNAL", { incident: incident() }), {});
}

/** For what is refused before there is a request to speak of. */
export function plainProblem<Code extends ErrorCode>(
  code: Code,
  details: ErrorDetails<Code>,
  status?: number,
): ProblemAnswer {
  return answer(code, errorMessage(code, details), {}, status);
}

function answer(code: ErrorCode, detail: string, more: RefusalMore, status?: number): ProblemAnswer {
  const problem: Problem = {
    type: `urn:millrace:problem:${code}`,
    title: titleOf(code),
    status: status ?? STATUS_OF_CODE[code] ?? STATUS[errorKind(code)],
    code,
    detail,
    ...(more.errors !== undefined && more.errors.length > 0 && { errors: more.errors }),
    ...(more.omitted !== undefined && { omitted: more.omitted }),
    ...(more.execution !== undefined && { execution: more.execution }),
  };
  // Whoever is told to come again is told when; a second is right where nobody knows better.
  const isLater = problem.status === 429 || problem.status === 503;
  const { retryAfterSeconds = isLater ? 1 : undefined } = more;
  return {
    problem,
    headers: {
      ...(retryAfterSeconds !== undefined && { "retry-after": String(Math.ceil(retryAfterSeconds)) }),
      ...(code === "UNAUTHENTICATED" && { "www-authenticate": "Bearer" }),
    },
  };
}

function titleOf(code: string): string {
  const words = code.toLowerCase().replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
