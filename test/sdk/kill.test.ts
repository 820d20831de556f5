import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { embedded } from "../../src/sdk/index.ts";
import { slowSum } from "./programs/slow-sum.ts";

const SUMS = [0, 0, 1, 5, 14];

test("an embedded engine that is killed loses nothing that it had accepted", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "millrace-kill-"));
  const accepted = new Map<string, number>();
  try {
    for (const wanted of [40, 80]) {
      const program = join(import.meta.dirname, "programs", "start-many.ts");
      const child = spawn(process.execPath, ["--no-warnings", program, dataDir], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      for await (const line of createInterface({ input: child.stdout })) {
        const [id, n] = line.split(" ");
        accepted.set(id!, Number(n));
        if (accepted.size >= wanted) break;
      }
      child.kill("SIGKILL");
      await once(child, "exit");
    }
    await using engine = await embedded({ dataDir, workflows: [slowSum], concurrency: 8 });
    for (const [id, n] of accepted) {
      expect(await engine.get(id).result({ timeout: "60s" })).toEqual({ sum: SUMS[n] });
    }
    expect(accepted.size).toBeGreaterThanOrEqual(80);
  } finally {
    rmSync(dataDir, { recursive: true });
  }
});
