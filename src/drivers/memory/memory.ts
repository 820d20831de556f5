import assert from "node:assert/strict";
import type { Host } from "../../host/host.ts";
import type { LeaseClock } from "./lease-clock.ts";
import type { MemoryData, PartitionData } from "./memory-data.ts";
import type { Waiters } from "./waiters.ts";

/** What the roles of one store share. `data` is replaced whole when the simulator rolls the store back. */
export interface Memory {
  readonly host: Host;
  readonly leaseClock: LeaseClock;
  readonly waiters: Waiters;
  readonly limits: Limits;
  data: MemoryData;
}

export interface Limits {
  /** Messages in one partition's inbox before starts are refused. */
  readonly maxInbox: number;
  /** Replies kept for one process; a process that stopped reading loses the oldest. */
  readonly maxReplies: number;
}

export function partitionData(memory: Memory, partition: number): PartitionData {
  const data = memory.data.partitions[partition];
  assert(data !== undefined, `there is no partition ${partition}`);
  return data;
}
