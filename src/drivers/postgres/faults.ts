import { DatabaseError } from "pg";
import { StoreError, type StoreErrorCode } from "../../store/store-error.ts";

/** What the server says, by the beginning of its code; the first that fits counts. */
const BY_CODE: readonly (readonly [string, StoreErrorCode])[] = [
  ["53100", "STORE_FULL"],
  ["28", "STORE_FORBIDDEN"],
  ["42501", "STORE_FORBIDDEN"],
  // The database, the schema or a table is not there any more, or is another program's.
  ["3D000", "STORE_INVALID"],
  ["3F000", "STORE_INVALID"],
  ["42P01", "STORE_INVALID"],
  ["42P07", "STORE_INVALID"],
  ["42703", "STORE_INVALID"],
  ["42883", "STORE_INVALID"],
  // Tables that somebody has changed: other types, an index that is gone, a trigger.
  ["42804", "STORE_INVALID"],
  ["42P10", "STORE_INVALID"],
  ["P0", "STORE_INVALID"],
  // A pool in front of the server that knows no prepared statements, or a server that lacks something.
  ["26", "STORE_UNAVAILABLE"],
  ["0A", "STORE_UNAVAILABLE"],
  ["XX001", "STORE_CORRUPT"],
  ["XX002", "STORE_CORRUPT"],
  // No answer in time, no connection, no room, no right to write now, or the server is going down.
  ["57", "STORE_UNAVAILABLE"],
  ["08", "STORE_UNAVAILABLE"],
  ["53", "STORE_UNAVAILABLE"],
  ["25", "STORE_UNAVAILABLE"],
  ["40", "STORE_UNAVAILABLE"],
  ["55", "STORE_UNAVAILABLE"],
  ["58", "STORE_UNAVAILABLE"],
  ["XX", "STORE_UNAVAILABLE"],
];

/** The trouble by its name. What is left as it is was not the store's doing: bad values, and bugs of ours. */
export function faultOf(error: unknown): unknown {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  if (error instanceof DatabaseError) {
    const code = BY_CODE.find(([beginning]) => error.code?.startsWith(beginning) === true)?.[1];
    return code === undefined ? error : new StoreError(code, `Postgres: ${error.message}`, { cause: error });
  }
  if (!isOfConnection(error)) return error;
  return new StoreError("STORE_UNAVAILABLE", `Postgres: ${error.message || codeOf(error)}`, { cause: error });
}

/** What the server answered, also behind the name we gave it. */
export function answerOf(error: unknown): DatabaseError | undefined {
  const cause = error instanceof StoreError ? error.cause : error;
  return cause instanceof DatabaseError ? cause : undefined;
}

/** Of these the server says by itself that nothing was written: class 53 is a lack of room, 25006 a read-only server. */
export function whyRefused(error: unknown): string | undefined {
  const answer = answerOf(error);
  if (answer?.code === undefined) return undefined;
  return answer.code.startsWith("53") || answer.code === "25006" ? answer.message : undefined;
}

/** Two transactions were in each other's way. The server has undone this one, and it may be tried again. */
export function isCollision(error: unknown): boolean {
  const code = answerOf(error)?.code;
  return code === "40001" || code === "40P01";
}

/** `pg` has no class for them: sockets have codes, and it says the rest in words. */
function isOfConnection(error: Error): boolean {
  return (
    /^E[A-Z_]+$/.test(codeOf(error)) ||
    /^(Connection terminated|Client (has|was)|Cannot use a pool|Query read timeout|timeout e)/.test(error.message)
  );
}

function codeOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return typeof code === "string" ? code : "";
}
