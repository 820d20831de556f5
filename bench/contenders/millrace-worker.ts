/** A Millrace worker, or an engine, in a process of its own. */
import type { Role } from "../../src/settings/declarations.ts";
import { handlerOf, type MillraceOptions, startProcess } from "./millrace.ts";
import { workApart } from "./worker-process.ts";

interface Given extends MillraceOptions {
  readonly roles: readonly Role[];
}

await workApart<Given>(async (probe, { roles, ...options }) => {
  const running = await startProcess(options, roles, handlerOf(probe));
  return () => running.stop();
});
