import { workerData } from "node:worker_threads";

/** A thread that ends its process when the process that started it has gone, whatever the main thread is busy with. */
const parent = workerData as number;
setInterval(() => {
  if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
}, 1_000);
