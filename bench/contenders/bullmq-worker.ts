/** A BullMQ worker in a process of its own. */
import { startBullMqWorker } from "./bullmq.ts";
import { workApart } from "./worker-process.ts";

await workApart<{ readonly url: string }>((probe, { url }) => startBullMqWorker(probe, url));
