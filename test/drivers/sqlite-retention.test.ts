import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { entityKey, partitionOf } from "../../src/core/entity.ts";
import { executionMachine } from "../../src/core/execution/machine.ts";
import { openSqlite } from "../../src/drivers/sqlite/sqlite-store.ts";
import { Engine } from "../../src/engine/engine.ts";
import { nodeHost } from "../../src/host/node-host.ts";
import { Requests } from "../../src/inbox/requests.ts";
import { contentHash } from "../../src/json/hash.ts";
import type { Store } from "../../src/store/contract.ts";
import { node, workflow } from "../support/workflows.ts";

const KEPT = 20;
const A_ROUND = 100;

let folder: string;
let store: Store;
let engine: Engine;
let requests: Requests;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "millrace-retention-"));
  store = await openSqlite({ file: join(folder, "store.db"), host: nodeHost });
  requests = new Requests(store, nodeHost);
  requests.start();
  const settings = { retentionMs: 3_600_000, keepEnded: KEPT, renewMs: 20 };
  engine = new Engine({ store, host: nodeHost, machines: [executionMachine], settings });
  engine.start();
});
afterEach(async () => {
  requests.stop();
  await engine.stop();
  await store.close();
  await rm(folder, { recursive: true });
});

/** Executions that the engine runs by itself, each with a value that is a record of its own. */
async function runRound(): Promise<void> {
  const text = JSON.stringify(workflow([node("in", [], { handler: "input", config: {} })]));
  const definition = contentHash(text);
  await store.records.put([{ scope: "definition", hash: definition, text }]);
  await Promise.all(
    Array.from({ length: A_ROUND }, async () => {
      const id = nodeHost.id();
      const to = entityKey("execution", id);
      const input = { json: { text: id.repeat(2_000) } };
      const body = { kind: "start", workflow: "w", definition, input, bodyHash: "" } as const;
      await requests.send({ to, by: "test", id, body });
      const partition = partitionOf(to, store.capabilities.partitionCount);
      const isOver = async (): Promise<boolean> => {
        const header = await store.queries.header(partition, to);
        // Removed already, or about to be.
        return header === null || header.class !== "open";
      };
      while (!(await isOver())) await nodeHost.sleep(20);
    }),
  );
  await expect.poll(async () => (await store.queries.counts()).ended, { timeout: 30_000 }).toBe(KEPT);
}

function sizeOf(name: string): number {
  return statSync(join(folder, name)).size;
}

test("a file in which executions come and go does not grow for ever", async () => {
  await runRound();
  const oneRound = sizeOf("store.db") + sizeOf("store.db-wal");
  expect(oneRound).toBeGreaterThan(A_ROUND * 32_000);
  for (let round = 0; round < 4; round++) await runRound();
  // The log is put into the file again and again, and what was freed there is used again: with what is kept from the
  // round before it holds a little more than one round at a time, and after five rounds far less than five.
  expect(sizeOf("store.db")).toBeGreaterThan(KEPT * 32_000);
  expect(sizeOf("store.db")).toBeLessThan(2 * oneRound);
});
