import type { Json } from "./json.ts";

/** Whether a value has lists and objects more than so many levels deep. Goes no deeper than that itself. */
export function isDeeperThan(value: Json, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((below: Json) => isDeeperThan(below, levels - 1));
}
