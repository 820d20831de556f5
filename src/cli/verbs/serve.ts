import { pages } from "../../page/pages.ts";
import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { startAndServe, startProcess } from "../start-process.ts";

/** API, engine and worker, together or apart. Its output is its log. */
export const verb: Verb = async (call) => {
  const read = await call.settings();
  const { roles } = read.settings;
  await startAndServe(call, () =>
    startProcess(call, read, { roles, logTo: 1, loopback: false, pages, tellsHealth: true }),
  );
  return EXIT.done;
};
