import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { cleanUp, getJson } from "../cli/program.ts";
import { Fleet, RoundRobin, STORES } from "./fleet.ts";

afterAll(cleanUp);

const definition = {
  name: "rolling",
  nodes: [
    { id: "a", handler: "transform", config: { value: 1 } },
    { id: "b", handler: "transform", config: { value: "{{ a }}" }, dependencies: ["a"] },
  ],
};

const CLIENTS = 4;

describe.each(STORES)("two servers behind something that takes turns, on %s", (kind, service) => {
  test("may be restarted one after the other, and no request fails", async () => {
    const given = await service();
    // Long enough for the proxy to notice, on any machine.
    const fleet = new Fleet(given.url, 11, { MILLRACE_DRAIN_SECONDS: "3" });
    const servers = [await fleet.server("api,engine,worker"), await fleet.server("api,engine,worker")];
    const proxy = await RoundRobin.start(servers.map((server) => server.url));
    const failures: string[] = [];
    const ids: string[] = [];
    const latencies: number[] = [];
    let isOver = false;
    const ask = async (path: string, init: RequestInit = {}): Promise<{ readonly execution_id?: string }> => {
      const atMs = performance.now();
      const response = await fetch(proxy.url + path, init);
      latencies.push(performance.now() - atMs);
      const text = await response.text();
      if (!response.ok) failures.push(`${path}: ${response.status} ${text.slice(0, 200)}`);
      return response.ok ? (JSON.parse(text) as { readonly execution_id?: string }) : {};
    };
    const client = async (): Promise<void> => {
      while (!isOver) {
        const body = JSON.stringify(definition);
        const headers = { "content-type": "application/json" };
        const { execution_id: id } = await ask("/v1/workflow?start=true", { method: "POST", headers, body });
        if (id === undefined) continue;
        ids.push(id);
        // What one has accepted, the other knows.
        await ask(`/v1/executions/${id}`);
        await sleep(20);
      }
    };
    const clients = Array.from({ length: CLIENTS }, client);
    await expect.poll(() => ids.length, { timeout: 30_000 }).toBeGreaterThan(20);
    for (const [i, server] of servers.entries()) {
      expect((await server.stop()).code).toBe(0);
      proxy.remove(server.url);
      const next = await fleet.server("api,engine,worker");
      proxy.add(next.url);
      servers[i] = next;
      const before = ids.length;
      await expect.poll(() => ids.length, { timeout: 30_000 }).toBeGreaterThan(before + 20);
    }
    isOver = true;
    await Promise.all(clients);
    expect(failures).toEqual([]);
    const open = async (): Promise<number> => {
      const { items } = await getJson<{ items: unknown[] }>(`${proxy.url}/v1/executions?status=RUNNING&limit=500`);
      return items.length;
    };
    await expect.poll(open, { timeout: 60_000 }).toBe(0);
    for (const id of ids) {
      expect((await getJson<{ status: string }>(`${proxy.url}/v1/executions/${id}`)).status).toBe("COMPLETED");
    }
    latencies.sort((a, b) => a - b);
    const at = (part: number): string => `${Math.round(latencies[Math.floor(latencies.length * part)]!)} ms`;
    console.info(
      `${kind}: ${latencies.length} requests, none failed; p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(0.9999)}`,
    );
    await proxy.close();
    for (const server of servers) await server.stop();
    await given.stop();
  });
});
