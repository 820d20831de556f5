import type { HealthServer } from "../api/http/health-server.ts";
import type { Keys } from "../api/http/keys.ts";
import type { Route } from "../api/http/route.ts";
import type { ApiServer } from "../api/http/server.ts";
import type { Metrics } from "../api/metrics/metrics.ts";
import type { Service } from "../api/service/service.ts";
import type { Store } from "../store/contract.ts";
import type { linesOf } from "./log-routes.ts";

/** What is loaded only by a process that serves the API. */
export interface Api {
  readonly ApiServer: typeof ApiServer;
  readonly logRoutes: (service: Service) => readonly Route[];
  readonly linesOf: typeof linesOf;
}

/** What is loaded only by a process that tells what it measures. */
export interface Measuring {
  readonly Metrics: typeof Metrics;
  readonly measured: (store: Store, metrics: Metrics) => Store;
}

/** What is loaded only by a process that tells its health and serves no API. */
export interface Health {
  readonly HealthServer: typeof HealthServer;
  readonly Keys: typeof Keys;
}

export async function loadApi(): Promise<Api> {
  const [{ ApiServer }, { logRoutes, linesOf }] = await Promise.all([
    import("../api/http/server.ts"),
    import("./log-routes.ts"),
  ]);
  return { ApiServer, logRoutes, linesOf };
}

export async function loadMeasuring(): Promise<Measuring> {
  const [{ Metrics }, { measured }] = await Promise.all([
    import("../api/metrics/metrics.ts"),
    import("../api/metrics/measured-store.ts"),
  ]);
  return { Metrics, measured };
}

export async function loadHealth(): Promise<Health> {
  const [{ HealthServer }, { Keys }] = await Promise.all([
    import("../api/http/health-server.ts"),
    import("../api/http/keys.ts"),
  ]);
  return { HealthServer, Keys };
}
