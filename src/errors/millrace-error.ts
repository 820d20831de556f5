import { type ErrorCode, type ErrorDetails, type ErrorKind, errorKind, errorMessage } from "./registry.ts";

/** An error that the user can do something about. Our own mistakes are assertions instead. */
export class MillraceError<Code extends ErrorCode = ErrorCode> extends Error {
  override readonly name = "MillraceError";
  readonly code: Code;
  readonly kind: ErrorKind;
  readonly details: ErrorDetails<Code>;

  constructor(code: Code, details: ErrorDetails<Code>, options?: ErrorOptions) {
    super(errorMessage(code, details), options);
    this.code = code;
    this.kind = errorKind(code);
    this.details = details;
  }
}
