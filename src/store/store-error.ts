/**
 * Why a store cannot be opened or cannot go on, by a name that whoever runs it can look up.
 *
 * - STORE_LOCKED: another process has it.
 * - STORE_TOO_NEW: a later release has written it.
 * - STORE_INVALID: what is there is no store of ours.
 * - STORE_FORBIDDEN: we may not read or write it.
 * - STORE_CORRUPT: it is damaged.
 * - STORE_MISSING: nobody has made it yet, and it was not to be made.
 * - STORE_LOST: what was opened is not there any more.
 * - STORE_FULL: there is no room to open it.
 * - STORE_UNAVAILABLE: anything else.
 */
export type StoreErrorCode =
  | "STORE_LOCKED"
  | "STORE_TOO_NEW"
  | "STORE_INVALID"
  | "STORE_FORBIDDEN"
  | "STORE_CORRUPT"
  | "STORE_MISSING"
  | "STORE_LOST"
  | "STORE_FULL"
  | "STORE_UNAVAILABLE";

/** Not a user's mistake in a request and not a bug of ours: the machine has to be looked at. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The store answers, and does not have it; what may have it does not answer. */
export class ArchiveAway extends StoreError {
  constructor(cause: unknown) {
    super("STORE_UNAVAILABLE", "The archive does not answer, and this may be only there. Try again a little later.", {
      cause,
    });
  }
}
