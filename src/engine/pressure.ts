import type { HeaderClass, Store, Wake } from "../store/contract.ts";
import type { EngineObserver } from "./observer.ts";
import type { Owner } from "./owner.ts";

/** How full a store is when what has ended begins to go before its time: well before new work is refused. */
const MAKE_ROOM_FROM = 0.6;
/** How many entities of a partition are looked at in one turn, and how many of them go. */
const MOST_LOOKED_AT = 1000;
const MOST_REMOVED = 200;

/**
 * Makes room in a store that fills up: what has ended goes oldest first, whatever its age. Else a store that is full of
 * what is over would refuse new work for as long as that is kept. Where there is an archive, it is gone soon anyway.
 */
export class Pressure {
  private readonly store: Store;
  private readonly owners: () => readonly Owner[];
  private readonly retentionMs: number;
  private readonly observer: EngineObserver;
  /** How far each partition has been looked through, so that what is still open is not looked at again and again. */
  private readonly places = new Map<number, Wake>();

  constructor(store: Store, owners: () => readonly Owner[], retentionMs: number, observer: EngineObserver) {
    this.store = store;
    this.owners = owners;
    this.retentionMs = retentionMs;
    this.observer = observer;
  }

  /** Answers whether the store has a limit at all. */
  async relieve(): Promise<boolean> {
    const { fill } = await this.store.queries.counts();
    if (fill === undefined || fill < MAKE_ROOM_FROM) this.places.clear();
    else for (const owner of this.owners()) if (owner.unshipped === null) await this.relieveOne(owner);
    return fill !== undefined;
  }

  /** What has ended is looked at when it may be removed: in the order of the wakes that is the order of the ends. */
  private async relieveOne(owner: Owner): Promise<void> {
    const { partition } = owner;
    const beforeMs = owner.time.nowMs() + this.retentionMs;
    const wakes = await this.store.journal.due(partition, beforeMs, MOST_LOOKED_AT, this.places.get(partition));
    const classes = await Promise.all(wakes.map(({ entity }) => this.classOf(partition, entity)));
    const ended = wakes.filter((_, i) => classes[i] !== undefined && classes[i] !== "open");
    const removed = ended.slice(0, MOST_REMOVED);
    if (!owner.valid) return;
    owner.hurry(removed.map(({ entity }) => entity));
    if (removed.length > 0) this.observer.madeRoom?.(partition, removed.length);
    const last = ended.length > MOST_REMOVED ? removed.at(-1) : wakes[MOST_LOOKED_AT - 1];
    if (last === undefined) this.places.delete(partition);
    else this.places.set(partition, last);
  }

  private async classOf(partition: number, entity: string): Promise<HeaderClass | undefined> {
    return (await this.store.queries.header(partition, entity))?.class;
  }
}
