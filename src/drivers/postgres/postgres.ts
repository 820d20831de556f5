import type { Host } from "../../host/host.ts";
import type { Database } from "./database.ts";
import type { Fleet } from "./fleet.ts";
import type { Seats } from "./seats.ts";
import type { WakeUps } from "./wake-ups.ts";
import type { WatchedEntities } from "./watched.ts";

/** What the roles of one store share. */
export interface Postgres {
  readonly database: Database;
  readonly host: Host;
  readonly fleet: Fleet;
  readonly wakeUps: WakeUps;
  /** Who waits for tasks in this process. */
  readonly seats: Seats;
  /** Who waits for versions in this process. */
  readonly watched: WatchedEntities;
  readonly incarnation: string;
  readonly maxInbox: number;
}
