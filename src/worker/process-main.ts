import { extname } from "node:path";
import { Worker as Thread } from "node:worker_threads";
import { Concealment } from "./concealment.ts";
import { errorStack } from "./error-stack.ts";
import { errorValue, MAX_ERROR_CHARS, retryAfter } from "./error-value.ts";
import type { Handler } from "./handler.ts";
import { loadHandler } from "./load-handler.ts";
import { storableOutput } from "./output.ts";
import type { CallData, FromProcess, Said, ToProcess } from "./process-handler.ts";

/** What runs in a process of `ProcessHandler`: `process-main <module>`. */

const [module] = process.argv.slice(2) as [string];
/** Secrets are cut out by the worker, who knows them; only then is the text cut to its length. */
const NOTHING_TO_CONCEAL = new Concealment();
const MAX_CHARS = 10 * MAX_ERROR_CHARS;

let abort = new AbortController();
let handler: Promise<Handler> | undefined;

process.on("message", (message: ToProcess) => {
  if (message.kind === "abort") abort.abort();
  else void run(message.number, message.call);
});
// The worker is gone: nobody waits for us.
process.on("disconnect", () => process.exit());
// And if a handler keeps the loop so busy that we do not hear of it, this thread does.
const watch = new URL(`./process-orphan${extname(import.meta.url)}`, import.meta.url);
new Thread(watch, { workerData: process.ppid, execArgv: [] }).unref();

async function run(number: number, call: CallData): Promise<void> {
  abort = new AbortController();
  const say = (said: Said): void => void process.send?.({ ...said, of: number } satisfies FromProcess);
  try {
    const handle = await (handler ??= loadHandler(module));
    const output = await handle({
      ...call,
      inputs: call.inputs,
      signal: abort.signal,
      addUsage: (usage) => say({ kind: "usage", usage }),
      closeLimit: (forMs) => say({ kind: "closeLimit", forMs }),
      conceal: (text) => say({ kind: "conceal", text }),
      log: (message, fields) => say({ kind: "log", message, ...(fields !== undefined && { fields }) }),
    });
    // Checked here, so that 50 MB or a circle never reach the worker.
    const storable = storableOutput(output, NOTHING_TO_CONCEAL);
    say("error" in storable ? { kind: "threw", error: storable.error } : { kind: "returned", text: storable.text });
  } catch (error) {
    const stack = errorStack(error, NOTHING_TO_CONCEAL, MAX_CHARS);
    say({
      kind: "threw",
      error: errorValue(error, NOTHING_TO_CONCEAL, MAX_CHARS),
      ...retryAfter(error),
      ...(stack !== undefined && { stack }),
    });
  }
}
