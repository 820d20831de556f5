import type { Line } from "./connection.ts";
import { callOf, runScript, scripts } from "./scripts.ts";

/** Keys in one script, as many as one may take its time for. */
const MOST_KEYS = 200;

/** What format 2 lays out otherwise: the step that does it, and what the keys of it begin with. */
const STEPS = [
  ["entities", "entity:"],
  ["journals", "journal:"],
  ["lines", "line:"],
] as const;

/**
 * Brings a store of format 1 up to date. Whoever is still running on that format is shut out first, and nobody gets in before
 * the end. It may be done by several at a time, and be taken up by the next after one that died.
 */
export async function upgrade(line: Line, prefix: string, format: number): Promise<void> {
  const step = (...values: readonly string[]): Promise<unknown> =>
    runScript(line, scripts.upgrade, callOf(scripts.upgrade, prefix, ...values));
  await step("begin", String(format));
  for (const [name, kind] of STEPS) {
    const start = `${prefix}:${kind}`;
    const match = `${start.replaceAll(/[*?[\]\\^]/g, String.raw`\$&`)}*`;
    let cursor = "0";
    do {
      const command = ["SCAN", cursor, "MATCH", match, "COUNT", String(MOST_KEYS)];
      const [next, keys] = await line.send<readonly [string, readonly string[]]>(command);
      cursor = next;
      if (keys.length > 0) await step(name, ...keys.map((key) => key.slice(start.length)));
    } while (cursor !== "0");
  }
  await step("end");
}
