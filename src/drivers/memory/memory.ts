import assert from "node:assert/strict";
import type { Host } from "../../host/host.ts";
import { LeaseClock } from "./lease-clock.ts";
import type { MemoryData, PartitionData } from "./memory-data.ts";
import { Waiters } from "./waiters.ts";

/** What the roles of one store share. */
export class Memory {
  readonly host: Host;
  readonly leaseClock: LeaseClock;
  readonly waiters: Waiters;
  readonly limits: Limits;
  readonly faults: Faults = { isFull: false, refusesCommits: false };
  /** Set where tasks do not outlive the process: tells the leases of this process from those of the one before. */
  readonly life: string;
  #data: MemoryData;
  #isClosed = false;

  constructor(host: Host, limits: Limits, data: MemoryData, life = "") {
    this.host = host;
    this.life = life;
    this.leaseClock = new LeaseClock(host);
    this.waiters = new Waiters(host);
    this.limits = limits;
    this.#data = data;
  }

  /** Whatever a role does begins here, so this is where a call after the end is caught. */
  get data(): MemoryData {
    if (this.#isClosed) throw new Error("the store is closed");
    return this.#data;
  }

  /** Replaced whole when the simulator rolls the store back. */
  set data(data: MemoryData) {
    this.#data = data;
  }

  close(): void {
    this.#isClosed = true;
    this.waiters.close();
  }
}

export interface Limits {
  /** Messages in one partition's inbox before starts are refused. */
  readonly maxInbox: number;
  /** Replies kept for one process; a process that stopped reading loses the oldest. */
  readonly maxReplies: number;
}

/** What a test makes go wrong, or a driver that keeps some of its data here finds to be so. */
export interface Faults {
  /** What may be refused is refused: starts, and puts that are refusable. */
  isFull: boolean;
  /** Every commit is refused, as on a disk that is full. */
  refusesCommits: boolean;
}

export function partitionData(memory: Memory, partition: number): PartitionData {
  const data = memory.data.partitions[partition];
  assert(data !== undefined, `there is no partition ${partition}`);
  return data;
}
