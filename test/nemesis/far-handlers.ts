import { setTimeout as sleep } from "node:timers/promises";
import { HandlerError } from "../../src/worker/handler.ts";
import { handlers as near, recorded } from "../world/handlers.ts";

const LONGEST_MS = 400;

/** Served by nobody but the worker that is far from the store. */
const far = recorded(async ({ value, failures }: { value: number; failures: number }, { attempt, signal }) => {
  await sleep(Math.random() * LONGEST_MS, undefined, { signal });
  if (attempt <= failures) throw new HandlerError("FAR", "not yet", { retryable: true });
  return { value };
});

export const handlers = { ...near, far };
