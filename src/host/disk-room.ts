import { statfsSync } from "node:fs";

/** What has to be left on the disk so that what is under way can end: this much, or this part of a small one. */
const RESERVE_BYTES = 32 * 1024 * 1024;
const RESERVE_PART = 1 / 20;

/** Whether there is so little room left below a folder that nothing new should begin. */
export function isNearlyFull(folder: string): boolean {
  const { bavail, blocks, bsize } = statfsSync(folder);
  return bavail * bsize < Math.min(RESERVE_BYTES, blocks * bsize * RESERVE_PART);
}
