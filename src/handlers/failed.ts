import { type ErrorCode, type ErrorDetails, errorMessage } from "../errors/registry.ts";
import { HandlerError } from "../worker/handler.ts";

/** A failure that another attempt would find the same, in the words of the registry. */
export function failed<Code extends ErrorCode>(
  code: Code,
  details: ErrorDetails<Code>,
  options?: ErrorOptions,
): HandlerError {
  return new HandlerError(code, errorMessage(code, details), { retryable: false, ...options });
}
