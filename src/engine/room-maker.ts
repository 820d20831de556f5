import { isCalled } from "../core/entity.ts";
import type { Host } from "../host/host.ts";
import type { HeaderClass, Store, Wake } from "../store/contract.ts";
import type { EngineObserver } from "./observer.ts";
import type { Owner } from "./owner.ts";

/** How full a store is when what has ended begins to go before its time: well before new work is refused. */
const MAKE_ROOM_FROM = 0.6;
/** How many entities of a partition are looked at in one turn, and how many of them go. */
const MOST_LOOKED_AT = 1000;
const MOST_REMOVED = 200;

/** A store without a limit of its own is asked how much it holds once in so many renewals: counting may cost it something. */
const UNLIMITED_RENEWALS = 60;
/** After how long it is asked again while there is more to remove. */
const AT_ONCE_MS = 50;

interface RoomMakerParts {
  readonly store: Store;
  readonly host: Host;
  readonly owners: () => readonly Owner[];
  readonly settings: { readonly retentionMs: number; readonly keepEnded: number | null; readonly renewMs: number };
  readonly observer: EngineObserver;
}

/** How far a walk through a partition has come. */
interface Place {
  readonly after: Wake | undefined;
  readonly meetsChildren: boolean;
}

const NEW_WALK: Place = { after: undefined, meetsChildren: false };

/**
 * Makes room in a store that fills up, or that has more of what is over than there may be: it goes oldest first, whatever
 * its age. Else a store that is full of what is over would refuse new work for as long as that is kept, and a busy one
 * would grow for as long. Where there is an archive, it is gone soon anyway.
 *
 * Children are not counted, and stay for as long as their parent: they go with it. In a store that fills up those are met too of
 * which another engine has removed the parent. Their owner has to look for it, for each of them, so that is done seldom.
 */
export class RoomMaker {
  private readonly store: Store;
  private readonly host: Host;
  private readonly owners: () => readonly Owner[];
  private readonly retentionMs: number;
  private readonly keepEnded: number;
  private readonly waitMs: Readonly<Record<"now" | "soon" | "later", number>>;
  private readonly observer: EngineObserver;
  /** How far each partition has been looked through, so that what is still open is not looked at again and again. */
  private readonly places = new Map<number, Place>();
  /** When the next walk through each partition that meets children may begin, by its time. */
  private readonly childrenFromMs = new Map<number, number>();

  constructor({ store, host, owners, settings, observer }: RoomMakerParts) {
    const { retentionMs, keepEnded, renewMs } = settings;
    this.store = store;
    this.host = host;
    this.owners = owners;
    this.retentionMs = retentionMs;
    this.keepEnded = keepEnded ?? Infinity;
    this.waitMs = { now: AT_ONCE_MS, soon: renewMs, later: renewMs * UNLIMITED_RENEWALS };
    this.observer = observer;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      // One that does not answer will be as full in a second.
      const when = await this.makeRoom().catch(() => "soon" as const);
      await this.host.sleep(this.waitMs[when], signal);
    }
  }

  /** Answers how soon to look again: one that is too full at once, one that has a limit soon, any other in a while. */
  private async makeRoom(): Promise<"now" | "soon" | "later"> {
    // What is being removed would be counted once more, and others removed in its place.
    const idle = this.owners().filter(({ retention, released }) => retention.hurried.size === 0 && released.size === 0);
    const { fill, ended = 0 } = await this.store.queries.counts();
    if (fill !== undefined && fill >= MAKE_ROOM_FROM) {
      for (const owner of this.owners()) {
        const place = this.places.get(owner.partition) ?? this.newWalk(owner);
        const removed = await this.removeOldest(owner, place, MOST_REMOVED, MOST_LOOKED_AT);
        if (removed > 0) this.observer.madeRoom?.(owner.partition, removed);
      }
      return "soon";
    }
    const excess = ended - this.keepEnded;
    if (excess <= 0) {
      this.places.clear();
      return fill === undefined ? "later" : "soon";
    }
    const share = Math.min(MOST_REMOVED, Math.ceil(excess / this.store.capabilities.partitionCount));
    // Many of those that are due may be open, or children.
    for (const owner of idle) {
      await this.removeOldest(owner, this.places.get(owner.partition) ?? NEW_WALK, share, MOST_REMOVED + share);
    }
    return "now";
  }

  /**
   * What has ended is looked at when it may be removed: in the order of the wakes that is the order of the ends. Answers how
   * many go, but for children, of which nobody knows yet.
   */
  private async removeOldest(owner: Owner, place: Place, most: number, mostLookedAt: number): Promise<number> {
    if (owner.unshipped !== null) return 0;
    const { partition } = owner;
    const { after, meetsChildren } = place;
    const beforeMs = owner.time.nowMs() + this.retentionMs;
    const wakes = await this.store.journal.due(partition, beforeMs, mostLookedAt, after);
    const met = meetsChildren ? wakes : wakes.filter(({ entity }) => !isCalled(entity));
    const ended = await this.endedOf(partition, met, most + 1);
    const removed = ended.slice(0, most);
    if (!owner.valid) return 0;
    owner.retention.hurry(removed.map(({ entity }) => entity));
    const last = ended.length > most ? removed.at(-1) : wakes[mostLookedAt - 1];
    if (last !== undefined) this.places.set(partition, { after: last, meetsChildren });
    else {
      this.places.delete(partition);
      if (meetsChildren) this.childrenFromMs.set(partition, owner.time.nowMs() + this.waitMs.later);
    }
    return removed.filter(({ entity }) => !isCalled(entity)).length;
  }

  /** One that meets children, if the last such was long ago. */
  private newWalk({ partition, time }: Owner): Place {
    if (time.nowMs() < (this.childrenFromMs.get(partition) ?? -Infinity)) return NEW_WALK;
    return { ...NEW_WALK, meetsChildren: true };
  }

  /** The first of these that are over, about as many as are wanted: each is asked for. */
  private async endedOf(partition: number, wakes: readonly Wake[], wanted: number): Promise<readonly Wake[]> {
    const ended: Wake[] = [];
    for (let from = 0; from < wakes.length && ended.length < wanted; from += 2 * wanted) {
      const some = wakes.slice(from, from + 2 * wanted);
      const classes = await Promise.all(some.map(({ entity }) => this.classOf(partition, entity)));
      ended.push(...some.filter((_, i) => classes[i] !== undefined && classes[i] !== "open"));
    }
    return ended;
  }

  private async classOf(partition: number, entity: string): Promise<HeaderClass | undefined> {
    return (await this.store.queries.header(partition, entity))?.class;
  }
}
