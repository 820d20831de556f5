import type { Host } from "../../host/host.ts";
import type { Database } from "./database.ts";
import { rows } from "./database.ts";

const LOOK_EVERY_MS = 1000;
/** What was seen longer ago is not known any more. */
const SEEN_FOR_MS = 3000;

const SQL = {
  // One of the release before changes the one time and not the other. With a colon it is the name of something else that is kept here.
  others: `
    select exists (
      select from registrations
      where until_ms > (select lease_ms()) and knows_packs_until_ms is distinct from until_ms and process not like '%:%'
    ) as "areThere"`,
};

/**
 * What the processes of a store have in common. A fleet is upgraded one process after the other: as long as one of the release before is
 * alive nothing is written that it could not read. None can begin any more once the store was brought up to date.
 */
export class Fleet {
  readonly #host: Host;
  readonly #database: Database;
  #knowsPacks = false;
  #lookedAtMs = -Infinity;
  #seenAtMs = -Infinity;

  constructor(host: Host, database: Database) {
    this.#host = host;
    this.#database = database;
  }

  /** Whether all of them know what a pack is. Of a moment ago; where it is not known they do not. */
  get knowsPacks(): boolean {
    const nowMs = this.#host.monotonicMs();
    if (nowMs - this.#lookedAtMs >= LOOK_EVERY_MS) {
      this.#lookedAtMs = nowMs;
      this.look().catch(() => {});
    }
    return this.#knowsPacks && nowMs - this.#seenAtMs < SEEN_FOR_MS;
  }

  async look(): Promise<void> {
    const startedAtMs = this.#host.monotonicMs();
    const [others] = await rows<{ areThere: boolean }>(this.#database, SQL.others);
    this.#knowsPacks = !others!.areThere;
    this.#seenAtMs = startedAtMs;
  }
}
