/** Millrace as `millrace dev` serves it: engine, worker and API in one process, on SQLite. */
import { startProcess } from "../contenders/millrace.ts";

const running = await startProcess(
  { store: `sqlite:${process.argv[2]!}`, slots: 1_000, port: 0 },
  ["engine", "worker", "api"],
  () => ({ n: 1 }),
);
process.on("disconnect", () => void running.stop().then(() => process.exit()));
process.send!({ url: running.url });
