import { spawnSync } from "node:child_process";
import { existsSync, openSync } from "node:fs";
import { expect, test } from "vitest";

const MODULE = new URL("./log.ts", import.meta.url).href;

/** Logs more than may be kept, then says so on stderr. */
const PROGRAM = `
  const { openLog } = await import(${JSON.stringify(MODULE)});
  const log = openLog({ logLevel: "info", environment: "test" }, 1);
  for (let i = 0; i < 3_000; i++) log.info({ text: "x".repeat(1_000) }, "a line");
  process.stderr.write("went on");
`;

test.skipIf(!existsSync("/dev/full"))("a log on a full disk is lost, and whoever logs goes on", () => {
  const full = openSync("/dev/full", "w");
  const args = ["--input-type=module", "-e", PROGRAM];
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ["ignore", full, "pipe"], encoding: "utf8" });
  expect([status, stderr]).toEqual([0, "went on"]);
});
