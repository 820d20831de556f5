import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Contender, Servers } from "../contender.ts";
import { type Fsync, prepareRedis } from "../contenders/redis-server.ts";
import type { Probe } from "../probe.ts";
import { BATCH, connectStreams, RESULTS, TASK_TEXT, TASKS } from "./streams.ts";

const PEER = join(import.meta.dirname, "streams-worker.ts");

/**
 * A task of about 200 bytes for each step through Redis Streams and its result back, one to an entry, in explicit
 * pipelines, with the taker in a process of its own. Nothing depends on anything.
 */
export async function startBareStreams(probe: Probe, { redis }: Servers, fsync: Fsync): Promise<Contender> {
  const pid = await prepareRedis(redis, fsync);
  const [writing, reading] = await Promise.all([connectStreams(redis), connectStreams(redis)]);
  for (const stream of [TASKS, RESULTS]) await writing.run([["XGROUP", "CREATE", stream, "g", "0", "MKSTREAM"]]);
  const worker = fork(PEER, [redis], { stdio: "inherit" });
  await once(worker, "message");
  const steps = probe.shape.nodes.length;
  let isOpen = true;
  let results = 0;

  const collect = async (): Promise<void> => {
    while (isOpen) {
      const entries = await reading.read(RESULTS);
      if (entries.length === 0) continue;
      for (const { text } of entries) JSON.parse(text);
      await reading.run([["XACK", RESULTS, "g", ...entries.map(({ id }) => id)]]);
      const before = Math.floor(results / steps);
      results += entries.length;
      probe.skip(Math.floor(results / steps) - before);
    }
  };
  const collecting = collect();
  const submit = async (count: number): Promise<void> => {
    for (let left = count * steps; left > 0; left -= BATCH) {
      await writing.run(Array.from({ length: Math.min(BATCH, left) }, () => ["XADD", TASKS, "*", "d", TASK_TEXT]));
    }
  };
  return {
    servers: { redis: pid },
    submit,
    runOne: () => submit(1),
    settled: async () => {},
    close: async () => {
      isOpen = false;
      await collecting;
      await end(worker);
      writing.close();
      reading.close();
    },
  };
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.disconnect();
  await exited;
}
