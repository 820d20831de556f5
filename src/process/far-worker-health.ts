import type { HealthServer } from "../api/http/health-server.ts";
import type { Metrics } from "../api/metrics/metrics.ts";
import { nodeHost } from "../host/node-host.ts";
import type { Settings } from "../settings/declarations.ts";
import type { Store } from "../store/contract.ts";
import type { Worker } from "../worker/worker.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { type Health, loadHealth, loadMeasuring, type Measuring } from "./load-api.ts";
import type { Log } from "./log.ts";
import { healthServer, loadOf, notStopping, workerCheck } from "./own-health.ts";

/** What a worker far from any store tells of itself. It knows no store, so the keys for its measurements are those of the settings. */
export class FarWorkerHealth {
  readonly #leases = new LeaseWatch(nodeHost);
  readonly #settings: Settings;
  readonly #log: Log;
  readonly #health: Health;
  readonly #measured: Measuring["measured"];
  readonly #metrics: Metrics;
  #server: HealthServer | undefined;

  private constructor(settings: Settings, log: Log, health: Health, { Metrics, measured }: Measuring) {
    this.#settings = settings;
    this.#log = log;
    this.#health = health;
    this.#measured = measured;
    this.#metrics = new Metrics();
  }

  /** undefined = it is to listen nowhere. */
  static async load(settings: Settings, log: Log): Promise<FarWorkerHealth | undefined> {
    if (settings.healthPort === undefined) return undefined;
    return new FarWorkerHealth(settings, log, await loadHealth(), await loadMeasuring());
  }

  /** What stands for the store, for the worker. */
  watch(store: Store): Store {
    return this.#leases.watch(this.#measured(store, this.#metrics));
  }

  async listen(worker: Worker, handlers: ReadonlyMap<string, unknown>, queues: readonly string[]): Promise<string> {
    const settings = this.#settings;
    this.#metrics.watchWorker(() => loadOf(worker, settings, handlers.keys()));
    this.#server = healthServer(this.#health, {
      settings,
      host: nodeHost,
      log: this.#log,
      metrics: this.#metrics,
      checks: { worker: workerCheck(worker, queues, this.#leases) },
      notes: { handlers: () => notStopping(worker) },
    });
    return this.#server.listen();
  }

  drain(): void {
    this.#server?.drain();
  }

  async close(): Promise<void> {
    await this.#server?.close();
  }
}
