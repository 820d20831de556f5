import { afterAll, describe, expect, test } from "vitest";
import { cleanUp, getJson, postJson } from "../cli/program.ts";
import { Fleet, STORES } from "./fleet.ts";

afterAll(cleanUp);

const definition = {
  name: "any",
  nodes: [
    { id: "go", handler: "wait", config: { signal: "go" } },
    { id: "end", handler: "transform", config: { value: "{{ go }}" }, dependencies: ["go"] },
  ],
};
const LIMIT = 10;
const auth = { authorization: "Bearer boss" };

describe.each(STORES)("two servers that own nothing, on %s", (_kind, service) => {
  test("serve what the other has accepted, live too, and share the limit of what they let in", async () => {
    const given = await service();
    const fleet = new Fleet(given.url, 14);
    const engine = await fleet.process("engine,worker");
    // Beyond loopback, where there is a limit: it counts by key, whichever of them is asked.
    const env = { MILLRACE_API_KEYS: "admin:boss,author:one", MILLRACE_INGRESS_PER_MINUTE: String(LIMIT) };
    const [a, b] = await Promise.all([
      fleet.server("api", ["--host", "0.0.0.0"], env),
      fleet.server("api", ["--host", "0.0.0.0"], env),
    ]);
    const [here, there] = [a, b].map((server) => server.url.replace("0.0.0.0", "127.0.0.1")) as [string, string];

    const { execution_id: id } = await postJson<{ execution_id: string }>(`${here}/v1/workflow`, definition, auth);
    expect(await postJson(`${there}/v1/workflow/trigger/${id}`, {}, auth)).toMatchObject({ status: "RUNNING" });
    const stream = await fetch(`${there}/v1/executions/${id}/events`, {
      headers: { ...auth, accept: "text/event-stream" },
    });
    const followed = stream.text();
    await postJson(`${here}/v1/executions/${id}/signal`, { name: "go", data: 7 }, auth);
    // Ends by itself: the server that owns nothing has heard of the end.
    const text = await followed;
    expect([...text.matchAll(/^event: (\w+)/gm)].map(([, type]) => type)).toEqual(
      expect.arrayContaining(["accepted", "signal_received", "execution_ended", "end"]),
    );
    for (const one of [here, there]) {
      expect(await getJson(`${one}/v1/executions/${id}`, auth)).toMatchObject({
        status: "COMPLETED",
        output: { end: 7 },
      });
    }

    const statuses: number[] = [];
    for (let i = 0; i < 3 * LIMIT; i++) {
      const response = await fetch(`${i % 2 === 0 ? here : there}/v1/workflow`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: "Bearer one" },
        body: JSON.stringify(definition),
      });
      statuses.push(response.status);
      if (response.status === 429) expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    const accepted = statuses.filter((status) => status === 201).length;
    expect(statuses.length - accepted).toBe(statuses.filter((status) => status === 429).length);
    expect(accepted).toBeGreaterThanOrEqual(LIMIT);
    // Each may let in a twentieth of the limit, or one, before it looks what the other has let in.
    expect(accepted).toBeLessThanOrEqual(LIMIT + 2);
    await Promise.all([a.stop(), b.stop()]);
    engine.child.kill("SIGTERM");
    await engine.ended;
    await given.stop();
  });
});
