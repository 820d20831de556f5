import { StoreError, type StoreErrorCode } from "../../../store/store-error.ts";

/** Result codes of SQLite that we tell apart. */
export const SQLITE = {
  busy: 5,
  locked: 6,
  noMemory: 7,
  readOnly: 8,
  ioError: 10,
  corrupt: 11,
  full: 13,
  cannotOpen: 14,
  protocol: 15,
  notADatabase: 26,
} as const;

/** The machine's doing, not the statement's: with room, memory or a healthy disk the same statement would work. */
const TROUBLES: ReadonlySet<number> = new Set([
  SQLITE.busy,
  SQLITE.locked,
  SQLITE.noMemory,
  SQLITE.readOnly,
  SQLITE.ioError,
  SQLITE.full,
  SQLITE.cannotOpen,
  SQLITE.protocol,
]);

/**
 * Of these nothing can have been written even if `commit` itself says so: the frame that makes a transaction valid is the
 * last to be written, and it was not. After a failed sync, or when only the log's index could not be written, it may be
 * there all the same when the file is next opened.
 */
const DEFINITE_AT_COMMIT: ReadonlySet<number> = new Set([SQLITE.busy, SQLITE.readOnly, SQLITE.full]);
const CANNOT_WRITE = 778;

/** An error on its way to the other thread: of an `Error` only message and stack would arrive. */
export interface Failure {
  readonly message: string;
  readonly code: StoreErrorCode | null;
  /** The reason lies in the machine. */
  readonly isTrouble: boolean;
  /** And nothing was written. */
  readonly isRefusal: boolean;
}

export function failureOf(error: unknown, during: "statement" | "commit" = "statement"): Failure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof StoreError) return { message, code: error.code, isTrouble: true, isRefusal: false };
  const result = resultCode(error);
  const isDamage = result === SQLITE.corrupt || result === SQLITE.notADatabase;
  const isTrouble = result !== undefined && TROUBLES.has(result);
  return {
    message,
    code: isDamage ? "STORE_CORRUPT" : null,
    isTrouble,
    isRefusal: isTrouble && (during === "statement" || isDefinite(error, result)),
  };
}

function isDefinite(error: unknown, result: number): boolean {
  return DEFINITE_AT_COMMIT.has(result) || extendedCode(error) === CANNOT_WRITE;
}

/** The error's primary code; the higher bits only say more about it. */
export function resultCode(error: unknown): number | undefined {
  const code = extendedCode(error);
  return code === undefined ? undefined : code & 0xff;
}

function extendedCode(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error ? Number(error.errcode) : undefined;
}

/** The other end of `failureOf`. */
export class FileError extends Error {
  override readonly name = "FileError";
  readonly isTrouble: boolean;
  readonly isRefusal: boolean;

  constructor({ message, isTrouble, isRefusal }: Failure) {
    super(message);
    this.isTrouble = isTrouble;
    this.isRefusal = isRefusal;
  }
}

export function errorOf(failure: Failure): Error {
  return failure.code === null ? new FileError(failure) : new StoreError(failure.code, failure.message);
}
