/** The other half of the bare loop: takes tasks and puts results. */
import { connectStreams, RESULTS, TASKS } from "./streams.ts";

interface Task {
  readonly run: string;
  readonly step: string;
  readonly in: unknown;
}

const streams = await connectStreams(process.argv[2]!);
let isOpen = true;
process.on("disconnect", () => {
  isOpen = false;
});
process.send!("ready");
while (isOpen) {
  const entries = await streams.read(TASKS);
  if (entries.length === 0) continue;
  const results = entries.map(({ text }) => {
    const { run, step, in: given } = JSON.parse(text) as Task;
    return ["XADD", RESULTS, "*", "d", JSON.stringify({ run, step, ok: 1, out: given })];
  });
  await streams.run([...results, ["XACK", TASKS, "g", ...entries.map(({ id }) => id)]]);
}
streams.close();
