import { writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { openSqlite } from "../../../src/drivers/sqlite/sqlite-store.ts";
import { nodeHost } from "../../../src/host/node-host.ts";
import { acquire } from "../../../src/store/conformance/owner.ts";
import { read } from "../../../src/store/conformance/things.ts";
import { partsOf } from "./history.ts";

/**
 * A program that commits until it is killed, and says so: `open`, then the number of each commit once it is
 * acknowledged, `refused` or `unknown` with the reason for one that is not and will be sent again. `ticks` is how often
 * its event loop came round during the slowest commit so far.
 */
const RETRY_MS = 20;

function say(...words: readonly (string | number)[]): void {
  const line = `${words.join(" ")}\n`;
  for (;;) {
    try {
      // Not by a stream: what has been said must have left the process when it is killed.
      writeSync(1, line);
      return;
    } catch (error) {
      // Nobody has read what was said before.
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
    }
  }
}

const store = await openSqlite({ file: process.argv[2]!, host: nodeHost });
const owner = await acquire(store);
say("open", owner.tenure.seq, process.pid);

let ticks = 0;
setInterval(() => ticks++, 1);
let slowestMs = 0;
for (let k = owner.tenure.seq; ; k++) {
  // As a worker does: what is too large for an event is put first, and nobody waits for the one before the other.
  void store.records.put([{ scope: `execution/${k}`, hash: "blob", text: `"blob ${k}"` }]).catch(() => {});
  const { position } = await read(store);
  const batch = owner.batch(partsOf(k, position));
  const numbered = { ...batch, fence: { ...batch.fence, seq: k } };
  for (;;) {
    const startedMs = performance.now();
    ticks = 0;
    const outcome = await owner.send(numbered).catch((error: unknown) => error as Error);
    const tookMs = performance.now() - startedMs;
    if (tookMs > slowestMs && tookMs > 100) say("ticks", ticks, Math.round(tookMs));
    slowestMs = Math.max(slowestMs, tookMs);
    if (outcome instanceof Error) say("unknown", outcome.message);
    else if (outcome.kind === "refused") say("refused", outcome.reason);
    else break;
    await sleep(RETRY_MS);
  }
  say(k);
}
