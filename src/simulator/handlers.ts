import type { Json } from "../json/json.ts";
import type { Handler } from "../worker/handler.ts";
import { HandlerError } from "../worker/handler.ts";
import { isSpendingWorld, usageOf } from "./generate-budgets.ts";
import { closingOf, isClosingWorld } from "./generate-closings.ts";
import { CANARY_TEXT } from "./generate-config.ts";
import type { SimProcess } from "./process.ts";
import { Random } from "./random.ts";

/** How unkind the handlers of a world are. */
export interface HandlerMood {
  readonly failing: number;
  readonly fatal: number;
  readonly hanging: number;
  /** Chance that a node kills whatever worker runs it. */
  readonly killing: number;
  readonly slow: number;
  readonly large: number;
}

/**
 * A handler whose behaviour is fixed by what it is called for: the same attempt behaves the same on every worker, as a
 * real one mostly does; so that a redelivery proves something.
 */
export function simulatedHandler(
  process: SimProcess,
  mood: HandlerMood,
  seed: number,
  killed: () => void,
  samples?: Readonly<Record<string, Json>>,
): Handler {
  const spends = samples === undefined && isSpendingWorld(seed);
  const closes = samples === undefined && isClosingWorld(seed);
  return async (call) => {
    const node = new Random(seed ^ hash(`${call.executionId}/${call.nodeId}`));
    const kills = node.chance(mood.killing);
    // Without its owner and delivery a token names what is asked for: generation, item, round and attempt.
    const [, execution, generation, instance, number] = call.token.split(":");
    const attempt = new Random(seed ^ hash(`${execution}/${generation}/${instance}/${number}`));
    const durationMs = attempt.chance(mood.slow) ? attempt.integer(1_000, 9_000) : attempt.integer(0, 200);
    await process.host.sleep(durationMs, call.signal);
    if (kills) {
      killed();
      process.kill();
      return null;
    }
    const used = spends ? usageOf(seed ^ hash(`${instance}/${number}`)) : undefined;
    if (used !== undefined) call.addUsage(used);
    const closeForMs = closes ? closingOf(seed ^ hash(`${execution}/${instance}/${number}`)) : undefined;
    if (closeForMs !== undefined) call.closeLimit(closeForMs);
    if (attempt.chance(mood.hanging)) await process.host.sleep(call.timeoutMs * 3, call.signal);
    if (attempt.chance(mood.fatal)) throw new HandlerError("FATAL", "will never work", { retryable: false });
    if (attempt.chance(mood.failing)) {
      const retryAfterMs = attempt.chance(0.2) ? attempt.integer(100, 5_000) : undefined;
      throw new HandlerError("FLAKY", "try again", {
        retryable: true,
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      });
    }
    return samples === undefined ? output(attempt, call.nodeId, mood) : (samples[call.nodeId] ?? {});
  };
}

function output(random: Random, node: string, mood: HandlerMood): Json {
  const value = random.integer(0, 9);
  const plain = {
    value,
    text: random.chance(0.3) ? CANARY_TEXT : `${node} says ${value}`,
    flag: random.chance(0.5),
    nested: { x: [value, value + 1] },
  };
  if (!random.chance(mood.large)) return plain;
  return { ...plain, filler: "x".repeat(random.pick([2_000, 70_000])) };
}

function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return value >>> 0;
}
