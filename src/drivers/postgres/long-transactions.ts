import type { Host } from "../../host/host.ts";
import { type Database, rows } from "./database.ts";

/** A transaction that has been open for a while: nothing that died since can be removed, and every queue gets slower. */
export interface LongTransaction {
  readonly pid: number;
  readonly application: string;
  readonly state: string;
  readonly seconds: number;
}

const LOOK_EVERY_MS = 60_000;
export const LONG_MS = 60_000;

/** Of other roles Postgres shows this only to a member of pg_read_all_stats. */
export const LONG_TRANSACTIONS = `
  select pid, application_name as application, coalesce(state, '') as state,
    extract(epoch from clock_timestamp() - xact_start)::integer as seconds
  from pg_stat_activity
  where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()
    and xact_start < clock_timestamp() - $1 * interval '1 millisecond'
  order by xact_start limit 10`;

/** Looks once a minute until it is stopped. */
export class LongTransactionWatch {
  readonly #stopping = new AbortController();

  constructor(host: Host, database: Database, warn: (told: string) => void, longMs: number) {
    void this.#watch(host, database, warn, longMs);
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #watch(host: Host, database: Database, warn: (told: string) => void, longMs: number): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await host.sleep(LOOK_EVERY_MS, signal);
      if (signal.aborted) return;
      try {
        for (const one of await rows<LongTransaction>(database, LONG_TRANSACTIONS, [longMs])) warn(toldOf(one));
      } catch {
        // Whoever needs the database hears of its trouble.
      }
    }
  }
}

export function toldOf({ pid, application, state, seconds }: LongTransaction): string {
  const who = application === "" ? "" : ` of ${application}`;
  return `A transaction of Postgres process ${pid}${who} has been open for ${seconds} s (${state}): queues grow slower until it ends`;
}
