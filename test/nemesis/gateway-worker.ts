import { setTimeout as sleep } from "node:timers/promises";
import { worker } from "../../src/sdk/worker.ts";
import { HandlerError } from "../../src/worker/handler.ts";
import { handlers, recorded } from "../world/handlers.ts";

const LONGEST_MS = 400;

/** A worker far from the store: it has the address of an API, and serves one handler that nobody else does. */
const far = recorded(async ({ value, failures }: { value: number; failures: number }, { attempt, signal }) => {
  await sleep(Math.random() * LONGEST_MS, undefined, { signal });
  if (attempt <= failures) throw new HandlerError("FAR", "not yet", { retryable: true });
  return { value };
});

const running = worker({ handlers: { ...handlers, far }, concurrency: 8, grace: 0.2 });
process.on("SIGTERM", () => void running.stop().then(() => process.exit(0)));
await running.start();
process.stdout.write('{"msg":"started"}\n');
