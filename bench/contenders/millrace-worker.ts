/** A Millrace worker in a process of its own. */
import { handlerOf, type MillraceOptions, startProcess } from "./millrace.ts";
import { workApart } from "./worker-process.ts";

await workApart<MillraceOptions>(async (probe, options) => {
  const running = await startProcess(options, ["worker"], handlerOf(probe));
  return () => running.stop();
});
