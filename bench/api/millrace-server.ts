/**
 * Millrace as `millrace dev` serves it: engine, worker and API in one process, on SQLite. Without a worker, if told so: then
 * what is started waits for one, and only the requests are measured.
 */
import { startProcess } from "../contenders/millrace.ts";

const [, , file, workers] = process.argv;
const running = await startProcess(
  { store: `sqlite:${file!}`, slots: 1_000, port: 0 },
  workers === "elsewhere" ? ["engine", "api"] : ["engine", "worker", "api"],
  () => ({ n: 1 }),
);
process.on("disconnect", () => void running.stop().then(() => process.exit()));
process.send!({ url: running.url });
