import { MillraceError } from "../../errors/millrace-error.ts";
import { type ErrorCode, type ErrorDetails, ERRORS } from "../../errors/registry.ts";
import type { Json } from "../../json/json.ts";

/** One of several things that are wrong with a request. */
export interface Fault {
  readonly code: string;
  /** JSON pointer. */
  readonly path: string;
  readonly message: string;
  readonly hint?: string;
  readonly line?: number;
  readonly column?: number;
}

/** What an answer tells besides code and sentence. */
export interface RefusalMore {
  /** How the execution stands that the refusal is about. */
  readonly execution?: Json;
  readonly errors?: readonly Fault[];
  /** Instead of the sentence of the registry, where somebody knows better. */
  readonly detail?: string;
  /** Problems beyond the number that is reported. */
  readonly omitted?: number;
  readonly retryAfterSeconds?: number;
}

/** An error with more to tell than its sentence. */
export class Refusal<Code extends ErrorCode = ErrorCode> extends MillraceError<Code> {
  readonly more: RefusalMore;

  constructor(code: Code, details: ErrorDetails<Code>, more: RefusalMore, options?: ErrorOptions) {
    super(code, details, options);
    this.more = more;
  }
}

/** What an owner refused, as an error. A code that is not in the registry is a bug of ours. */
export function refusedByOwner(
  code: string,
  id: string,
  told: {
    readonly execution?: Json | undefined;
    readonly detail?: string | undefined;
    readonly errors?: readonly Fault[] | undefined;
  },
): MillraceError {
  const { execution, detail, errors } = told;
  if (code === "NOT_FOUND" && detail === undefined) return notFound("execution", id);
  if (!Object.hasOwn(ERRORS, code)) throw new Error(`the owner of ${id} refused with ${code}, which nobody knows`);
  const first = errors?.[0];
  const reason = first === undefined ? code : `${first.path === "" ? "it" : `"${first.path}"`} ${first.message}`;
  const details = { id, reason, what: "node" } as unknown as ErrorDetails<ErrorCode>;
  return new Refusal(code as ErrorCode, details, {
    ...(execution !== undefined && { execution }),
    ...(detail !== undefined && { detail }),
    // When there is room again is not for the owner to know.
    ...(code === "RATE_LIMITED" && { retryAfterSeconds: 1 }),
    ...(errors !== undefined && { errors: errors.map((fault) => ({ ...fault, code: fault.code ?? code })) }),
  });
}

export function notFound(what: string, id: string): MillraceError {
  return new MillraceError("NOT_FOUND", { what, id });
}
