import type { Machine } from "../core/machine.ts";
import type { Message } from "../core/message.ts";
import { FewMap } from "../core/few-map.ts";
import { SparseMap } from "../core/sparse.ts";
import type { Json } from "../json/json.ts";

/** The events of one entity that a batch holds. */
export interface Written {
  readonly entity: string;
  /** Which batch holds them. */
  readonly batch: number;
  readonly version: number;
  readonly format: number;
  count: number;
  /**
   * All of them, without the bracket that closes the list. By adding up and not by `join`, which would copy it all one time
   * more: it is put together when the store takes it.
   */
  text: string;
}

const NONE: readonly string[] = [];

/**
 * An entity in the owner's memory: its state, and what the store and the workers know of it.
 *
 * A class, like everything that waits in memory and exists in thousands. Of each object literal V8 counts how many survive a minor
 * collection (scavenge). Where nearly all did once, as at the beginning of a flood, it allocates the next ones in the old generation
 * at once (pretenuring); there they keep alive all that they point to until the next full collection, long after they are garbage
 * themselves. Instances of classes are never pretenured.
 */
export class Resident {
  readonly kind = "resident";
  readonly key: string;
  readonly id: string;
  readonly machine: Machine;
  readonly state: unknown;
  /** The wake time the store holds: a lower bound, so that take-over never misses a timer. */
  storedWakeMs: number | null = null;
  /** Of one that has ended: it is not removed before this. It waits for an archive, or is a child whose parent is still there. */
  keepUntilMs: number | null = null;
  headerStatus: string | null = null;
  /** When it was last proved that everything in it that waits has something to wait for. */
  sweptAtMs: number = -Infinity;
  /** Version and size of the last snapshot; 0 if there is none. */
  snapshotVersion = 0;
  snapshotChars = 0;
  /** The journal in the store was cut here, as far as we know. */
  cutBelow = 0;
  /** Tasks out, by queue, as counted against the window. */
  readonly countedTasks: FewMap<string, number> = new FewMap();
  /** Tokens still to be withdrawn after the end. */
  withdrawing: readonly string[] = NONE;
  /** Values fetched for its next decision. */
  readonly fetched: SparseMap<string, Json> = new SparseMap();
  /** The batch that touched it last; it may leave memory only when that is committed. */
  touchedBy = 0;
  /** The forming of a batch that will touch it: it must not leave memory between being looked for and being used. */
  pinnedBy = 0;
  /** The batch in which it is to go on when all that was read is taken; 0 if it has. */
  goesOnIn = 0;
  /** Its events in a batch that is not committed. */
  written: Written | null = null;
  /** False once it has left memory: whoever still has it at hand has nothing. */
  isHeld = true;

  constructor(key: string, id: string, machine: Machine, state: unknown) {
    this.key = key;
    this.id = id;
    this.machine = machine;
    this.state = state;
  }
}

/** An entity that cannot be decided: its messages are kept until somebody releases it. */
export interface Quarantine {
  readonly kind: "quarantine";
  readonly key: string;
  version: number;
  /** True until its `quarantined` event is in a batch. */
  fresh: boolean;
  readonly error: { readonly code: string; readonly message: string; readonly retryable: boolean };
  readonly parked: Message[];
  /** Commands that its events say were answered before: one that comes twice changes nothing. */
  readonly answered: ReadonlySet<string>;
  /** Its events can be read again by this release: let it go on. */
  readonly releasable: boolean;
  touchedBy: number;
  pinnedBy: number;
}

export type Entity = Resident | Quarantine;

/** Why something is removed before its own wake has it looked at: whatever its age, or only if it was kept for as long as it should be. */
export type Haste = "for room" | "if kept long enough";

/** Somebody was called by what is removed. */
export interface Orphan {
  readonly key: string;
  readonly haste: Haste;
}
