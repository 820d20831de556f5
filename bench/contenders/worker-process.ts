import { fork } from "node:child_process";
import { once } from "node:events";
import { Probe, type Progress } from "../probe.ts";
import { shapeNamed } from "../shapes.ts";

/** How often a worker tells what it has run. */
const TOLD_EVERY_MS = 20;
/** How long it may take to end when its parent is gone. */
const END_MS = 5_000;

interface Given<Options> {
  readonly shape: string;
  readonly stamping: boolean;
  readonly options: Options;
}

/** Starts a worker in a process of its own, by its file. Gives what stops it. */
export async function startWorkerProcess(probe: Probe, file: string, options: object): Promise<() => Promise<void>> {
  const given: Given<object> = { shape: probe.shape.name, stamping: probe.stamping, options };
  const child = fork(file, [JSON.stringify(given)], { stdio: "inherit" });
  await once(child, "message");
  child.on("message", (progress: Progress) => probe.add(progress));
  return async () => {
    const exited = once(child, "exit");
    child.disconnect();
    await exited;
  };
}

/** What such a file does: runs handlers until its parent is gone, and tells it what has run. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the file knows what it was given
export async function workApart<Options>(
  start: (probe: Probe, options: Options) => Promise<() => Promise<void>>,
): Promise<void> {
  const { shape, stamping, options } = JSON.parse(process.argv[2]!) as Given<Options>;
  const probe = new Probe(shapeNamed(shape), stamping);
  let sinks = 0;
  const tell = (): void => {
    if (sinks === 0) return;
    const progress: Progress = { sinks, stamps: probe.takeStamps() };
    sinks = 0;
    process.send?.(progress);
  };
  probe.onSink = () => {
    sinks++;
    // With stamps it is one execution at a time, and somebody waits for them.
    if (stamping) tell();
  };
  const stop = await start(probe, options);
  const timer = setInterval(tell, TOLD_EVERY_MS);
  process.on("disconnect", () => {
    clearInterval(timer);
    // Its server may be gone as well: some would wait for that for ever.
    setTimeout(() => process.exit(), END_MS);
    void stop().then(() => process.exit());
  });
  process.send!("ready");
}
