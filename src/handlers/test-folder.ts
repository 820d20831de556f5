import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { nodeHost } from "../host/node-host.ts";
import type { Json } from "../json/json.ts";
import type { HandlerCall } from "../worker/handler.ts";
import { builtinHandlers } from "./builtins.ts";
import { testCall, type TestCall } from "./test-server.ts";

/** The documents of the example. */
export const DOCUMENTS: string = join(import.meta.dirname, "../../examples/documents/data");

/** A folder that is gone with its test. */
export function testFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "millrace-handlers-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export type Run = (
  handler: string,
  config: Json,
  more?: Partial<HandlerCall>,
) => Promise<Readonly<Record<string, Json>> & { call: TestCall }>;

/** The built-in handlers of a worker with these variables. */
export function handlersWith(env: Readonly<Record<string, string>>): Run {
  const builtins = builtinHandlers({ host: nodeHost, env, loopback: true });
  onTestFinished(() => builtins.close());
  return async (handler, config, more = {}) => {
    const call = testCall(config, more);
    const output = await builtins.handlers.get(handler)!(call);
    return Object.defineProperty({ ...(output as object) }, "call", { value: call, enumerable: false }) as never;
  };
}
