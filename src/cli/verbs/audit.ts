import { resolve } from "node:path";
import { counted } from "../../errors/counted.ts";
import { type VerifiedLog, verifyAuditLog } from "../../handlers/audit-log.ts";
import { option, type Verb } from "../call.ts";
import { unreadable } from "../definition-file.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";

/** Checks a log of the `audit` handler, wherever it was brought. */
export const verb: Verb = async (call) => {
  const [file] = call.args as readonly [string];
  let log: VerifiedLog;
  try {
    log = await verifyAuditLog(resolve(call.terminal.directory, file), option(call, "has"));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "AUDIT_BROKEN") throw unreadable(file, error);
    throw new Failure(EXIT.invalid, message, { code });
  }
  const { lines, hash, isCut } = log;
  call.terminal.out(call.json ? `${JSON.stringify({ file, lines, hash, unfinished: isCut })}\n` : textOf(file, log));
  return EXIT.done;
};

function textOf(file: string, { lines, hash, isCut }: VerifiedLog): string {
  const cut = "Half a line at its end was never confirmed: its writer has died, and the next line replaces it.\n";
  return `${file}: ${counted(lines, "line")}, none was changed, taken out or put in\n${isCut ? cut : ""}It ends with ${hash}\n`;
}
