import { pages } from "../../page/pages.ts";
import { isOwnStore } from "../../process/open-store.ts";
import type { Settings } from "../../settings/declarations.ts";
import { storeAddress } from "../../settings/store-address.ts";
import type { Verb } from "../call.ts";
import { EXIT } from "../exit-code.ts";
import { Failure } from "../failure.ts";
import { startAndServe, startProcess } from "../start-process.ts";

/** API, engine and worker, together or apart. Its output is its log. */
export const verb: Verb = async (call) => {
  const read = await call.settings();
  const { roles } = read.settings;
  checkRoles(read.settings);
  await startAndServe(call, () =>
    startProcess(call, read, { roles, logTo: 1, loopback: false, pages, tellsHealth: true }),
  );
  return EXIT.done;
};

/** Who has a store alone would wait for ever for the others. Only workers may come to it, over HTTP. */
function checkRoles(settings: Settings): void {
  const address = storeAddress(settings);
  if ("fault" in address || !isOwnStore(address)) return;
  const missing = (["api", "engine"] as const).filter((role) => !settings.roles.includes(role));
  if (missing.length === 0) return;
  const message = `a ${address.kind} store belongs to one process: nobody else could be its ${missing.join(" or ")}.`;
  throw new Failure(EXIT.usage, message, {
    hint: "let one process be all: --roles api,engine,worker   or name a store that is shared: --store postgres://… or redis://…",
  });
}
