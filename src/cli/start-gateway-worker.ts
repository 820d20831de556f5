import { nodeHost } from "../host/node-host.ts";
import { GatewayHealth } from "../process/gateway-health.ts";
import { logDegraded, logTask, openLog } from "../process/log.ts";
import { watched } from "../process/watched-store.ts";
import { openBuiltins, ownSlots, queuesOf, workerSettings } from "../process/worker-options.ts";
import { ApiError, ServerUnreachable } from "../sdk/api-error.ts";
import { httpClient } from "../sdk/connect.ts";
import { startGatewayWorker } from "../sdk/gateway-worker.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Call } from "./call.ts";
import { EXIT } from "./exit-code.ts";
import { Failure } from "./failure.ts";
import { loadHandlerModules } from "./project/handler-modules.ts";
import { type Started, startFailure } from "./start-process.ts";

/** A worker that speaks HTTP to a server, and holds no credentials of its store. What it logs is on its own stdout. */
export async function startGatewayWorkerProcess(call: Call, settings: Settings): Promise<Started> {
  const log = openLog(settings, 1);
  const user = await loadHandlerModules(settings.handlers, call.terminal.directory).catch((error: unknown) => {
    throw startFailure(error, settings.port);
  });
  const builtins = openBuiltins(settings, nodeHost, false);
  const handlers = new Map([...builtins.handlers, ...user.handlers]);
  const { url, apiKey } = settings;
  const health = await GatewayHealth.load(settings, log);
  const isByQueue = settings.queues.length > 0 || settings.singleQueue !== undefined;
  const queues = queuesOf(settings, handlers.keys(), user.queues);
  try {
    const { worker, stop } = await startGatewayWorker({
      http: httpClient({ url, ...(apiKey !== undefined && { token: apiKey }) }),
      token: apiKey,
      handlers,
      queues: isByQueue ? queues : undefined,
      ownSlots: ownSlots(settings, handlers.keys()),
      settings: workerSettings(settings),
      // The client has tried for a while before it gives up on a call.
      watch: (store) => {
        const seen = watched(store, { host: nodeHost, log, called: "the server", lastsMs: 0 });
        return health?.watch(seen) ?? seen;
      },
      observer: {
        // Nobody else keeps it.
        logged: (task, entry) => logTask(log, "warn", task, entry),
        unknownHandler: ({ execution, node, handler }, queue) =>
          log.warn(
            { execution_id: execution, node_id: node, handler, queue },
            "gave back a task of an unknown handler",
          ),
        degraded: (deaf, task, hasEnded) => logDegraded(log, deaf, task, hasEnded),
        heartbeatThreadLost: (reason) => log.error({ reason }, "the thread that kept the leases has ended"),
      },
    });
    const end = async (): Promise<void> => {
      health?.drain();
      await stop();
      await builtins.close();
      await health?.close();
      log.info("stopped");
    };
    const healthUrl = await health
      ?.listen(worker, handlers, isByQueue ? queues : [...handlers.keys()])
      .catch(async (error: unknown) => {
        await stop();
        throw startFailure(error, settings.port, call.command, "health-port");
      });
    log.info({ roles: ["worker"], server: url, ...(healthUrl !== undefined && { health: healthUrl }) }, "started");
    return { log, process: { stop: end } };
  } catch (error) {
    await builtins.close();
    throw refusedByServer(error);
  }
}

/** What the user can mend, with a hint; anything else as it is. */
function refusedByServer(error: unknown): unknown {
  if (error instanceof ApiError && (error.status === 401 || error.status === 403)) {
    const hint = "the key must have the role worker: MILLRACE_API_KEY";
    return new Failure(EXIT.notAllowed, error.message, { hint });
  }
  if (!(error instanceof ServerUnreachable)) return error;
  const hint = "start one: millrace serve   or name it: --url http://…";
  return new Failure(EXIT.unreachable, error.message, { hint });
}
