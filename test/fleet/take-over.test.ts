import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { cleanUp } from "../cli/program.ts";
import { engines, Fleet, STORES } from "./fleet.ts";

afterAll(cleanUp);

/** Ends where it begins, in the engine. */
const definition = { name: "take-over", nodes: [{ id: "a", handler: "output", config: { value: 1 } }] };
const EVERY_MS = 40;

interface Sent {
  readonly atMs: number;
  readonly tookMs: number;
  readonly status: number;
}

describe.each(STORES)("the engines of a fleet on %s", (kind, service) => {
  test("take over from one that stops and from one that is killed: every start is accepted", async () => {
    const given = await service();
    const fleet = new Fleet(given.url, 13);
    const api = await fleet.server("api");
    let [first, second] = [await fleet.process("engine"), await fleet.process("engine")];
    await expect.poll(() => engines(api.url)).toBe(2);

    const sent: Sent[] = [];
    const under = new Set<Promise<void>>();
    let isOver = false;
    const send = async (): Promise<void> => {
      const atMs = performance.now();
      const headers = { "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(definition) };
      const response = await fetch(`${api.url}/v1/workflow?start=true`, init);
      await response.text();
      sent.push({ atMs, tookMs: performance.now() - atMs, status: response.status });
    };
    const sending = (async () => {
      for (; !isOver; await sleep(EVERY_MS)) {
        const one = send();
        under.add(one);
        void one.finally(() => under.delete(one));
      }
      await Promise.all(under);
    })();

    /** The longest wait of those that were sent around a moment: as long as some partition had no owner. */
    const longestSince = (atMs: number): number =>
      Math.round(Math.max(...sent.filter((one) => one.atMs + one.tookMs >= atMs).map(({ tookMs }) => tookMs)));
    const told: string[] = [];
    const hit = async (what: string, signal: NodeJS.Signals, lookForMs: number): Promise<void> => {
      // By then the two have shared what there is.
      await sleep(3_000);
      const usualMs = longestSince(performance.now() - 1_000);
      const atMs = performance.now();
      second.child.kill(signal);
      await second.ended;
      await sleep(lookForMs);
      told.push(`${what} ${longestSince(atMs)} ms (${usualMs} ms before)`);
      [first, second] = [await fleet.process("engine"), first];
    };
    await hit("after SIGTERM", "SIGTERM", 2_000);
    await hit("after SIGKILL", "SIGKILL", 6_000);
    isOver = true;
    await sending;
    console.info(`${kind}: the longest wait for an owner ${told.join(", ")}, of ${sent.length} starts`);
    expect(sent.filter(({ status }) => status !== 201)).toEqual([]);
    for (const one of [first, second]) one.child.kill("SIGTERM");
    expect((await Promise.all([first.ended, second.ended])).map(({ code }) => code)).toEqual([0, 0]);
    await api.stop();
    await given.stop();
  });
});
