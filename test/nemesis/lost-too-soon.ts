import { dispatchOf } from "../../src/simulator/checker/evidence.ts";
import type { World } from "../../src/simulator/history.ts";
import { LEASE_SECONDS } from "./member.ts";

/** In peace an answer of the store takes a moment; half a lease is long. */
const TOO_SOON_MS = (LEASE_SECONDS * 1_000) / 2;

/** In peace no delivery is given up before its lease can have run out. */
export function* lostTooSoon({ history }: World): Iterable<string> {
  const generations = new Map<string, number>();
  const delivered = new Map<string, number>();
  let isPeace = false;
  for (const entry of history) {
    if (entry.kind === "healed") isPeace = true;
    if (entry.kind === "delivered" && isPeace) {
      const { execution, generation, instance } = dispatchOf(entry.token);
      const node = instance.replace(/@\d+$/, "");
      delivered.set([execution, generation, node, entry.attempt, entry.delivery].join(" "), entry.at);
    }
    if (entry.kind !== "commit") continue;
    for (const { entity, events } of entry.records) {
      const execution = entity.slice("execution/".length);
      for (const event of events) {
        if (event.kind === "generationOpened") generations.set(execution, event.generation);
        if (event.kind !== "deliveryLost" || event.handedBack) continue;
        const { node, attempt, delivery } = event;
        const name = [execution, generations.get(execution) ?? 1, node, attempt, delivery].join(" ");
        const at = delivered.get(name);
        if (at === undefined || entry.at - at >= TOO_SOON_MS) continue;
        yield `Delivery ${name} was given up ${Math.round(entry.at - at)} ms after its worker got it`;
      }
    }
  }
}
